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

// ---- many at a time ----
//
// In the compiler's vector types, so that the speed does not depend on flags.

using floats4 = float __attribute__((vector_size(16)));
using words4 = uint32_t __attribute__((vector_size(16)));
using signed4 = int32_t __attribute__((vector_size(16)));
using shorts8 = uint16_t __attribute__((vector_size(16)));
using bytes16 = uint8_t __attribute__((vector_size(16)));

template <class To, class From>
To as(From value) {
  static_assert(sizeof(To) == sizeof(From));
  To out;
  std::memcpy(&out, &value, sizeof out);
  return out;
}

// A half or a quarter of a vector, each element in the low bits of a wider one.
words4 low_words(shorts8 x) {
  return as<words4>(__builtin_shufflevector(x, shorts8{}, 0, 8, 1, 9, 2, 10, 3, 11));
}
words4 high_words(shorts8 x) {
  return as<words4>(__builtin_shufflevector(x, shorts8{}, 4, 12, 5, 13, 6, 14, 7, 15));
}
shorts8 low_shorts(bytes16 x) {
  return as<shorts8>(
    __builtin_shufflevector(x, bytes16{}, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23));
}
shorts8 high_shorts(bytes16 x) {
  return as<shorts8>(__builtin_shufflevector(
    x, bytes16{}, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31));
}

void store_words(float* to, words4 bits) {
  std::memcpy(to, &bits, sizeof bits);
}

/// Two-byte elements: `four` takes them in the low halves of words and gives the bits of floats,
/// `one` is for those that are left at the end.
template <class Four, class One>
void decode_shorts(std::span<const std::byte> in, std::span<float> out, Four four, One one) {
  size_t i = 0;
  for (; i + 8 <= out.size(); i += 8) {
    const auto stored = load<shorts8>(in.data() + i * sizeof(uint16_t));
    store_words(out.data() + i, four(low_words(stored)));
    store_words(out.data() + i + 4, four(high_words(stored)));
  }
  for (; i < out.size(); ++i)
    out[i] = one(load<uint16_t>(in.data() + i * sizeof(uint16_t)));
}

/// The same for elements of one byte.
template <class Four, class One>
void decode_bytes(std::span<const std::byte> in, std::span<float> out, Four four, One one) {
  size_t i = 0;
  for (; i + 16 <= out.size(); i += 16) {
    const auto stored = load<bytes16>(in.data() + i);
    const auto low = low_shorts(stored);
    const auto high = high_shorts(stored);
    store_words(out.data() + i, four(low_words(low)));
    store_words(out.data() + i + 4, four(high_words(low)));
    store_words(out.data() + i + 8, four(low_words(high)));
    store_words(out.data() + i + 12, four(high_words(high)));
  }
  for (; i < out.size(); ++i)
    out[i] = one(std::to_integer<uint8_t>(in[i]));
}

/// fp16 from the low halves of words. The exponent is moved by addition; a subnormal gets an
/// implicit bit, which is subtracted again as a number, exactly.
words4 words_from_fp16(words4 code) {
  constexpr uint32_t bias = 112u << 23; // The difference of the two formats' biases.
  constexpr uint32_t one_more = bias + (1u << 23);
  const words4 magnitude = (code & 0x7fff) << 13;
  const floats4 small = as<floats4>(magnitude + one_more) - std::bit_cast<float>(one_more);
  words4 bits = (magnitude >> 23) == 0 ? as<words4>(small) : magnitude + bias;
  const auto kept = as<signed4>(code & 0x7fff);
  bits = kept == 0x7c00 ? words4{} + 0x7f800000u : bits;
  bits = kept > 0x7c00 ? words4{} + 0x7fc00000u : bits;
  return bits | (code & 0x8000) << 16;
}

/// Sign-extends the low bits of words and makes floats of them.
template <int unused_bits>
words4 words_from_integer(words4 code) {
  const signed4 value = as<signed4>(code << unused_bits) >> unused_bits;
  return as<words4>(__builtin_convertvector(value, floats4));
}

/// What each byte stands for: one float of an fp8 format, or the two of fp4.
template <size_t count>
using byte_table = std::array<std::array<float, count>, 256>;

template <size_t count, class Function>
byte_table<count> make_table(Function decode) {
  byte_table<count> table{};
  for (uint32_t code = 0; code < 256; ++code)
    for (size_t i = 0; i < count; ++i)
      table[code][i] = decode(code >> (4 * i));
  return table;
}

template <size_t count>
void decode_by_table(
  std::span<const std::byte> in, std::span<float> out, const byte_table<count>& table) {
  for (size_t i = 0; i < in.size(); ++i)
    std::memcpy(
      out.data() + count * i, &table[std::to_integer<size_t>(in[i])], count * sizeof(float));
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
  static const auto e4m3fn = make_table<1>(decode_e4m3fn);
  static const auto e5m2 = make_table<1>(decode_e5m2);
  static const auto fp4 =
    make_table<2>([](uint32_t code) { return decode_finite(code & 0xf, e2m1_format); });
  switch (type) {
  case dtype::float64:
    return decode_each<double>(in, out, [](double x) { return static_cast<float>(x); });
  case dtype::float32:
    if (!out.empty())
      std::memcpy(out.data(), in.data(), in.size());
    return;
  case dtype::float16:
    return decode_shorts(in, out, words_from_fp16, float_from_fp16);
  case dtype::bfloat16:
    return decode_shorts(
      in, out, [](words4 x) { return x << 16; }, float_from_bf16);
  case dtype::float8_e4m3fn:
    return decode_by_table(in, out, e4m3fn);
  case dtype::float8_e5m2:
    return decode_by_table(in, out, e5m2);
  case dtype::float4_e2m1:
  case dtype::float4_e2m1fn_x2:
    return decode_by_table(in, out, fp4);
  case dtype::int64:
    return decode_each<int64_t>(in, out, [](int64_t x) { return static_cast<float>(x); });
  case dtype::int32:
    return decode_each<int32_t>(in, out, [](int32_t x) { return static_cast<float>(x); });
  case dtype::int16:
    return decode_shorts(in, out, words_from_integer<16>,
      [](uint16_t x) { return static_cast<float>(static_cast<int16_t>(x)); });
  case dtype::int8:
    return decode_bytes(in, out, words_from_integer<24>,
      [](uint8_t x) { return static_cast<float>(static_cast<int8_t>(x)); });
  case dtype::boolean:
    return decode_bytes(
      in, out, [](words4 x) { return as<words4>(x != 0) & 0x3f800000u; },
      [](uint8_t x) { return x != 0 ? 1.0f : 0.0f; });
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
