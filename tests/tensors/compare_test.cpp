#include "tensors/codec.hpp"
#include "tensors/compare.hpp"

#include <algorithm>
#include <array>
#include <cmath>
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

namespace {

/// The rule as the specification states it, one element after the other.
comparison by_the_book(
  const std::vector<float>& x, const std::vector<float>& y, const tolerance& allowed) {
  comparison out;
  const auto atol = static_cast<float>(allowed.atol);
  const auto rtol = static_cast<float>(allowed.rtol);
  bool nan = false;
  bool inf = false;
  float absolute = 0;
  float relative = 0;
  double norm_x = 0;
  double norm_y = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (allowed.allow_negative_inf && x[i] == -infinity && y[i] == -infinity)
      continue;
    ++out.elements;
    nan = nan || x[i] != x[i] || y[i] != y[i];
    inf = inf || std::isinf(x[i]) || std::isinf(y[i]);
    const float difference = std::fabs(x[i] - y[i]);
    if (!std::isfinite(difference) || difference > atol + rtol * std::fabs(y[i]))
      ++out.mismatches;
    absolute = std::max(absolute, difference);
    relative = std::max(relative, difference / std::max(std::fabs(y[i]), atol));
    norm_x += std::fabs(static_cast<double>(x[i]));
    norm_y += static_cast<double>(y[i] * y[i]);
  }
  out.matched_ratio = out.elements == 0
    ? 1
    : 1 - static_cast<double>(out.mismatches) / static_cast<double>(out.elements);
  if (nan || inf) {
    out.has_nan = nan;
    out.has_inf = !nan;
  } else if (norm_x == 0 && norm_y > 0) {
    out.all_zero_output = true;
    out.max_absolute_error = out.max_relative_error = static_cast<float>(std::sqrt(norm_y));
  } else {
    out.max_absolute_error = absolute;
    out.max_relative_error = relative;
    out.passed = out.matched_ratio >= allowed.matched_ratio
      && !(allowed.error_cap && absolute > *allowed.error_cap);
  }
  return out;
}

} // namespace

TEST_CASE("every length and every kind of number is judged as by the book") {
  uint32_t state = 1;
  const auto draw = [&] {
    state = state * 1664525 + 1013904223;
    return state >> 8;
  };
  for (size_t round = 0; round < 400; ++round) {
    const size_t count = round < 40 ? round : draw() % 9000;
    std::vector<float> y(count);
    std::vector<float> x(count);
    for (size_t i = 0; i < count; ++i) {
      y[i] = round % 5 == 0 ? 0.0f : static_cast<float>(draw() % 2001) / 250 - 4;
      x[i] = y[i] + (draw() % 50 == 0 ? 0.5f : static_cast<float>(draw() % 100) * 1e-4f);
      if (round % 7 == 1)
        x[i] = 0;
    }
    const float specials[] = {infinity, -infinity, nan_value, 3e38f, -3e38f};
    if (round % 3 == 2 && count > 0)
      for (uint32_t k = draw() % 3; k > 0; --k) {
        const size_t at = draw() % count;
        x[at] = specials[draw() % 5];
        if (draw() % 2 == 0)
          y[at] = draw() % 2 == 0 ? x[at] : specials[draw() % 5];
      }
    tolerance allowed;
    allowed.atol = round % 4 == 3 ? 0.001 : 0.01;
    allowed.allow_negative_inf = round % 2 == 0;
    if (round % 6 == 0)
      allowed.error_cap = 0.4;
    CAPTURE(round);
    CAPTURE(count);
    auto found = floats(x, y, allowed);
    found.miss_tiles = {};
    found.ulp_bins = {};
    found.relative_rms_error = 0;
    CHECK(found == by_the_book(x, y, allowed));
  }
}

TEST_CASE("tiles of any shape hold what a division per element gives") {
  for (const auto& shape : std::vector<std::vector<int64_t>>{
         {1, 1}, {3, 5}, {5, 3}, {7, 8}, {16, 9}, {100, 1}, {1, 100}, {2, 3, 2049}, {513, 13}}) {
    const auto count = static_cast<size_t>(element_count(shape).value());
    const std::vector<float> x(count, 9);
    const std::vector<float> y(count, 1);
    const auto found = floats(x, y, {}, shape);
    const auto columns = static_cast<size_t>(shape.back());
    std::array<uint32_t, 64> expected{};
    for (size_t i = 0; i < count; ++i)
      ++expected[i / columns * 8 / (count / columns) * 8 + i % columns * 8 / columns];
    CHECK(found.miss_tiles == expected);
  }
}

TEST_CASE("whoever holds the files hears how far the comparison is") {
  const std::vector<float> x((uint64_t{40} << 20) / sizeof(float), 1);
  std::vector<uint64_t> seen;
  const auto bytes = std::as_bytes(std::span{x});
  const auto out = compare(dtype::float32, {static_cast<int64_t>(x.size())}, bytes, bytes, {},
    [&](uint64_t done) { seen.push_back(done); });
  CHECK(out.passed);
  REQUIRE(seen.size() == 3);
  CHECK(seen[0] == uint64_t{16} << 20);
  CHECK(seen[1] == uint64_t{32} << 20);
  CHECK(seen[2] == bytes.size());
}

TEST_CASE("narrow integers and bools that differ are seen too") {
  const std::vector<std::byte> a{std::byte{1}, std::byte{0}};
  const std::vector<std::byte> b{std::byte{0}, std::byte{0}};
  for (dtype type : {dtype::boolean, dtype::int8}) {
    CHECK(compare(type, {2}, a, b, {}).integer_exact_mismatch);
    CHECK_FALSE(compare(type, {2}, a, a, {}).integer_exact_mismatch);
  }
  CHECK(compare(dtype::int16, {1}, a, b, {}).integer_exact_mismatch);
  CHECK_FALSE(compare(dtype::float8_e4m3fn, {2}, a, b, {}).integer_exact_mismatch);
}
