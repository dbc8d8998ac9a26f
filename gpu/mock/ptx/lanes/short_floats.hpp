#pragma once

#include "gpu/mock/ptx/lanes/floats.hpp"

/// Floats of 8, 6 and 4 bits, and scales of 8. Those of 6 and 4 bits and the scales are unverified
/// on hardware: made from the PTX manual's words on `cvt` and the CUDA headers' words on NaN and
/// signs.
namespace gristmill::ptx::GRISTMILL_PTX_LANES {

// `lowest`: the exponent of the smallest normal number.
struct e4m3 {
  static constexpr int exponent = 4, mantissa = 3, lowest = -6;
  static constexpr float largest = 448.0F;
};
struct e5m2 {
  static constexpr int exponent = 5, mantissa = 2, lowest = -14;
  static constexpr float largest = 57344.0F;
};
// The others have neither an infinity nor a NaN.
struct e2m3 {
  static constexpr int exponent = 2, mantissa = 3, lowest = 0;
  static constexpr float largest = 7.5F;
};
struct e3m2 {
  static constexpr int exponent = 3, mantissa = 2, lowest = -2;
  static constexpr float largest = 28.0F;
};
struct e2m1 {
  static constexpr int exponent = 2, mantissa = 1, lowest = 0;
  static constexpr float largest = 6.0F;
};

template <class T>
constexpr int short_bits = 1 + T::exponent + T::mantissa;

/// To nearest even; what is too large becomes the largest finite value. NaN becomes all ones but
/// the sign, which is NaN or, where there is none, the largest value.
template <class T>
inline uint32_t to_short(float x) {
  if (x != x)
    return (1U << (short_bits<T> - 1)) - 1;
  const uint32_t sign = (bits(x) >> 31) << (short_bits<T> - 1);
  float a = from_bits(bits(x) & 0x7fffffff);
  a = a > T::largest ? T::largest : a;
  // One unit in the last place at the exponent of the value, or of the smallest normal one.
  int exponent = static_cast<int>(bits(a) >> 23) - 127;
  exponent = exponent < T::lowest ? T::lowest : exponent;
  const float unit = from_bits(static_cast<uint32_t>(exponent - T::mantissa + 127) << 23);
  // `steps` counts from 0 in the subnormals and from 2^mantissa in a binade; a carry moves on.
  const int steps = static_cast<int>(__builtin_rintf(a / unit));
  return sign | static_cast<uint32_t>(((exponent - T::lowest) << T::mantissa) + steps);
}

/// The number in the low bits, exactly.
template <class T>
inline float from_short(uint32_t x) {
  static_assert(short_bits<T> < 8, "codes of infinity or NaN are not looked at");
  const uint32_t magnitude = x & ((1U << (short_bits<T> - 1)) - 1);
  const auto exponent = static_cast<int>(magnitude >> T::mantissa);
  const uint32_t fraction = magnitude & ((1U << T::mantissa) - 1);
  const int scale = (exponent == 0 ? T::lowest : exponent - 1 + T::lowest) - T::mantissa;
  const uint32_t steps = exponent == 0 ? fraction : fraction | 1U << T::mantissa;
  const float value =
    static_cast<float>(steps) * from_bits(static_cast<uint32_t>(scale + 127) << 23);
  return x >> (short_bits<T> - 1) & 1 ? -value : value;
}

/// A power of two as its exponent plus 127; 255 is NaN. The sign does not count.
inline uint32_t to_scale(float x, bool up, bool finite) {
  const uint32_t u = bits(x) & 0x7fffffff;
  if (u > 0x7f800000)
    return 255;
  if (u == 0x7f800000)
    return finite ? 254 : 255;
  uint32_t exponent = u >> 23;
  // The lowest power is 2^-127, in the middle of the subnormal floats.
  if (up && (exponent == 0 ? u > 0x400000 : (u & 0x7fffff) != 0))
    ++exponent;
  return exponent == 255 && finite ? 254 : exponent;
}

} // namespace gristmill::ptx::GRISTMILL_PTX_LANES
