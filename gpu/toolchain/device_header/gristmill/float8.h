// The 8-bit floats e4m3 and e5m2, alone and in twos and fours, and the scale factors e8m0. From Ada
// on the GPU converts; before it, and without saturation, integer arithmetic does.
#pragma once
#include "bfloat16.h"

typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned __nv_fp8x4_storage_t;
// Beyond the largest number: infinity or NaN, or that number.
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };
enum cudaRoundMode { cudaRoundNearest, cudaRoundZero, cudaRoundPosInf, cudaRoundMinInf };

// Rounds to nearest even a float with `mantissa` explicit bits and exponents from `lowest` on. What
// rounds to more than `largest` becomes `beyond`.
GM_DEVICE unsigned char gm_to_float8(
  float f, int mantissa, int lowest, unsigned largest, unsigned beyond) {
  unsigned sign = __builtin_bit_cast(unsigned, f) >> 24 & 0x80u;
  float a = __builtin_fabsf(f);
  if (a != a)
    return 0x7f;
  // So that the arithmetic below cannot overflow; 2^16 is beyond both types.
  a = a > 65536.f ? 65536.f : a;
  // One unit in the last place at the exponent of the value, or of the smallest normal one.
  int exponent = max(static_cast<int>(__builtin_bit_cast(unsigned, a) >> 23) - 127, lowest);
  float unit = __builtin_bit_cast(float, static_cast<unsigned>(exponent - mantissa + 127) << 23);
  int steps = static_cast<int>(__builtin_rintf(a / unit));
  // `steps` counts from 0 in the subnormals and from 2^mantissa in a binade; a carry moves on.
  unsigned code = static_cast<unsigned>(((exponent - lowest) << mantissa) + steps);
  return static_cast<unsigned char>(sign | (code > largest ? beyond : code));
}
GM_DEVICE __nv_fp8_storage_t __nv_cvt_float_to_fp8(
  float f, __nv_saturation_t saturate, __nv_fp8_interpretation_t kind) {
#if __CUDA_ARCH__ >= 890
  if (saturate == __NV_SATFINITE) {
    unsigned short r;
    if (kind == __NV_E4M3)
      asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(r) : "f"(0.f), "f"(f));
    else
      asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(r) : "f"(0.f), "f"(f));
    return static_cast<unsigned char>(r);
  }
#endif
  if (kind == __NV_E4M3)
    return gm_to_float8(f, 3, -6, 0x7e, saturate == __NV_SATFINITE ? 0x7e : 0x7f);
  return gm_to_float8(f, 2, -14, 0x7b, saturate == __NV_SATFINITE ? 0x7b : 0x7c);
}
GM_DEVICE __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(
  float2 v, __nv_saturation_t saturate, __nv_fp8_interpretation_t kind) {
#if __CUDA_ARCH__ >= 890
  if (saturate == __NV_SATFINITE) {
    unsigned short r;
    if (kind == __NV_E4M3)
      asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(r) : "f"(v.y), "f"(v.x));
    else
      asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(r) : "f"(v.y), "f"(v.x));
    return r;
  }
#endif
  return static_cast<unsigned short>(
    __nv_cvt_float_to_fp8(v.x, saturate, kind) | __nv_cvt_float_to_fp8(v.y, saturate, kind) << 8);
}
GM_DEVICE __nv_fp8_storage_t __nv_cvt_double_to_fp8(
  double d, __nv_saturation_t saturate, __nv_fp8_interpretation_t kind) {
  return __nv_cvt_float_to_fp8(gm_odd_float(d), saturate, kind);
}
GM_DEVICE __nv_fp8x2_storage_t __nv_cvt_double2_to_fp8x2(
  double2 v, __nv_saturation_t saturate, __nv_fp8_interpretation_t kind) {
  return __nv_cvt_float2_to_fp8x2({gm_odd_float(v.x), gm_odd_float(v.y)}, saturate, kind);
}
GM_DEVICE __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(
  __half_raw v, __nv_saturation_t saturate, __nv_fp8_interpretation_t kind) {
  return __nv_cvt_float_to_fp8(gm_single(__half(v)), saturate, kind);
}
GM_DEVICE __nv_fp8x2_storage_t __nv_cvt_halfraw2_to_fp8x2(
  __half2_raw v, __nv_saturation_t saturate, __nv_fp8_interpretation_t kind) {
  return __nv_cvt_float2_to_fp8x2(__half22float2(__half2(v)), saturate, kind);
}
GM_DEVICE __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(
  __nv_bfloat16_raw v, __nv_saturation_t saturate, __nv_fp8_interpretation_t kind) {
  return __nv_cvt_float_to_fp8(gm_single(__nv_bfloat16(v)), saturate, kind);
}
GM_DEVICE __nv_fp8x2_storage_t __nv_cvt_bfloat16raw2_to_fp8x2(
  __nv_bfloat162_raw v, __nv_saturation_t saturate, __nv_fp8_interpretation_t kind) {
  return __nv_cvt_float2_to_fp8x2(__bfloat1622float2(__nv_bfloat162(v)), saturate, kind);
}
// e5m2 is the upper byte of a half; e4m3 is a half with the exponent 8 too small, which keeps the
// subnormals right.
GM_DEVICE __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t v, __nv_fp8_interpretation_t kind) {
  if (kind == __NV_E5M2)
    return {static_cast<unsigned short>((v & 0x7f) > 0x7c ? 0x7fff : v << 8)};
  if ((v & 0x7f) == 0x7f)
    return {0x7fff};
  __half small = __half_raw{static_cast<unsigned short>((v & 0x80) << 8 | (v & 0x7f) << 7)};
  return static_cast<__half>(static_cast<_Float16>(small.gm_value * static_cast<_Float16>(256)));
}
GM_DEVICE __half2_raw __nv_cvt_fp8x2_to_halfraw2(
  __nv_fp8x2_storage_t v, __nv_fp8_interpretation_t kind) {
#if __CUDA_ARCH__ >= 890
  unsigned r;
  if (kind == __NV_E4M3)
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(r) : "h"(v));
  else
    asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(r) : "h"(v));
  return __builtin_bit_cast(__half2_raw, r);
#else
  return {__nv_cvt_fp8_to_halfraw(static_cast<unsigned char>(v), kind).x,
    __nv_cvt_fp8_to_halfraw(static_cast<unsigned char>(v >> 8), kind).x};
#endif
}

// To a whole number: 0 for NaN, the limit beyond it.
template <class T>
GM_DEVICE T gm_clamped(float f, float low, float high) {
  return f != f ? T(0) : static_cast<T>(f < low ? low : f > high ? high : f);
}
#define GM_FLOAT8_FROM(N, KIND, T, EXPRESSION)                                                     \
  __device__ explicit N(T v) : __x(__nv_cvt_float_to_fp8(EXPRESSION, __NV_SATFINITE, KIND)) {}
#define GM_FLOAT8_TO(T, EXPRESSION)                                                                \
  __device__ explicit operator T() const {                                                         \
    float f = gm_value();                                                                          \
    return EXPRESSION;                                                                             \
  }
#define GM_FLOAT8(N, N2, N4, KIND)                                                                 \
  struct N {                                                                                       \
    __nv_fp8_storage_t __x;                                                                        \
    N() = default;                                                                                 \
    GM_FLOAT8_FROM(N, KIND, float, v)                                                              \
    GM_FLOAT8_FROM(N, KIND, __half, gm_single(v))                                                  \
    GM_FLOAT8_FROM(N, KIND, __nv_bfloat16, gm_single(v))                                           \
    GM_FLOAT8_FROM(N, KIND, double, gm_odd_float(v))                                               \
    GM_FLOAT8_FROM(N, KIND, short, static_cast<float>(v))                                          \
    GM_FLOAT8_FROM(N, KIND, unsigned short, static_cast<float>(v))                                 \
    GM_FLOAT8_FROM(N, KIND, int, gm_odd_float(v))                                                  \
    GM_FLOAT8_FROM(N, KIND, unsigned, gm_odd_float(v))                                             \
    GM_FLOAT8_FROM(N, KIND, long, gm_odd_float(v))                                                 \
    GM_FLOAT8_FROM(N, KIND, unsigned long, gm_odd_float(v))                                        \
    GM_FLOAT8_FROM(N, KIND, long long, gm_odd_float(v))                                            \
    GM_FLOAT8_FROM(N, KIND, unsigned long long, gm_odd_float(v))                                   \
    __device__ __half gm_half() const { return __nv_cvt_fp8_to_halfraw(__x, KIND); }               \
    __device__ float gm_value() const { return gm_single(gm_half()); }                             \
    __device__ explicit operator __half() const { return gm_half(); }                              \
    GM_FLOAT8_TO(float, f)                                                                         \
    GM_FLOAT8_TO(__nv_bfloat16, f)                                                                 \
    GM_FLOAT8_TO(double, f)                                                                        \
    GM_FLOAT8_TO(bool, f != 0)                                                                     \
    GM_FLOAT8_TO(char, gm_clamped<char>(f, -128, 127))                                             \
    GM_FLOAT8_TO(signed char, gm_clamped<signed char>(f, -128, 127))                               \
    GM_FLOAT8_TO(unsigned char, gm_clamped<unsigned char>(f, 0, 255))                              \
    GM_FLOAT8_TO(short, gm_clamped<short>(f, -32768, 32767))                                       \
    GM_FLOAT8_TO(unsigned short, gm_clamped<unsigned short>(f, 0, 65535))                          \
    GM_FLOAT8_TO(int, __float2int_rz(f))                                                           \
    GM_FLOAT8_TO(unsigned, __float2uint_rz(f))                                                     \
    GM_FLOAT8_TO(long, __float2ll_rz(f))                                                           \
    GM_FLOAT8_TO(unsigned long, __float2ull_rz(f))                                                 \
    GM_FLOAT8_TO(long long, __float2ll_rz(f))                                                      \
    GM_FLOAT8_TO(unsigned long long, __float2ull_rz(f))                                            \
  };                                                                                               \
  struct __align__(2) N2 {                                                                         \
    __nv_fp8x2_storage_t __x;                                                                      \
    N2() = default;                                                                                \
    __device__ explicit N2(float2 v) : __x(__nv_cvt_float2_to_fp8x2(v, __NV_SATFINITE, KIND)) {}   \
    __device__ explicit N2(double2 v) : __x(__nv_cvt_double2_to_fp8x2(v, __NV_SATFINITE, KIND)) {} \
    __device__ explicit N2(__half2 v)                                                              \
      : __x(__nv_cvt_halfraw2_to_fp8x2(v, __NV_SATFINITE, KIND)) {}                                \
    __device__ explicit N2(__nv_bfloat162 v)                                                       \
      : __x(__nv_cvt_bfloat16raw2_to_fp8x2(v, __NV_SATFINITE, KIND)) {}                            \
    __device__ explicit operator __half2() const { return __nv_cvt_fp8x2_to_halfraw2(__x, KIND); } \
    __device__ explicit operator float2() const {                                                  \
      return __half22float2(__nv_cvt_fp8x2_to_halfraw2(__x, KIND));                                \
    }                                                                                              \
  };                                                                                               \
  struct __align__(4) N4 {                                                                         \
    __nv_fp8x4_storage_t __x;                                                                      \
    N4() = default;                                                                                \
    __device__ explicit N4(float4 v)                                                               \
      : __x(N2(float2{v.x, v.y}).__x | static_cast<unsigned>(N2(float2{v.z, v.w}).__x) << 16) {}   \
    __device__ explicit N4(double4 v)                                                              \
      : __x(N2(double2{v.x, v.y}).__x | static_cast<unsigned>(N2(double2{v.z, v.w}).__x) << 16) {} \
    __device__ explicit N4(__half2 low, __half2 high)                                              \
      : __x(N2(low).__x | static_cast<unsigned>(N2(high).__x) << 16) {}                            \
    __device__ explicit N4(__nv_bfloat162 low, __nv_bfloat162 high)                                \
      : __x(N2(low).__x | static_cast<unsigned>(N2(high).__x) << 16) {}                            \
    __device__ explicit operator float4() const {                                                  \
      __half2 low = __nv_cvt_fp8x2_to_halfraw2(static_cast<unsigned short>(__x), KIND);            \
      __half2 high = __nv_cvt_fp8x2_to_halfraw2(static_cast<unsigned short>(__x >> 16), KIND);     \
      return {gm_single(low.x), gm_single(low.y), gm_single(high.x), gm_single(high.y)};           \
    }                                                                                              \
  };
GM_FLOAT8(__nv_fp8_e4m3, __nv_fp8x2_e4m3, __nv_fp8x4_e4m3, __NV_E4M3)
GM_FLOAT8(__nv_fp8_e5m2, __nv_fp8x2_e5m2, __nv_fp8x4_e5m2, __NV_E5M2)
#undef GM_FLOAT8_FROM
#undef GM_FLOAT8_TO
#undef GM_FLOAT8

// A power of two: the biased exponent of a float, 0xff for NaN.
GM_DEVICE __nv_fp8_storage_t __nv_cvt_float_to_e8m0(
  float f, __nv_saturation_t saturate, cudaRoundMode round) {
  unsigned bits = __builtin_bit_cast(unsigned, f) & 0x7fffffffu;
  if (bits > 0x7f800000u)
    return 0xff;
  if (bits == 0x7f800000u)
    return saturate == __NV_SATFINITE ? 0xfe : 0xff;
  unsigned exponent = bits >> 23, rest = bits & 0x7fffffu;
  // Below the normal numbers lies 2^-127, whose own bits are 0x400000.
  bool up = round == cudaRoundPosInf && (exponent == 0 ? rest > 0x400000u : rest != 0);
  exponent += up ? 1 : 0;
  return static_cast<unsigned char>(exponent == 255 && saturate == __NV_SATFINITE ? 254 : exponent);
}
GM_DEVICE __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_e8m0(
  __nv_bfloat16_raw v, __nv_saturation_t saturate, cudaRoundMode round) {
  return __nv_cvt_float_to_e8m0(gm_single(__nv_bfloat16(v)), saturate, round);
}
GM_DEVICE __nv_bfloat16_raw __nv_cvt_e8m0_to_bf16raw(__nv_fp8_storage_t v) {
  return {static_cast<unsigned short>(v == 0xff ? 0x7fff : v == 0 ? 0x40 : v << 7)};
}
struct __nv_fp8_e8m0 {
  __nv_fp8_storage_t __x;
  __nv_fp8_e8m0() = default;
  __device__ explicit __nv_fp8_e8m0(float v)
    : __x(__nv_cvt_float_to_e8m0(v, __NV_SATFINITE, cudaRoundPosInf)) {}
  __device__ explicit __nv_fp8_e8m0(__nv_bfloat16 v) : __nv_fp8_e8m0(gm_single(v)) {}
  __device__ explicit __nv_fp8_e8m0(__half v) : __nv_fp8_e8m0(gm_single(v)) {}
  __device__ explicit operator __nv_bfloat16() const { return __nv_cvt_e8m0_to_bf16raw(__x); }
  __device__ explicit operator float() const {
    return gm_single(__nv_bfloat16(__nv_cvt_e8m0_to_bf16raw(__x)));
  }
};
