#include "tensors/codec.hpp"
#include "tensors/compare.hpp"

#include <cstring>
#include <doctest/doctest.h>
#include <limits>
#include <vector>

using namespace gristmill;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
const float nan_value = std::numeric_limits<float>::quiet_NaN();

comparison floats(const std::vector<float>& x, const std::vector<float>& y,
  const tolerance& allowed = {}, std::vector<int64_t> shape = {}) {
  if (shape.empty())
    shape = {static_cast<int64_t>(x.size())};
  return compare(
    dtype::float32, shape, std::as_bytes(std::span{x}), std::as_bytes(std::span{y}), allowed);
}

} // namespace

TEST_CASE("equal tensors match in full") {
  const auto same = floats({1, 2, 3}, {1, 2, 3});
  CHECK(same.passed);
  CHECK(same.matched_ratio == 1);
  CHECK(same.elements == 3);
  CHECK(same.max_absolute_error == 0);
}

TEST_CASE("an element fails only strictly beyond the tolerance") {
  tolerance allowed;
  allowed.atol = 0.125;
  allowed.rtol = 0.125;
  CHECK(floats({1.25f}, {1}, allowed).passed);
  CHECK_FALSE(floats({1.2500001f}, {1}, allowed).passed);
}

TEST_CASE("the matched ratio decides, and the cap over it") {
  std::vector<float> x(100, 1);
  const std::vector<float> y(100, 1);
  x[3] = 5;
  CHECK(floats(x, y).passed);
  x[4] = 5;
  const auto two = floats(x, y);
  CHECK_FALSE(two.passed);
  CHECK(two.mismatches == 2);
  CHECK(two.matched_ratio == doctest::Approx(0.98));
  x[4] = 1;
  tolerance capped;
  capped.error_cap = 4;
  CHECK(floats(x, y, capped).passed);
  capped.error_cap = 3.9;
  CHECK_FALSE(floats(x, y, capped).passed);
}

TEST_CASE("a NaN or an infinity anywhere fails with errors of zero") {
  for (float bad : {nan_value, infinity, -infinity}) {
    for (bool in_solution : {false, true}) {
      std::vector<float> x(1000, 1);
      std::vector<float> y(1000, 1);
      (in_solution ? x : y)[500] = bad;
      tolerance lax;
      lax.matched_ratio = 0;
      const auto out = floats(x, y, lax);
      CHECK_FALSE(out.passed);
      CHECK(out.has_nan == (bad != bad));
      CHECK(out.has_inf == (bad == bad));
      CHECK(out.max_absolute_error == 0);
      CHECK(out.mismatches == 1);
    }
  }
  const auto both = floats({nan_value, infinity}, {1, 1});
  CHECK(both.has_nan);
  CHECK_FALSE(both.has_inf);
}

TEST_CASE("only -infinity at the same place can be exempt") {
  tolerance allowed;
  allowed.allow_negative_inf = true;
  const auto exempt = floats({-infinity, 1}, {-infinity, 1}, allowed);
  CHECK(exempt.passed);
  CHECK(exempt.elements == 1);
  CHECK(floats({-infinity}, {-infinity}, allowed).passed);
  CHECK_FALSE(floats({-infinity, 1}, {1, 1}, allowed).passed);
  CHECK_FALSE(floats({infinity}, {infinity}, allowed).passed);
  CHECK_FALSE(floats({-infinity}, {-infinity}).passed);
}

TEST_CASE("an all-zero output fails even within the tolerance") {
  const auto tiny = floats({0, 0}, {1e-6f, 0});
  CHECK_FALSE(tiny.passed);
  CHECK(tiny.all_zero_output);
  CHECK(tiny.max_absolute_error == doctest::Approx(1e-6));
  CHECK(floats({0, -0.0f}, {3, 4}).max_absolute_error == 5);
  CHECK(floats({0, 0}, {0, 0}).passed);
}

TEST_CASE("a difference that overflows float32 fails") {
  tolerance lax;
  lax.rtol = 10;
  lax.matched_ratio = 1;
  const auto out = floats({3e38f}, {-3e38f}, lax);
  CHECK_FALSE(out.passed);
  CHECK(out.max_absolute_error == infinity);
}

TEST_CASE("an empty output passes and a wrong size never does") {
  CHECK(compare(dtype::float32, {3, 0}, {}, {}, {}).passed);
  const std::vector<std::byte> four(4);
  CHECK_FALSE(compare(dtype::float32, {2}, four, four, {}).passed);
  CHECK_FALSE(compare(dtype::float32, {1}, four, {}, {}).passed);
}

TEST_CASE("integers that float32 cannot tell apart are still seen") {
  const int64_t x = 16777217;
  const int64_t y = 16777216;
  std::vector<std::byte> a(8);
  std::vector<std::byte> b(8);
  std::memcpy(a.data(), &x, 8);
  std::memcpy(b.data(), &y, 8);
  const auto out = compare(dtype::int64, {1}, a, b, {});
  CHECK(out.passed);
  CHECK(out.integer_exact_mismatch);
  CHECK_FALSE(compare(dtype::int64, {1}, a, a, {}).integer_exact_mismatch);
}

TEST_CASE("any byte but zero is a true bool") {
  const std::vector<std::byte> one{std::byte{1}, std::byte{0}};
  const std::vector<std::byte> odd{std::byte{255}, std::byte{0}};
  const auto out = compare(dtype::boolean, {2}, odd, one, {});
  CHECK(out.passed);
  CHECK_FALSE(out.integer_exact_mismatch);
}

TEST_CASE("tiles show where the mismatches lie, across chunks") {
  const std::vector<int64_t> shape{4, 160, 160}; // Flattened to 640 rows of 160.
  std::vector<float> x(4 * 160 * 160, 1);
  const std::vector<float> y(x.size(), 1);
  x[0] = 9;
  x[159] = 9;
  x[x.size() - 1] = 9;
  x[320 * 160 + 80] = 9;
  const auto out = floats(x, y, {}, shape);
  CHECK(out.miss_tiles[0] == 1);
  CHECK(out.miss_tiles[7] == 1);
  CHECK(out.miss_tiles[63] == 1);
  CHECK(out.miss_tiles[4 * 8 + 4] == 1);
  CHECK(out.mismatches == 4);
}

TEST_CASE("packed types are compared across chunks too") {
  const std::vector<int64_t> shape{100, 1000};
  std::vector<float> values(100000, 2);
  std::vector<std::byte> y(50000);
  encode_from_float(dtype::float4_e2m1, values, y);
  values[99999] = -6;
  std::vector<std::byte> x(50000);
  encode_from_float(dtype::float4_e2m1, values, x);
  const auto out = compare(dtype::float4_e2m1, shape, x, y, {});
  CHECK(out.mismatches == 1);
  CHECK(out.max_absolute_error == 8);
  CHECK(out.miss_tiles[63] == 1);
}

TEST_CASE("the relative error is undefined where tolerance and reference are zero") {
  tolerance none;
  none.atol = 0;
  none.rtol = 0;
  const auto out = floats({0, 1}, {0, 1}, none);
  CHECK(out.passed);
  CHECK(out.max_relative_error != out.max_relative_error);
}
