// The two 8-bit floats as storage, converted by integer arithmetic: no GPU before Ada has
// instructions for them. Out of range becomes the largest finite value, as `__NV_SATFINITE` says.
#pragma once
#include "bfloat16.h"

typedef unsigned char __nv_fp8_storage_t;

// Rounds to nearest even a float with `mantissa` explicit bits and exponents from `lowest` on.
GM_DEVICE unsigned char gm_to_float8(
  float f, int mantissa, int lowest, float largest, unsigned char nan) {
  unsigned bits = __builtin_bit_cast(unsigned, f);
  unsigned char sign = static_cast<unsigned char>(bits >> 24 & 0x80u);
  float a = __builtin_fabsf(f);
  if (a != a)
    return static_cast<unsigned char>(sign | nan);
  if (a > largest)
    a = largest;
  // One unit in the last place at the exponent of the value, or of the smallest normal one.
  int exponent = max(static_cast<int>(__builtin_bit_cast(unsigned, a) >> 23) - 127, lowest);
  float unit = __builtin_bit_cast(float, static_cast<unsigned>(exponent - mantissa + 127) << 23);
  int steps = static_cast<int>(__builtin_rintf(a / unit));
  // `steps` counts from 0 in the subnormals and from 2^mantissa in a binade; a carry moves on.
  int code = ((exponent - lowest) << mantissa) + steps;
  return static_cast<unsigned char>(sign | static_cast<unsigned char>(code));
}

struct __nv_fp8_e5m2 {
  __nv_fp8_storage_t __x;

  __nv_fp8_e5m2() = default;
  __device__ __nv_fp8_e5m2(float f) : __x(gm_to_float8(f, 2, -14, 57344.f, 0x7f)) {}
  // The upper byte of a half.
  __device__ operator float() const {
    return __half2float(__ushort_as_half(static_cast<unsigned short>(__x << 8)));
  }
};
struct __nv_fp8_e4m3 {
  __nv_fp8_storage_t __x;

  __nv_fp8_e4m3() = default;
  __device__ __nv_fp8_e4m3(float f) : __x(gm_to_float8(f, 3, -6, 448.f, 0x7f)) {}
  // As a half with the exponent 8 too small, which keeps the subnormals right.
  __device__ operator float() const {
    unsigned short bits = static_cast<unsigned short>((__x & 0x80) << 8 | (__x & 0x7f) << 7);
    float scaled = __half2float(__ushort_as_half(bits)) * 256.f;
    return (__x & 0x7f) == 0x7f ? __builtin_nanf("") : scaled;
  }
};
