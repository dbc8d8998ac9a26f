// __half and __half2. The storage is clang's _Float16, which PTX computes with directly.
#pragma once
#include "sixteen_bit.h"

struct __half_raw {
  unsigned short x;
};
struct __half2_raw {
  unsigned short x, y;
};
struct __align__(2) __half {
  _Float16 gm_value;

  __half() = default;
  __device__ constexpr __half(_Float16 v) : gm_value(v) {}
  __device__ constexpr __half(__half_raw v) : gm_value(__builtin_bit_cast(_Float16, v.x)) {}
  __device__ constexpr __half(float v) : gm_value(static_cast<_Float16>(v)) {}
  __device__ constexpr __half(double v) : gm_value(static_cast<_Float16>(v)) {}
  __device__ constexpr __half(short v) : gm_value(static_cast<_Float16>(v)) {}
  __device__ constexpr __half(unsigned short v) : gm_value(static_cast<_Float16>(v)) {}
  __device__ constexpr __half(int v) : gm_value(static_cast<_Float16>(v)) {}
  __device__ constexpr __half(unsigned v) : gm_value(static_cast<_Float16>(v)) {}
  __device__ constexpr __half(long v) : gm_value(static_cast<_Float16>(v)) {}
  __device__ constexpr __half(unsigned long v) : gm_value(static_cast<_Float16>(v)) {}
  __device__ constexpr __half(long long v) : gm_value(static_cast<_Float16>(v)) {}
  __device__ constexpr __half(unsigned long long v) : gm_value(static_cast<_Float16>(v)) {}
  __device__ constexpr operator float() const { return static_cast<float>(gm_value); }
  __device__ constexpr operator __half_raw() const {
    return {__builtin_bit_cast(unsigned short, gm_value)};
  }
};
typedef __half half;
typedef __half nv_half;
struct __align__(4) __half2 {
  __half x, y;

  __half2() = default;
  __device__ constexpr __half2(__half a, __half b) : x(a), y(b) {}
  __device__ constexpr __half2(__half2_raw v) : x(__half_raw{v.x}), y(__half_raw{v.y}) {}
  __device__ constexpr operator __half2_raw() const {
    return {static_cast<__half_raw>(x).x, static_cast<__half_raw>(y).x};
  }
};
typedef __half2 half2;
typedef __half2 nv_half2;

GM_DEVICE _Float16 gm_wide(__half h) { return h.gm_value; }
GM_DEVICE float gm_single(__half h) { return static_cast<float>(h.gm_value); }
template <class T>
GM_DEVICE T gm_round_to(float f);
template <class T>
GM_DEVICE T gm_round_rz_to(float f);
template <class T>
GM_DEVICE T gm_round_rm_to(float f);
template <class T>
GM_DEVICE T gm_round_rp_to(float f);
template <>
__device__ __forceinline__ __half gm_round_to<__half>(float f) {
  return static_cast<_Float16>(f);
}
template <>
__device__ __forceinline__ __half gm_round_rz_to<__half>(float f) {
  unsigned short r;
  asm("cvt.rz.f16.f32 %0, %1;" : "=h"(r) : "f"(f));
  return __half_raw{r};
}
// To the nearest, and a step back where that went the wrong way. The codes of one sign are in the
// order of their sizes.
GM_DEVICE __half gm_one_step(__half h, bool away_from_zero) {
  int bits = __builtin_bit_cast(unsigned short, h);
  return __half_raw{static_cast<unsigned short>(away_from_zero ? bits + 1 : bits - 1)};
}
template <>
__device__ __forceinline__ __half gm_round_rm_to<__half>(float f) {
  __half h = static_cast<_Float16>(f);
  return static_cast<float>(h) > f ? gm_one_step(h, f < 0) : h;
}
template <>
__device__ __forceinline__ __half gm_round_rp_to<__half>(float f) {
  __half h = static_cast<_Float16>(f);
  return static_cast<float>(h) < f ? gm_one_step(h, f > 0) : h;
}

GM_DEVICE float __half2float(__half h) { return static_cast<float>(h.gm_value); }
GM_DEVICE __half __float2half(float f) { return static_cast<_Float16>(f); }
GM_DEVICE __half __float2half_rn(float f) { return static_cast<_Float16>(f); }
GM_DEVICE __half __float2half_rz(float f) { return gm_round_rz_to<__half>(f); }
GM_DEVICE __half __float2half_rd(float f) { return gm_round_rm_to<__half>(f); }
GM_DEVICE __half __float2half_ru(float f) { return gm_round_rp_to<__half>(f); }
GM_DEVICE __half __double2half(double d) { return static_cast<_Float16>(d); }
GM_DEVICE __half2 __floats2half2_rn(float a, float b) {
  return {static_cast<_Float16>(a), static_cast<_Float16>(b)};
}
GM_DEVICE __half2 __float22half2_rn(float2 v) { return __floats2half2_rn(v.x, v.y); }
GM_DEVICE __half2 __float2half2_rn(float v) { return __floats2half2_rn(v, v); }
GM_DEVICE float2 __half22float2(__half2 v) { return {__half2float(v.x), __half2float(v.y)}; }
GM_DEVICE __half2 make_half2(__half a, __half b) { return {a, b}; }

#define GM_HALF_OPERATION(OPERATOR, SCALAR, PAIR)                                                  \
  GM_DEVICE __half SCALAR(__half a, __half b) {                                                    \
    return static_cast<_Float16>(a.gm_value OPERATOR b.gm_value);                                  \
  }                                                                                                \
  GM_DEVICE __half2 PAIR(__half2 a, __half2 b) { return {SCALAR(a.x, b.x), SCALAR(a.y, b.y)}; }    \
  GM_DEVICE __half operator OPERATOR(__half a, __half b) { return SCALAR(a, b); }                  \
  GM_DEVICE __half2 operator OPERATOR(__half2 a, __half2 b) { return PAIR(a, b); }                 \
  GM_DEVICE __half& operator OPERATOR##=(__half& a, __half b) { return a = SCALAR(a, b); }         \
  GM_DEVICE __half2& operator OPERATOR##=(__half2& a, __half2 b) { return a = PAIR(a, b); }
GM_HALF_OPERATION(+, __hadd, __hadd2)
GM_HALF_OPERATION(-, __hsub, __hsub2)
GM_HALF_OPERATION(*, __hmul, __hmul2)
GM_HALF_OPERATION(/, __hdiv, __h2div)
#undef GM_HALF_OPERATION
GM_DEVICE __half operator-(__half a) { return static_cast<_Float16>(-a.gm_value); }
GM_DEVICE __half2 operator-(__half2 a) { return {-a.x, -a.y}; }
GM_DEVICE __half __hneg(__half a) { return -a; }
GM_DEVICE __half2 __hneg2(__half2 a) { return -a; }
GM_DEVICE __half __habs(__half a) {
  return __half_raw{static_cast<unsigned short>(__builtin_bit_cast(unsigned short, a) & 0x7fff)};
}
GM_DEVICE __half2 __habs2(__half2 a) { return {__habs(a.x), __habs(a.y)}; }
GM_DEVICE __half __hfma(__half a, __half b, __half c) {
  return static_cast<_Float16>(__builtin_fmaf16(a.gm_value, b.gm_value, c.gm_value));
}
GM_DEVICE __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
  return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
// With the rounding mode in the instruction nothing is contracted into an fma.
GM_INSTRUCTION_2(__half, __half2, __hadd_rn, __hadd2_rn, "add.rn.", "f16")
GM_INSTRUCTION_2(__half, __half2, __hsub_rn, __hsub2_rn, "sub.rn.", "f16")
GM_INSTRUCTION_2(__half, __half2, __hmul_rn, __hmul2_rn, "mul.rn.", "f16")

GM_PAIRS(__half, __half2, half, half2)
GM_COMPARISONS(__half, __half2)
GM_LIMITS_OF_TWO(__half, __half2, "f16")
GM_SATURATED(__half, __half2)
GM_INTEGERS(__half, half)
GM_SHORT_FUNCTIONS(__half, __half2, "f16")
GM_SHORT_SHUFFLES(__half, __half2)
GM_SHORT_ATOMICS(__half, __half2, "f16")
