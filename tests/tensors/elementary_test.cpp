#include "tensors/elementary.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <initializer_list>

using namespace gristmill;

TEST_CASE("the logarithm is good to 1e-13") {
  for (double x : {1e-300, 1e-10, 0.1, 0.5, 0.75, 0.999999, 1.0, 1.000001, 1.5, 2.0, 3.7, 1e10})
    CHECK(elementary::log(x) == doctest::Approx(std::log(x)).epsilon(1e-13));
}

TEST_CASE("the exponential is good to 1e-12") {
  for (double x : {-700.0, -50.5, -1.0, -0.3, 0.0, 0.2, 1.0, 30.25, 700.0})
    CHECK(elementary::exp(x) / std::exp(x) == doctest::Approx(1).epsilon(1e-12));
}

TEST_CASE("sine and cosine are good to 1e-13 over a whole turn") {
  for (int i = -1000; i <= 1000; ++i) {
    const double x = elementary::pi * i / 1000;
    CHECK(std::fabs(elementary::sin(x) - std::sin(x)) < 1e-13);
    CHECK(std::fabs(elementary::cos(x) - std::cos(x)) < 1e-13);
  }
}

TEST_CASE("the normal quantile inverts the distribution, is odd and never falls") {
  double last = -100;
  for (uint64_t word = 0; word < uint64_t{1} << 32; word += 4000037) {
    const auto w = static_cast<uint32_t>(word);
    const double z = elementary::normal_quantile(w);
    const double p = (static_cast<double>(w) + 0.5) / 4294967296.0;
    CHECK(z > last);
    last = z;
    CHECK(z == -elementary::normal_quantile(~w));
    CHECK(std::erfc(-z / std::sqrt(2.0)) / 2 == doctest::Approx(p).epsilon(1e-6));
  }
  CHECK(elementary::normal_quantile(0xffffffff) == doctest::Approx(6.338).epsilon(1e-3));
}

TEST_CASE("the two pieces of the quantile meet") {
  // The seam is at p = 0.075.
  const auto seam = static_cast<uint32_t>(0.075 * 4294967296.0);
  const double gap = elementary::normal_quantile(seam + 2) - elementary::normal_quantile(seam - 2);
  CHECK(gap > -2e-7);
  CHECK(gap < 2e-7);
}
