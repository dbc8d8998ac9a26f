#include "tensors/codec.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstring>
#include <limits>

namespace gristmill {

namespace {

/// A small binary format: sign, `exponent_bits`, `mantissa_bits`.
struct small_format {
  int exponent_bits;
  int mantissa_bits;
  /// The code of the largest finite value, without sign.
  uint32_t largest;
  /// Codes of infinity and NaN, without sign. A format without infinity overflows to NaN.
  uint32_t infinity;
  uint32_t nan;

  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
};

constexpr small_format fp16_format{5, 10, 0x7bff, 0x7c00, 0x7e00};
constexpr small_format e4m3fn_format{4, 3, 0x7e, 0x7f, 0x7f};
constexpr small_format e5m2_format{5, 2, 0x7b, 0x7c, 0x7e};
constexpr small_format e2m1_format{2, 1, 0x7, 0x7, 0x7};

// Rounds the magnitude of a float to the format: shifts the 24-bit significand so that its last
// kept bit is the format's last bit, and rounds to even. A carry runs into the exponent by itself,
// because the codes of a format are in the order of their values.
uint32_t round_to_format(uint32_t magnitude, const small_format& format, overflow_rule rule) {
  if (magnitude > 0x7f800000)
    return format.nan;
  if (magnitude == 0x7f800000)
    return rule == overflow_rule::saturate ? format.largest : format.infinity;
  if (magnitude == 0)
    return 0;
  int exponent = static_cast<int>(magnitude >> 23) - 127;
  uint32_t significand = magnitude & 0x7fffff;
  if (exponent == -127)
    exponent = -126; // A subnormal float: far below the smallest value of every format here.
  else
    significand |= 0x800000;
  int shift = 23 - format.mantissa_bits;
  uint32_t code_base = 0;
  const int smallest_exponent = 1 - format.bias();
  if (exponent < smallest_exponent)
    shift += smallest_exponent - exponent;
  else
    // The implicit bit of the significand adds one to the exponent field.
    code_base = static_cast<uint32_t>(exponent - smallest_exponent) << format.mantissa_bits;
  if (shift > 25)
    return 0; // Less than half of the smallest value.
  const uint32_t half = uint32_t{1} << (shift - 1);
  const uint32_t rest = significand & ((half << 1) - 1);
  uint32_t kept = significand >> shift;
  if (rest > half || (rest == half && (kept & 1) != 0))
    ++kept;
  const uint32_t code = code_base + kept;
  if (code > format.largest)
    return rule == overflow_rule::saturate ? format.largest : format.infinity;
  return code;
}

uint32_t encode(float value, const small_format& format, overflow_rule rule) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const int width = format.exponent_bits + format.mantissa_bits;
  return (bits >> 31 << width) | round_to_format(bits & 0x7fffffff, format, rule);
}

// Without infinities and NaN: the callers know their own.
float decode_finite(uint32_t code, const small_format& format) {
  const int width = format.exponent_bits + format.mantissa_bits;
  const uint32_t exponent = (code >> format.mantissa_bits) & ((1u << format.exponent_bits) - 1);
  const uint32_t mantissa = code & ((1u << format.mantissa_bits) - 1);
  const uint32_t significand = exponent == 0 ? mantissa : mantissa | (1u << format.mantissa_bits);
  const int scale =
    static_cast<int>(exponent == 0 ? 1 : exponent) - format.bias() - format.mantissa_bits;
  // A power of two within the floats' normal range, so the product is exact.
  const auto power = std::bit_cast<float>(static_cast<uint32_t>(scale + 127) << 23);
  const float magnitude = static_cast<float>(significand) * power;
  return ((code >> width) & 1) != 0 ? -magnitude : magnitude;
}

float signed_nan(bool negative) {
  return std::bit_cast<float>(negative ? 0xffc00000u : 0x7fc00000u);
}

float decode_e4m3fn(uint32_t code) {
  return (code & 0x7f) == 0x7f ? signed_nan(code > 0x7f) : decode_finite(code, e4m3fn_format);
}

float decode_e5m2(uint32_t code) {
  if ((code & 0x7f) == 0x7c)
    return std::bit_cast<float>(code > 0x7f ? 0xff800000u : 0x7f800000u);
  return (code & 0x7f) > 0x7c ? signed_nan(code > 0x7f) : decode_finite(code, e5m2_format);
}

using decode_table = std::array<float, 256>;

template <class Function>
decode_table make_table(Function decode) {
  decode_table table{};
  for (uint32_t code = 0; code < 256; ++code)
    table[code] = decode(code);
  return table;
}

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class Stored, class Function>
void decode_each(std::span<const std::byte> in, std::span<float> out, Function decode) {
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = decode(load<Stored>(in.data() + i * sizeof(Stored)));
}

template <class Stored, class Function>
void encode_each(std::span<const float> in, std::span<std::byte> out, Function encode_one) {
  for (size_t i = 0; i < in.size(); ++i) {
    const Stored value = encode_one(in[i]);
    std::memcpy(out.data() + i * sizeof(Stored), &value, sizeof value);
  }
}

// Rounds half to even without the library: the same under every rounding mode of the process.
template <class Integer>
Integer integer_from_float(float value) {
  if (value != value)
    return 0;
  const auto wide = static_cast<double>(value);
  constexpr auto lowest = std::numeric_limits<Integer>::min();
  constexpr auto highest = std::numeric_limits<Integer>::max();
  if (wide <= static_cast<double>(lowest))
    return lowest;
  // For 64 bits this is 2^63, itself out of range.
  if (wide >= static_cast<double>(highest))
    return highest;
  const auto whole = static_cast<int64_t>(wide);
  const double rest = wide - static_cast<double>(whole);
  const bool odd = (whole & 1) != 0;
  if (rest > 0.5 || (rest == 0.5 && odd))
    return static_cast<Integer>(whole + 1);
  if (rest < -0.5 || (rest == -0.5 && odd))
    return static_cast<Integer>(whole - 1);
  return static_cast<Integer>(whole);
}

} // namespace

float float_from_bf16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

uint16_t bf16_from_float(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return static_cast<uint16_t>((bits >> 16 & 0x8000) | 0x7fc0);
  // Adding just under half, or half when the kept part is odd, rounds to even; the largest floats
  // carry over into infinity, as they must.
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float float_from_fp16(uint16_t bits) {
  const uint32_t magnitude = bits & 0x7fffu;
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  if (magnitude == fp16_format.infinity)
    return std::bit_cast<float>(sign | 0x7f800000u);
  if (magnitude > fp16_format.infinity)
    return signed_nan(sign != 0);
  return decode_finite(bits, fp16_format);
}

uint16_t fp16_from_float(float value) {
  return static_cast<uint16_t>(encode(value, fp16_format, overflow_rule::special));
}

float float_from_fp8_e4m3fn(uint8_t bits) {
  return decode_e4m3fn(bits);
}

uint8_t fp8_e4m3fn_from_float(float value, overflow_rule rule) {
  return static_cast<uint8_t>(encode(value, e4m3fn_format, rule));
}

float float_from_fp8_e5m2(uint8_t bits) {
  return decode_e5m2(bits);
}

uint8_t fp8_e5m2_from_float(float value, overflow_rule rule) {
  return static_cast<uint8_t>(encode(value, e5m2_format, rule));
}

float float_from_fp4(uint8_t nibble) {
  return decode_finite(nibble & 0xfu, e2m1_format);
}

uint8_t fp4_from_float(float value) {
  if (value != value)
    return 0x7;
  return static_cast<uint8_t>(encode(value, e2m1_format, overflow_rule::saturate));
}

void decode_to_float(dtype type, std::span<const std::byte> in, std::span<float> out) {
  assert(in.size() * 8 == out.size() * element_bits(type));
  static const decode_table e4m3fn = make_table(decode_e4m3fn);
  static const decode_table e5m2 = make_table(decode_e5m2);
  switch (type) {
  case dtype::float64:
    return decode_each<double>(in, out, [](double x) { return static_cast<float>(x); });
  case dtype::float32:
    if (!out.empty())
      std::memcpy(out.data(), in.data(), in.size());
    return;
  case dtype::float16:
    return decode_each<uint16_t>(in, out, float_from_fp16);
  case dtype::bfloat16:
    return decode_each<uint16_t>(in, out, float_from_bf16);
  case dtype::float8_e4m3fn:
    return decode_each<uint8_t>(in, out, [](uint8_t x) { return e4m3fn[x]; });
  case dtype::float8_e5m2:
    return decode_each<uint8_t>(in, out, [](uint8_t x) { return e5m2[x]; });
  case dtype::float4_e2m1:
  case dtype::float4_e2m1fn_x2:
    for (size_t i = 0; i < out.size(); ++i) {
      const auto pair = std::to_integer<uint8_t>(in[i / 2]);
      out[i] = float_from_fp4(i % 2 == 0 ? pair : static_cast<uint8_t>(pair >> 4));
    }
    return;
  case dtype::int64:
    return decode_each<int64_t>(in, out, [](int64_t x) { return static_cast<float>(x); });
  case dtype::int32:
    return decode_each<int32_t>(in, out, [](int32_t x) { return static_cast<float>(x); });
  case dtype::int16:
    return decode_each<int16_t>(in, out, [](int16_t x) { return static_cast<float>(x); });
  case dtype::int8:
    return decode_each<int8_t>(in, out, [](int8_t x) { return static_cast<float>(x); });
  case dtype::boolean:
    return decode_each<uint8_t>(in, out, [](uint8_t x) { return x != 0 ? 1.0f : 0.0f; });
  }
}

void encode_from_float(
  dtype type, std::span<const float> in, std::span<std::byte> out, overflow_rule rule) {
  assert(out.size() * 8 == in.size() * element_bits(type));
  switch (type) {
  case dtype::float64:
    return encode_each<double>(in, out, [](float x) { return static_cast<double>(x); });
  case dtype::float32:
    if (!in.empty())
      std::memcpy(out.data(), in.data(), out.size());
    return;
  case dtype::float16:
    return encode_each<uint16_t>(in, out, fp16_from_float);
  case dtype::bfloat16:
    return encode_each<uint16_t>(in, out, bf16_from_float);
  case dtype::float8_e4m3fn:
    return encode_each<uint8_t>(in, out, [&](float x) { return fp8_e4m3fn_from_float(x, rule); });
  case dtype::float8_e5m2:
    return encode_each<uint8_t>(in, out, [&](float x) { return fp8_e5m2_from_float(x, rule); });
  case dtype::float4_e2m1:
  case dtype::float4_e2m1fn_x2:
    for (size_t i = 0; i + 1 < in.size(); i += 2)
      out[i / 2] = static_cast<std::byte>(fp4_from_float(in[i]) | fp4_from_float(in[i + 1]) << 4);
    return;
  case dtype::int64:
    return encode_each<int64_t>(in, out, integer_from_float<int64_t>);
  case dtype::int32:
    return encode_each<int32_t>(in, out, integer_from_float<int32_t>);
  case dtype::int16:
    return encode_each<int16_t>(in, out, integer_from_float<int16_t>);
  case dtype::int8:
    return encode_each<int8_t>(in, out, integer_from_float<int8_t>);
  case dtype::boolean:
    return encode_each<uint8_t>(
      in, out, [](float x) { return static_cast<uint8_t>(x != 0.0f ? 1 : 0); });
  }
}

} // namespace gristmill
