// How far results lie from their references, in units of their own type.

#include "tensors/codec.hpp"
#include "tensors/compare.hpp"
#include "tensors/ulp_histogram.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <limits>
#include <numeric>

using namespace gristmill;

namespace {

using bins = std::vector<uint64_t>;

template <class T>
bins of(dtype type, const std::vector<T>& x, const std::vector<T>& y, bool all_finite = true) {
  ulp_histogram all(type);
  all.add(std::as_bytes(std::span(x)), std::as_bytes(std::span(y)), all_finite);
  return all.bins();
}

/// One pair at a time, as the definition says.
template <class T>
bins by_the_book(const std::vector<T>& x, const std::vector<T>& y, T infinity) {
  bins all(65);
  const auto place = [](T bits) {
    constexpr auto sign = T{1} << (sizeof(T) * 8 - 1);
    const auto size = static_cast<__int128>(bits & static_cast<T>(~sign));
    return (bits & sign) != 0 ? -size : size;
  };
  for (size_t i = 0; i < x.size(); ++i) {
    const auto a = place(x[i]), b = place(y[i]);
    if (a >= infinity || -a >= infinity || b >= infinity || -b >= infinity)
      continue;
    const auto distance = static_cast<uint64_t>(a > b ? a - b : b - a);
    ++all[static_cast<size_t>(std::bit_width(distance))];
  }
  while (!all.empty() && all.back() == 0)
    all.pop_back();
  return all;
}

template <class T>
void check_all(dtype type, T infinity) {
  CAPTURE(name(type));
  uint32_t state = 7;
  const auto draw = [&] {
    state = state * 1664525 + 1013904223;
    return state >> 4;
  };
  for (size_t count = 0; count < 40; ++count)
    for (const bool finite : {true, false}) {
      std::vector<T> x(count), y(count);
      for (size_t i = 0; i < count; ++i) {
        const auto any = [&] {
          auto bits = static_cast<T>((uint64_t{draw()} << 40) ^ (uint64_t{draw()} << 20) ^ draw());
          constexpr auto sign = static_cast<T>(T{1} << (sizeof(T) * 8 - 1));
          if (finite && static_cast<T>(bits & static_cast<T>(~sign)) >= infinity)
            bits = static_cast<T>(bits & sign);
          return bits;
        };
        y[i] = any();
        x[i] = draw() % 3 == 0 ? any() : static_cast<T>(y[i] ^ (draw() % 4));
        if (finite && x[i] != y[i] && draw() % 2 == 0)
          x[i] = y[i];
        if (finite) {
          constexpr auto sign = static_cast<T>(T{1} << (sizeof(T) * 8 - 1));
          if (static_cast<T>(x[i] & static_cast<T>(~sign)) >= infinity)
            x[i] = y[i];
        }
      }
      CAPTURE(count);
      CHECK(of(type, x, y, finite) == by_the_book(x, y, infinity));
    }
}

} // namespace

TEST_CASE("equal numbers lie in bin 0, and a bin holds twice as many distances as the one before") {
  const auto one = std::bit_cast<uint32_t>(1.0f);
  CHECK(of<uint32_t>(
          dtype::float32, {one, one, one, one, one}, {one, one + 1, one + 2, one + 3, one + 4})
    == bins{1, 1, 2, 1});
  CHECK(of<uint32_t>(dtype::float32, {}, {}).empty());
}

TEST_CASE("both zeros are one number, and the smallest numbers of both signs are two apart") {
  CHECK(of<uint16_t>(dtype::bfloat16, {0x8000, 0x0001}, {0x0000, 0x8001}) == bins{1, 0, 1});
  CHECK(of<uint8_t>(dtype::float8_e4m3fn, {0x80, 0x01}, {0x00, 0x81}) == bins{1, 0, 1});
  CHECK(of<uint8_t>(dtype::float4_e2m1, {0x18}, {0x90}) == bins{1, 0, 1});
}

TEST_CASE("every pair of every type is counted as by the book") {
  check_all<uint64_t>(dtype::float64, 0x7ff0'0000'0000'0000);
  check_all<uint32_t>(dtype::float32, 0x7f80'0000);
  check_all<uint16_t>(dtype::float16, 0x7c00);
  check_all<uint16_t>(dtype::bfloat16, 0x7f80);
  check_all<uint8_t>(dtype::float8_e4m3fn, 0x7f);
  check_all<uint8_t>(dtype::float8_e5m2, 0x7c);
}

TEST_CASE("a distance just below a power of two is not rounded up to it") {
  for (uint32_t power : {24U, 25U, 27U, 30U}) {
    const uint32_t distance = (1U << power) - 1;
    const std::vector<uint32_t> x(4, distance), y(4, 0);
    CHECK(of(dtype::float32, x, y).size() == power + 1);
  }
  const std::vector<uint32_t> largest(4, 0x7f7fffff), least(4, 0xff7fffff);
  CHECK(of(dtype::float32, largest, least).size() == 33);
}

TEST_CASE("integers and bools have no units in the last place") {
  CHECK(of<uint32_t>(dtype::int32, {1, 2}, {2, 3}).empty());
  CHECK(of<uint8_t>(dtype::boolean, {1}, {0}).empty());
}

TEST_CASE("an output that was rounded to bfloat16 on its way shows in the bins of float32") {
  std::vector<float> y(5000), x(5000);
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] = 1.0f + static_cast<float>(i) / 5000;
    x[i] = float_from_bf16(bf16_from_float(y[i]));
  }
  const auto out =
    compare(dtype::float32, {5000}, std::as_bytes(std::span(x)), std::as_bytes(std::span(y)), {});
  REQUIRE(out.ulp_bins.size() == 16); // 2^15 units of float32 are half of one of bfloat16.
  CHECK(std::accumulate(out.ulp_bins.begin(), out.ulp_bins.end(), uint64_t{0}) == 5000);
  CHECK(out.ulp_bins[15] + out.ulp_bins[14] > 2500);
  CHECK(out.relative_rms_error > 0.0005);
  CHECK(out.relative_rms_error < 0.005);
}

TEST_CASE("the root mean square error is that of the definition, for tiny and huge numbers too") {
  for (const float scale : {1e-30f, 1e-12f, 1.0f, 1e12f, 1e30f}) {
    CAPTURE(scale);
    std::vector<float> x, y;
    double errors = 0, sizes = 0;
    for (int i = 0; i < 5003; ++i) {
      y.push_back(scale * static_cast<float>(1 + i % 17));
      x.push_back(y.back() * (i % 3 == 0 ? 1.01f : 1.0f));
      const double error = static_cast<double>(x.back()) - static_cast<double>(y.back());
      errors += error * error;
      sizes += static_cast<double>(y.back()) * static_cast<double>(y.back());
    }
    const auto out =
      compare(dtype::float32, {5003}, std::as_bytes(std::span(x)), std::as_bytes(std::span(y)), {});
    CHECK(out.relative_rms_error == doctest::Approx(std::sqrt(errors / sizes)).epsilon(1e-3));
    CHECK(
      compare(dtype::float32, {5003}, std::as_bytes(std::span(y)), std::as_bytes(std::span(y)), {})
        .relative_rms_error
      == 0);
  }
  const std::vector<float> ones(3, 1), zeros(3, 0);
  CHECK(std::isinf(compare(
    dtype::float32, {3}, std::as_bytes(std::span(ones)), std::as_bytes(std::span(zeros)), {})
                     .relative_rms_error));
  const std::vector<float> broken{1, std::numeric_limits<float>::infinity(), 3};
  const auto out = compare(
    dtype::float32, {3}, std::as_bytes(std::span(broken)), std::as_bytes(std::span(ones)), {});
  CHECK(out.ulp_bins.front() == 1);
  CHECK(out.relative_rms_error == doctest::Approx(std::sqrt(2.0)));
}
