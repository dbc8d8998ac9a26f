#include "tensors/codec.hpp"
#include "tensors/generate.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

using namespace gristmill;

namespace {

const tensor_key key{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};

std::vector<std::byte> bytes_of(
  const input_distribution& from, dtype type, const std::vector<int64_t>& shape) {
  std::vector<std::byte> out(*storage_bytes(type, shape));
  generate(from, type, shape, key, 0, out);
  return out;
}

std::vector<float> values_of(
  const input_distribution& from, dtype type, const std::vector<int64_t>& shape) {
  const auto bytes = bytes_of(from, type, shape);
  std::vector<float> out(*element_count(shape));
  decode_to_float(type, bytes, out);
  return out;
}

uint64_t digest(const std::vector<std::byte>& bytes) { // FNV-1a
  uint64_t hash = 14695981039346656037u;
  for (std::byte each : bytes)
    hash = (hash ^ std::to_integer<uint64_t>(each)) * 1099511628211u;
  return hash;
}

constexpr distribution all_kinds[] = {distribution::normal, distribution::uniform_int,
  distribution::uniform_bool, distribution::ones, distribution::zeros, distribution::causal_mask,
  distribution::binary_mask, distribution::cosine, distribution::sine, distribution::positive,
  distribution::cumsum_negative, distribution::uniform_range, distribution::softmax_rows,
  distribution::scaled_normal, distribution::clamped_normal, distribution::fp4_normal};

/// Those of the held-out set only: apart, because the digest below is of the others.
constexpr distribution held_out_kinds[] = {distribution::scattered_mask, distribution::mostly_ones,
  distribution::zipf_int, distribution::stretched_normal, distribution::constant_rows,
  distribution::nan_rows};

} // namespace

TEST_CASE("any window holds the same bytes as its place in the whole tensor") {
  const std::vector<int64_t> shape{7, 18, 26};
  const uint64_t elements = *element_count(shape);
  std::vector<distribution> kinds(std::begin(all_kinds), std::end(all_kinds));
  kinds.insert(kinds.end(), std::begin(held_out_kinds), std::end(held_out_kinds));
  for (distribution kind : kinds) {
    for (dtype type : {dtype::float32, dtype::bfloat16, dtype::int8, dtype::float4_e2m1}) {
      const input_distribution from{kind, -2, 2};
      const auto whole = bytes_of(from, type, shape);
      CAPTURE(static_cast<int>(kind));
      CAPTURE(name(type));
      for (uint64_t first :
        {uint64_t{0}, uint64_t{2}, uint64_t{26}, uint64_t{1030}, elements - 2}) {
        const uint64_t count = std::min<uint64_t>(1500, elements - first);
        std::vector<std::byte> window(count * element_bits(type) / 8);
        generate(from, type, shape, key, first, window);
        CHECK(
          std::memcmp(window.data(), whole.data() + first * element_bits(type) / 8, window.size())
          == 0);
      }
    }
  }
}

TEST_CASE("the bytes are the same in every build") {
  // Written down once; a change of these numbers changes every input of every recorded run.
  uint64_t together = 0;
  for (distribution kind : all_kinds)
    for (dtype type : {dtype::float32, dtype::float16, dtype::bfloat16, dtype::float8_e4m3fn})
      together = together * 31 + digest(bytes_of({kind, -2, 2}, type, {33, 64}));
  CHECK(together == 5108452061132822506u);
}

TEST_CASE("normals have mean 0, variance 1 and the tails of a normal") {
  const auto values = values_of({distribution::normal, 0, 0}, dtype::float32, {1000, 1000});
  double mean = 0;
  double square = 0;
  double beyond_3 = 0;
  for (float x : values) {
    mean += x;
    square += static_cast<double>(x) * x;
    beyond_3 += std::fabs(x) > 3 ? 1 : 0;
  }
  CHECK(std::fabs(mean / 1e6) < 0.004);
  CHECK(square / 1e6 == doctest::Approx(1).epsilon(0.01));
  CHECK(beyond_3 / 1e6 == doctest::Approx(0.0027).epsilon(0.1));
}

TEST_CASE("another key gives another tensor") {
  auto other = key;
  other.bytes[15] ^= 1;
  std::vector<std::byte> a(4096);
  std::vector<std::byte> b(4096);
  generate({distribution::normal, 0, 0}, dtype::float32, {1024}, key, 0, a);
  generate({distribution::normal, 0, 0}, dtype::float32, {1024}, other, 0, b);
  CHECK(a != b);
}

TEST_CASE("integers cover their range and nothing outside") {
  const auto bytes = values_of({distribution::uniform_int, -128, 127}, dtype::int8, {100000});
  CHECK(*std::min_element(bytes.begin(), bytes.end()) == -128);
  CHECK(*std::max_element(bytes.begin(), bytes.end()) == 127);
  const auto longs = values_of({distribution::uniform_int, -1024, 1023}, dtype::int64, {100000});
  CHECK(*std::min_element(longs.begin(), longs.end()) == -1024);
  CHECK(*std::max_element(longs.begin(), longs.end()) == 1023);
}

TEST_CASE("bools and binary masks are zeros and ones in equal parts") {
  for (distribution kind : {distribution::uniform_bool, distribution::binary_mask}) {
    const auto values = values_of({kind, 0, 1}, dtype::float32, {10000});
    CHECK(std::set<float>(values.begin(), values.end()) == std::set<float>{0, 1});
    CHECK(
      std::accumulate(values.begin(), values.end(), 0.0) == doctest::Approx(5000).epsilon(0.05));
  }
}

TEST_CASE("a causal mask is zero up to the diagonal and the lowest finite value above") {
  for (dtype type : {dtype::float32, dtype::float16, dtype::bfloat16}) {
    const auto values = values_of({distribution::causal_mask, 0, 0}, type, {2, 3, 3});
    const float lowest = type == dtype::float16 ? -65504.0f
      : type == dtype::bfloat16                 ? float_from_bf16(0xff7f)
                                                : -std::numeric_limits<float>::max();
    for (size_t i = 0; i < values.size(); ++i)
      CHECK(values[i] == (i % 3 > i / 3 % 3 ? lowest : 0.0f));
  }
  const auto wide = bytes_of({distribution::causal_mask, 0, 0}, dtype::float64, {2, 2});
  double corner = 0;
  std::memcpy(&corner, wide.data() + 8, 8);
  CHECK(corner == std::numeric_limits<double>::lowest());
}

TEST_CASE("softmax rows are positive and add up to one") {
  const auto values = values_of({distribution::softmax_rows, 0, 0}, dtype::float32, {5, 1000});
  for (size_t row = 0; row < 5; ++row) {
    double sum = 0;
    for (size_t i = 0; i < 1000; ++i) {
      CHECK(values[row * 1000 + i] > 0);
      sum += values[row * 1000 + i];
    }
    CHECK(sum == doctest::Approx(1).epsilon(1e-5));
  }
}

TEST_CASE("a running sum falls along each row and starts anew in the next") {
  const auto values = values_of({distribution::cumsum_negative, -0.1, 0}, dtype::float32, {4, 100});
  for (size_t i = 0; i < values.size(); ++i) {
    if (i % 100 == 0)
      CHECK(values[i] >= -0.1f);
    else
      CHECK(values[i] <= values[i - 1]);
  }
}

TEST_CASE("the other distributions keep their promises") {
  for (float x : values_of({distribution::positive, 0, 0}, dtype::float32, {1000}))
    CHECK(x >= 0.1f);
  for (float x : values_of({distribution::clamped_normal, -2, 2}, dtype::float8_e4m3fn, {5000}))
    CHECK(std::fabs(x) <= 2);
  for (float x : values_of({distribution::uniform_range, -5, -1}, dtype::float32, {1000})) {
    CHECK(x >= -5);
    CHECK(x <= -1);
  }
  const auto angle = values_of({distribution::cosine, 0, 0}, dtype::float32, {1000});
  const auto same = values_of({distribution::sine, 0, 0}, dtype::float32, {1000});
  for (size_t i = 0; i < angle.size(); ++i)
    CHECK(angle[i] * angle[i] + same[i] * same[i] == doctest::Approx(1).epsilon(1e-5));
  for (float x : values_of({distribution::ones, 0, 0}, dtype::float16, {10}))
    CHECK(x == 1);
  const auto scaled = values_of({distribution::scaled_normal, 0, 0}, dtype::float32, {100, 64});
  const auto plain = values_of({distribution::normal, 0, 0}, dtype::float32, {100, 64});
  for (size_t i = 0; i < plain.size(); ++i)
    CHECK(scaled[i] == doctest::Approx(plain[i] / 8).epsilon(1e-6));
}

TEST_CASE("empty and 0-dimensional tensors can be drawn") {
  CHECK(bytes_of({distribution::softmax_rows, 0, 0}, dtype::float32, {3, 0}).empty());
  CHECK(bytes_of({distribution::scaled_normal, 0, 0}, dtype::float32, {}).size() == 4);
}

TEST_CASE("a scattered mask leaves the diagonal open and masks half of the rest, on both sides") {
  const auto values = values_of({distribution::scattered_mask, 0, 0}, dtype::float32, {3, 64, 64});
  size_t masked_above = 0;
  size_t masked_below = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t row = i / 64 % 64;
    const size_t column = i % 64;
    CHECK((values[i] == 0 || values[i] == -std::numeric_limits<float>::max()));
    if (row == column)
      CHECK(values[i] == 0);
    else if (values[i] != 0)
      ++(column > row ? masked_above : masked_below);
  }
  const double half = 3 * 63 * 64 / 4.0;
  CHECK(static_cast<double>(masked_above) == doctest::Approx(half).epsilon(0.05));
  CHECK(static_cast<double>(masked_below) == doctest::Approx(half).epsilon(0.05));
}

TEST_CASE("the held-out binary mask is 1 three times of four") {
  const auto values = values_of({distribution::mostly_ones, 0, 1}, dtype::bfloat16, {100, 100});
  double ones = 0;
  for (float x : values) {
    CHECK((x == 0 || x == 1));
    ones += x;
  }
  CHECK(ones / 1e4 == doctest::Approx(0.75).epsilon(0.02));
}

TEST_CASE("Zipf's integers stay in their range, and the lowest is the most frequent") {
  const auto values = values_of({distribution::zipf_int, 10, 109}, dtype::int32, {20'000});
  std::vector<int> counts(100);
  for (float x : values) {
    REQUIRE((x >= 10 && x <= 109));
    ++counts[static_cast<size_t>(x) - 10];
  }
  // A chance of about ln((k + 1) / k) / ln(101) for the k-th.
  CHECK(counts[0] == doctest::Approx(20'000 * 0.1502).epsilon(0.06));
  CHECK(counts[1] == doctest::Approx(20'000 * 0.0879).epsilon(0.08));
  CHECK(std::accumulate(counts.begin() + 50, counts.end(), 0) > 1500);
}

TEST_CASE("rows without spread, rows with a NaN and stretched values are what their names say") {
  const auto flat = values_of({distribution::constant_rows, 0, 0}, dtype::float32, {16, 40});
  std::set<float> seen;
  for (size_t row = 0; row < 16; ++row) {
    seen.insert(flat[row * 40]);
    for (size_t i = 0; i < 40; ++i)
      CHECK(flat[row * 40 + i] == flat[row * 40]);
  }
  CHECK(seen.size() == 16);
  const auto holed = values_of({distribution::nan_rows, 0, 0}, dtype::bfloat16, {17, 40});
  for (size_t row = 0; row < 17; ++row) {
    const auto begin = holed.begin() + static_cast<std::ptrdiff_t>(row * 40);
    CHECK(std::count_if(begin, begin + 40, [](float x) { return std::isnan(x); })
      == (row % 8 == 0 ? 1 : 0));
  }
  const auto plain = values_of({distribution::normal, 0, 0}, dtype::float32, {1000});
  auto stretched = values_of({distribution::stretched_normal, 32, 0}, dtype::float32, {1000});
  for (size_t i = 0; i < plain.size(); ++i)
    CHECK(stretched[i] == doctest::Approx(32 * plain[i]));
}

TEST_CASE("a number is the only element of a 0-dimensional tensor, exact for integers") {
  const input_distribution wide{distribution::uniform_int, -1024, 1023};
  for (dtype type : {dtype::int64, dtype::int32, dtype::int16, dtype::float64, dtype::float32,
         dtype::float16, dtype::bfloat16, dtype::float8_e4m3fn}) {
    CAPTURE(name(type));
    const auto element = values_of(wide, type, {});
    const auto drawn = generate_number(wide, type, key);
    CHECK(drawn.number == static_cast<double>(element[0]));
    CHECK(drawn.is_integer == !is_float(type));
    if (drawn.is_integer)
      CHECK(static_cast<double>(drawn.integer) == drawn.number);
  }
  const auto flag = generate_number({distribution::uniform_bool, 0, 1}, dtype::boolean, key);
  CHECK((flag.integer == 0 || flag.integer == 1));
  CHECK(generate_number({distribution::ones, 0, 0}, dtype::float4_e2m1, key).number == 1);
}
