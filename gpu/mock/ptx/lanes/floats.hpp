#pragma once

#include "gpu/mock/ptx/lanes/loops.hpp"

/// Floating-point rules of PTX that the processor does not have.
namespace gristmill::ptx::GRISTMILL_PTX_LANES {

inline uint32_t bits(float x) {
  return __builtin_bit_cast(uint32_t, x);
}
inline uint64_t bits(double x) {
  return __builtin_bit_cast(uint64_t, x);
}
inline float from_bits(uint32_t x) {
  return __builtin_bit_cast(float, x);
}
inline double from_bits(uint64_t x) {
  return __builtin_bit_cast(double, x);
}

inline float canonical_nan(float) {
  return from_bits(uint32_t{0x7fffffff});
}
inline double canonical_nan(double) {
  return from_bits(uint64_t{0x7ff8000000000000});
}

/// Arithmetic gives one NaN only, whatever the payloads of the operands: which of two payloads an
/// x86 processor keeps depends on how the compiler orders the operands.
template <class T>
inline T settled(T x) {
  return x == x ? x : canonical_nan(x);
}

/// Subnormal numbers become zero of the same sign.
inline float flushed(float x) {
  const uint32_t u = bits(x);
  return (u & 0x7f800000) != 0 ? x : from_bits(u & 0x80000000);
}

enum class subnormals { kept, flushed };

template <subnormals S, class T>
inline T input(T x) {
  if constexpr (S == subnormals::flushed)
    return flushed(x);
  else
    return x;
}

enum class range { full, unit };

/// Into 0..1, NaN to 0: what `.sat` does.
template <class T>
inline T unit(T x) {
  return x > T{0} ? (x < T{1} ? x : T{1}) : T{0};
}

template <subnormals S, range R, class T>
inline T output(T x) {
  T result = settled(x);
  if constexpr (S == subnormals::flushed)
    result = flushed(result);
  if constexpr (R == range::unit)
    result = unit(result);
  return result;
}

inline float fused(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
inline double fused(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}

/// The number that is not NaN; -0 is less than +0.
template <class T>
inline T smaller(T a, T b) {
  const T ordered = a < b ? a : b < a ? b : from_bits(bits(a) | bits(b));
  return a != a ? settled(b) : b != b ? a : ordered;
}
template <class T>
inline T larger(T a, T b) {
  const T ordered = a > b ? a : b > a ? b : from_bits(bits(a) & bits(b));
  return a != a ? settled(b) : b != b ? a : ordered;
}
template <class T>
inline T smaller_or_nan(T a, T b) {
  return a != a || b != b ? canonical_nan(a) : smaller(a, b);
}
template <class T>
inline T larger_or_nan(T a, T b) {
  return a != a || b != b ? canonical_nan(a) : larger(a, b);
}

// 16-bit formats, by integer arithmetic on the bits: the same in every build, and it vectorises.

inline float from_half(uint16_t h) {
  const uint32_t sign = (h & 0x8000U) << 16;
  const uint32_t magnitude = h & 0x7fffU;
  // Exponent and mantissa in place, 112 too low in the exponent; the product puts that right, also
  // for subnormal numbers.
  const float scaled = from_bits(magnitude << 13) * from_bits(uint32_t{0x77800000});
  const uint32_t special = magnitude << 13 | 0x7f800000;
  return from_bits(sign | (magnitude >= 0x7c00 ? special : bits(scaled)));
}

/// The same by a mask. Of the choice above the compiler makes a branch around the product, which it
/// does not vectorise; with this one it does, and takes a minute for half.cpp.
inline float from_half_by_mask(uint16_t h) {
  const uint32_t sign = (h & 0x8000U) << 16;
  const uint32_t magnitude = h & 0x7fffU;
  const uint32_t scaled = bits(from_bits(magnitude << 13) * from_bits(uint32_t{0x77800000}));
  const uint32_t special = magnitude << 13 | 0x7f800000;
  const uint32_t mask = 0 - static_cast<uint32_t>(magnitude >= 0x7c00);
  return from_bits(sign | (special & mask) | (scaled & ~mask));
}

/// To the nearest, ties to even; overflow to infinity; one NaN.
inline uint16_t to_half(float x) {
  const uint32_t u = bits(x);
  const uint32_t sign = u >> 16 & 0x8000;
  const uint32_t magnitude = u & 0x7fffffff;
  // Normal results: rebias by 112, round at bit 13.
  const uint32_t normal = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
  // Subnormal results: adding 0.5 makes the processor round to a multiple of 2^-24.
  const uint32_t subnormal = bits(from_bits(magnitude) + 0.5F) - 0x3f000000;
  uint32_t result = magnitude < 0x38800000 ? subnormal : normal;
  result = magnitude >= 0x477ff000 ? 0x7c00 : result;
  return static_cast<uint16_t>(magnitude > 0x7f800000 ? 0x7fff : sign | result);
}

inline float from_bfloat(uint16_t h) {
  return from_bits(static_cast<uint32_t>(h) << 16);
}

inline uint16_t to_bfloat(float x) {
  const uint32_t u = bits(x);
  const uint32_t rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;
  return static_cast<uint16_t>((u & 0x7fffffff) > 0x7f800000 ? 0x7fff : rounded);
}

/// `x` is inexact by `error` (x + error is the true value): the neighbour whose last bit is 1.
/// Rounding that to fewer bits gives what rounding the true value would have given.
inline float rounded_to_odd(float x, float error) {
  const uint32_t u = bits(x);
  const bool even = (u & 1) == 0;
  // By the sign bit: a value that underflowed to zero has one as well.
  const uint32_t outward = (error > 0) == (u >> 31 == 0) ? u + 1 : u - 1;
  // An infinite value has an error that is NaN, and stays what it is.
  return from_bits(((error > 0) | (error < 0)) && even ? outward : u);
}
inline double rounded_to_odd(double x, double error) {
  const uint64_t u = bits(x);
  const bool even = (u & 1) == 0;
  const uint64_t outward = (error > 0) == (u >> 63 == 0) ? u + 1 : u - 1;
  return from_bits(((error > 0) | (error < 0)) && even ? outward : u);
}

/// What a + b lost in rounding.
template <class T>
inline T error_of_sum(T a, T b, T sum) {
  const T part = sum - a;
  return (a - (sum - part)) + (b - part);
}

/// Double to single, rounded to odd.
inline float narrowed_to_odd(double x) {
  const auto f = static_cast<float>(x);
  const double error = x - static_cast<double>(f);
  // What overflows is the largest number, whose last bit is 1: the next rounding makes that
  // infinity or not, as its direction says.
  const bool finite = (bits(f) & 0x7f800000) != 0x7f800000;
  const bool overflows = !finite && (bits(x) & 0x7ff0000000000000) != 0x7ff0000000000000;
  const float largest = from_bits((bits(f) & 0x80000000) | 0x7f7fffff);
  return finite ? rounded_to_odd(f,
           static_cast<float>(error > 0 ? 1
               : error < 0              ? -1
                                        : 0))
    : overflows ? largest
                : f;
}

} // namespace gristmill::ptx::GRISTMILL_PTX_LANES
