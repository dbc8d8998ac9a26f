#include "simulation/statistics.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <numbers>

using namespace gristmill;

TEST_CASE("quantiles of Student's t are those of the tables") {
  struct row {
    double probability;
    uint32_t freedom;
    double value;
  };
  // The first two have closed forms: tan(pi (p - 1/2)) and (2p - 1)/sqrt(2 p (1 - p)).
  for (const row& r : {row{0.975, 1, 12.706204736}, row{0.975, 2, 4.302652730},
         row{0.975, 4, 2.776445105}, row{0.95, 5, 2.015048373}, row{0.975, 9, 2.262157163},
         row{0.975, 19, 2.093024054}, row{0.995, 29, 2.756385904}, row{0.975, 99, 1.984216952},
         row{0.75, 1, 1.0}, row{0.9995, 3, 12.923978637}, row{0.975, 1'000'000, 1.959966}}) {
    CAPTURE(r.freedom);
    CAPTURE(r.probability);
    CHECK(student_t_quantile(r.probability, r.freedom) == doctest::Approx(r.value).epsilon(1e-6));
    CHECK(
      student_t_quantile(1 - r.probability, r.freedom) == doctest::Approx(-r.value).epsilon(1e-6));
  }
  CHECK(student_t_quantile(0.5, 7) == 0);
}

TEST_CASE("one degree of freedom agrees with the tangent, two with the square root, to 1e-12") {
  for (double p : {0.51, 0.6, 0.9, 0.99, 0.9999}) {
    CAPTURE(p);
    CHECK(student_t_quantile(p, 1)
      == doctest::Approx(std::tan(std::numbers::pi * (p - 0.5))).epsilon(1e-11));
    CHECK(student_t_quantile(p, 2)
      == doctest::Approx((2 * p - 1) / std::sqrt(2 * p * (1 - p))).epsilon(1e-11));
  }
}

TEST_CASE("where the expansion takes over there is no step") {
  CHECK(student_t_quantile(0.975, 10'000)
    == doctest::Approx(student_t_quantile(0.975, 10'001)).epsilon(1e-8));
  CHECK(student_t_quantile(0.975, 10'000) > student_t_quantile(0.975, 10'001));
  CHECK(student_t_quantile(0.975, std::numeric_limits<uint32_t>::max())
    == doctest::Approx(1.959963984540054).epsilon(1e-9));
}

TEST_CASE("no quantile is no number: a probability outside of (0, 1) or no freedom") {
  for (double p : {0.0, 1.0, -1.0, 2.0, std::nan("")})
    CHECK(std::isnan(student_t_quantile(p, 5)));
  CHECK(std::isnan(student_t_quantile(0.975, 0)));
}

TEST_CASE("an interval has the mean, the deviation of a sample and t times the standard error") {
  const auto five = interval_of({1, 2, 3, 4, 5});
  CHECK(five.mean == 3);
  CHECK(five.deviation == doctest::Approx(std::sqrt(2.5)));
  CHECK(five.half == doctest::Approx(2.776445105 * std::sqrt(2.5) / std::sqrt(5.0)));
  CHECK(five.count == 5);
  CHECK(five.spans(3));
  CHECK(five.spans(five.mean + five.half));
  CHECK_FALSE(five.spans(5));
  CHECK_FALSE(five.spans(0));
}

TEST_CASE("fewer than two values have no interval: it is infinitely wide") {
  CHECK(std::isinf(interval_of({}).half));
  const auto one = interval_of({7});
  CHECK(one.mean == 7);
  CHECK(std::isinf(one.half));
  CHECK(one.spans(0));
  CHECK(one.count == 1);
}

TEST_CASE("equal values have an interval of no width") {
  const auto same = interval_of({2, 2, 2});
  CHECK(same.half == 0);
  CHECK(same.spans(2));
  CHECK_FALSE(same.spans(2.1));
}

TEST_CASE("pairs take out what both sides share, which an unpaired comparison cannot") {
  // The seeds differ by far more than the two sides do.
  const std::vector<double> b = {10, 20, 30, 40};
  const std::vector<double> a = {11, 21.1, 30.9, 41};
  const auto paired = paired_difference(a, b);
  CHECK(paired.mean == doctest::Approx(1.0));
  CHECK_FALSE(paired.spans(0));
  CHECK(interval_of(a).half > 10);
  CHECK(paired_difference(b, a).mean == doctest::Approx(-1.0));
}
