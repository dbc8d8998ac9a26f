#pragma once

/// Conversions of floats of 4 and 6 bits and of scales, which sm_100 has. Unverified on hardware:
/// made from the PTX manual's words on `cvt` and the CUDA headers' words on NaN and signs.
/// Included by convert.cpp only, inside its namespace.

// Neither format has an infinity or a NaN. An element stands in the low bits of its place.
struct e2m1 {
  static constexpr int exponent = 2, mantissa = 1, lowest = 0;
  static constexpr float largest = 6.0F;
};
struct e2m3 {
  static constexpr int exponent = 2, mantissa = 3, lowest = 0;
  static constexpr float largest = 7.5F;
};
struct e3m2 {
  static constexpr int exponent = 3, mantissa = 2, lowest = -2;
  static constexpr float largest = 28.0F;
};

template <class T>
constexpr int short_bits = 1 + T::exponent + T::mantissa;
/// From one element of a pair to the next: nibbles, else bytes.
template <class T>
constexpr int short_step = short_bits<T> == 4 ? 4 : 8;

/// To nearest even; too large ones become the largest value, and NaN does, too.
template <class T>
inline uint32_t to_short(float x, bool relu) {
  constexpr uint32_t highest = (1U << (short_bits<T> - 1)) - 1;
  if (x != x)
    return highest;
  if (relu && x <= 0)
    return 0;
  float a = from_bits(bits(x) & 0x7fffffff);
  a = a > T::largest ? T::largest : a;
  int exponent = static_cast<int>(bits(a) >> 23) - 127;
  exponent = exponent < T::lowest ? T::lowest : exponent;
  const float unit = from_bits(static_cast<uint32_t>(exponent - T::mantissa + 127) << 23);
  const int steps = static_cast<int>(__builtin_rintf(a / unit));
  return (bits(x) >> 31) << (short_bits<T> - 1)
    | static_cast<uint32_t>(((exponent - T::lowest) << T::mantissa) + steps);
}

template <class T>
inline float from_short(uint32_t x) {
  const uint32_t magnitude = x & ((1U << (short_bits<T> - 1)) - 1);
  const auto exponent = static_cast<int>(magnitude >> T::mantissa);
  const uint32_t fraction = magnitude & ((1U << T::mantissa) - 1);
  const int scale = (exponent == 0 ? T::lowest : exponent - 1 + T::lowest) - T::mantissa;
  const uint32_t steps = exponent == 0 ? fraction : fraction | 1U << T::mantissa;
  const float value =
    static_cast<float>(steps) * from_bits(static_cast<uint32_t>(scale + 127) << 23);
  return x >> (short_bits<T> - 1) & 1 ? -value : value;
}

/// a is the upper one.
template <class T>
void floats_to_short(lane_state& s, const operation& o) {
  uint16_t* d = lane<uint16_t>(s, o.d);
  const float* a = lane<float>(s, o.a);
  const float* b = lane<float>(s, o.b);
  const bool relu = (o.imm & convert_relu) != 0;
  for (uint32_t l = 0; l < warp_lanes; ++l)
    if (s.active >> l & 1)
      d[l] =
        static_cast<uint16_t>(to_short<T>(a[l], relu) << short_step<T> | to_short<T>(b[l], relu));
}

template <class T>
void short_to_halves(lane_state& s, const operation& o) {
  uint32_t* d = lane<uint32_t>(s, o.d);
  const uint16_t* a = lane<uint16_t>(s, o.a);
  const bool relu = (o.imm & convert_relu) != 0;
  const auto half_of_element = [&](uint32_t x) {
    return uint32_t{without_negative(narrowed<half>(from_short<T>(x), round_nearest).bits, relu)};
  };
  for (uint32_t l = 0; l < warp_lanes; ++l)
    if (s.active >> l & 1)
      d[l] =
        half_of_element(static_cast<uint32_t>(a[l]) >> short_step<T>) << 16 | half_of_element(a[l]);
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

inline uint16_t two_scales(float high, float low, const operation& o) {
  const bool up = o.mode == round_up;
  const bool finite = (o.imm & convert_saturate) != 0;
  return static_cast<uint16_t>(to_scale(high, up, finite) << 8 | to_scale(low, up, finite));
}

inline void floats_to_scales(lane_state& s, const operation& o) {
  uint16_t* d = lane<uint16_t>(s, o.d);
  const float* a = lane<float>(s, o.a);
  const float* b = lane<float>(s, o.b);
  for (uint32_t l = 0; l < warp_lanes; ++l)
    if (s.active >> l & 1)
      d[l] = two_scales(a[l], b[l], o);
}

inline void bfloats_to_scales(lane_state& s, const operation& o) {
  uint16_t* d = lane<uint16_t>(s, o.d);
  const uint32_t* a = lane<uint32_t>(s, o.a);
  for (uint32_t l = 0; l < warp_lanes; ++l)
    if (s.active >> l & 1)
      d[l] = two_scales(from_bits(a[l] & 0xffff0000), from_bits(a[l] << 16), o);
}

inline void scales_to_bfloats(lane_state& s, const operation& o) {
  uint32_t* d = lane<uint32_t>(s, o.d);
  const uint16_t* a = lane<uint16_t>(s, o.a);
  const auto bfloat_of = [](uint32_t x) { return x == 255 ? 0x7fffU : x == 0 ? 0x0040U : x << 7; };
  for (uint32_t l = 0; l < warp_lanes; ++l)
    if (s.active >> l & 1)
      d[l] = bfloat_of(static_cast<uint32_t>(a[l]) >> 8) << 16 | bfloat_of(a[l] & 255U);
}
