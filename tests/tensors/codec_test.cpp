#include "tensors/codec.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <limits>
#include <vector>

using namespace gristmill;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
const float nan_value = std::numeric_limits<float>::quiet_NaN();

/// Every float that matters for a format: each finite value, each midpoint between two neighbours,
/// and the floats right beside the midpoint. The expected code is known without the encoder.
template <class Decode, class Encode>
void check_all_roundings(uint32_t largest, Decode decode, Encode encode) {
  for (uint32_t code = 0; code < largest; ++code) {
    const float low = decode(code);
    const float high = decode(code + 1);
    const float middle = low + (high - low) / 2;
    CAPTURE(code);
    CHECK(encode(low) == code);
    CHECK(encode(middle) == (code % 2 == 0 ? code : code + 1));
    CHECK(encode(std::nextafter(middle, -infinity)) == code);
    CHECK(encode(std::nextafter(middle, infinity)) == code + 1);
    CHECK(encode(-high) != encode(high));
    CHECK(decode(encode(-high)) == -high);
  }
}

} // namespace

TEST_CASE("fp16 rounds every midpoint to even") {
  check_all_roundings(
    0x7bff, [](uint32_t code) { return float_from_fp16(static_cast<uint16_t>(code)); },
    [](float x) { return static_cast<uint32_t>(fp16_from_float(x)); });
}

TEST_CASE("bf16 rounds every midpoint to even") {
  check_all_roundings(
    0x7f7f, [](uint32_t code) { return float_from_bf16(static_cast<uint16_t>(code)); },
    [](float x) { return static_cast<uint32_t>(bf16_from_float(x)); });
}

TEST_CASE("both fp8 formats round every midpoint to even") {
  check_all_roundings(
    0x7e, [](uint32_t code) { return float_from_fp8_e4m3fn(static_cast<uint8_t>(code)); },
    [](float x) { return static_cast<uint32_t>(fp8_e4m3fn_from_float(x)); });
  check_all_roundings(
    0x7b, [](uint32_t code) { return float_from_fp8_e5m2(static_cast<uint8_t>(code)); },
    [](float x) { return static_cast<uint32_t>(fp8_e5m2_from_float(x)); });
}

TEST_CASE("fp4 holds 0, 0.5, 1, 1.5, 2, 3, 4, 6 and rounds midpoints to even") {
  const float values[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  for (uint8_t code = 0; code < 8; ++code) {
    CHECK(float_from_fp4(code) == values[code]);
    CHECK(float_from_fp4(code | 8) == -values[code]);
  }
  check_all_roundings(
    7, [](uint32_t code) { return float_from_fp4(static_cast<uint8_t>(code)); },
    [](float x) { return static_cast<uint32_t>(fp4_from_float(x)); });
  CHECK(fp4_from_float(1e30f) == 7);
  CHECK(fp4_from_float(-infinity) == 15);
  CHECK(fp4_from_float(nan_value) == 7);
}

TEST_CASE("the largest values of the formats are the published ones") {
  CHECK(float_from_fp16(0x7bff) == 65504.0f);
  CHECK(float_from_fp8_e4m3fn(0x7e) == 448.0f);
  CHECK(float_from_fp8_e5m2(0x7b) == 57344.0f);
  CHECK(float_from_fp16(1) == std::ldexp(1.0f, -24));
  CHECK(float_from_fp8_e4m3fn(1) == std::ldexp(1.0f, -9));
  CHECK(float_from_fp8_e5m2(1) == std::ldexp(1.0f, -16));
}

TEST_CASE("a value beyond the largest becomes infinity, or NaN where there is none") {
  CHECK(fp16_from_float(65519.0f) == 0x7bff);
  CHECK(fp16_from_float(65520.0f) == 0x7c00);
  CHECK(fp8_e5m2_from_float(61440.0f) == 0x7c);
  CHECK(fp8_e4m3fn_from_float(464.0f) == 0x7e); // A tie with the code of NaN goes to even.
  CHECK(fp8_e4m3fn_from_float(465.0f) == 0x7f);
  CHECK(fp8_e4m3fn_from_float(infinity) == 0x7f);
  CHECK(bf16_from_float(std::numeric_limits<float>::max()) == 0x7f80);
}

TEST_CASE("a saturating conversion stops at the largest value") {
  CHECK(fp8_e4m3fn_from_float(1e30f, overflow_rule::saturate) == 0x7e);
  CHECK(fp8_e4m3fn_from_float(-infinity, overflow_rule::saturate) == 0xfe);
  CHECK(fp8_e5m2_from_float(infinity, overflow_rule::saturate) == 0x7b);
  CHECK(fp8_e5m2_from_float(nan_value, overflow_rule::saturate) == 0x7e);
}

TEST_CASE("NaN and infinity survive both ways") {
  CHECK(std::isnan(float_from_fp16(fp16_from_float(nan_value))));
  CHECK(std::isnan(float_from_bf16(bf16_from_float(nan_value))));
  CHECK(std::isnan(float_from_fp8_e4m3fn(fp8_e4m3fn_from_float(-nan_value))));
  CHECK(std::isnan(float_from_fp8_e5m2(fp8_e5m2_from_float(nan_value))));
  CHECK(float_from_fp16(fp16_from_float(-infinity)) == -infinity);
  CHECK(float_from_bf16(bf16_from_float(infinity)) == infinity);
  CHECK(float_from_fp8_e5m2(0xfc) == -infinity);
  // The last payload bits must not carry a NaN over into infinity or zero.
  CHECK(std::isnan(float_from_bf16(bf16_from_float(std::bit_cast<float>(0x7f800001u)))));
}

TEST_CASE("zeros keep their sign and tiny values vanish") {
  CHECK(fp16_from_float(-0.0f) == 0x8000);
  CHECK(fp8_e4m3fn_from_float(-1e-30f) == 0x80);
  CHECK(fp16_from_float(1e-40f) == 0);
}

TEST_CASE("bulk decoding gives what one value at a time gives, for every dtype") {
  for (const auto& text : dtype_names()) {
    const auto type = *parse_dtype(text);
    CAPTURE(text);
    const std::vector<float> in{0, 1, -1, 2, 3, -4, 6, 1};
    std::vector<std::byte> bytes(in.size() * element_bits(type) / 8);
    encode_from_float(type, in, bytes);
    std::vector<float> out(in.size());
    decode_to_float(type, bytes, out);
    if (type == dtype::boolean)
      CHECK(out == std::vector<float>{0, 1, 1, 1, 1, 1, 1, 1});
    else
      CHECK(out == in);
  }
}

TEST_CASE("fp4 packs the even index into the low nibble") {
  const std::vector<float> in{0.5f, -6.0f};
  std::vector<std::byte> bytes(1);
  encode_from_float(dtype::float4_e2m1, in, bytes);
  CHECK(std::to_integer<int>(bytes[0]) == 0xf1);
}

TEST_CASE("integers round to even and saturate") {
  const std::vector<float> in{2.5f, 3.5f, -2.5f, 1e30f, -1e30f, nan_value};
  std::vector<std::byte> bytes(in.size());
  encode_from_float(dtype::int8, in, bytes);
  std::vector<float> out(in.size());
  decode_to_float(dtype::int8, bytes, out);
  CHECK(out == std::vector<float>{2, 4, -2, 127, -128, 0});
  bytes.resize(in.size() * 8);
  encode_from_float(dtype::int64, in, bytes);
  decode_to_float(dtype::int64, bytes, out);
  CHECK(out[3] == 9223372036854775808.0f);
  CHECK(out[4] == -9223372036854775808.0f);
}

TEST_CASE("many elements decode as one by one, at every length") {
  std::vector<std::byte> stored(2 * 65536);
  for (size_t i = 0; i < 65536; ++i) {
    const auto code = static_cast<uint16_t>(i);
    std::memcpy(stored.data() + 2 * i, &code, 2);
  }
  const auto bits = [](float x) { return std::bit_cast<uint32_t>(x); };
  std::vector<float> out(65536);
  decode_to_float(dtype::float16, stored, out);
  size_t wrong = 0;
  for (size_t i = 0; i < out.size(); ++i)
    wrong += bits(out[i]) != bits(float_from_fp16(static_cast<uint16_t>(i)));
  decode_to_float(dtype::bfloat16, stored, out);
  for (size_t i = 0; i < out.size(); ++i)
    wrong += bits(out[i]) != bits(float_from_bf16(static_cast<uint16_t>(i)));
  decode_to_float(dtype::int16, stored, out);
  for (size_t i = 0; i < out.size(); ++i)
    wrong += out[i] != static_cast<float>(static_cast<int16_t>(i));
  CHECK(wrong == 0);
  std::vector<std::byte> codes(256);
  for (size_t i = 0; i < codes.size(); ++i)
    codes[i] = static_cast<std::byte>(i);
  for (size_t count = 0; count <= 256; count += count < 40 ? 1 : 27) {
    CAPTURE(count);
    const auto in = std::span(codes).first(count);
    const auto some = std::span(out).first(count);
    decode_to_float(dtype::int8, in, some);
    for (size_t i = 0; i < count; ++i)
      wrong += some[i] != static_cast<float>(static_cast<int8_t>(i));
    decode_to_float(dtype::boolean, in, some);
    for (size_t i = 0; i < count; ++i)
      wrong += some[i] != (i == 0 ? 0.0f : 1.0f);
    decode_to_float(dtype::float8_e4m3fn, in, some);
    for (size_t i = 0; i < count; ++i)
      wrong += bits(some[i]) != bits(float_from_fp8_e4m3fn(static_cast<uint8_t>(i)));
    decode_to_float(dtype::float8_e5m2, in, some);
    for (size_t i = 0; i < count; ++i)
      wrong += bits(some[i]) != bits(float_from_fp8_e5m2(static_cast<uint8_t>(i)));
    const auto pairs = std::span(out).first(2 * count);
    decode_to_float(dtype::float4_e2m1, in, pairs);
    for (size_t i = 0; i < pairs.size(); ++i)
      wrong += pairs[i] != float_from_fp4(static_cast<uint8_t>(i / 2 >> (i % 2 * 4) & 15));
    CHECK(wrong == 0);
  }
}
