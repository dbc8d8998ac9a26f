// __half and __half2. The storage is clang's _Float16, which PTX computes with directly.
#pragma once
#include "integer.h"
#include "math.h"
#include "memory.h"
#include "threads.h"

struct __half_raw {
  unsigned short x;
};
struct __half {
  _Float16 gm_value;

  __half() = default;
  __device__ constexpr __half(_Float16 v) : gm_value(v) {}
  __device__ __half(__half_raw v) : gm_value(__builtin_bit_cast(_Float16, v.x)) {}
  __device__ constexpr __half(float v) : gm_value(static_cast<_Float16>(v)) {}
  __device__ constexpr __half(double v) : gm_value(static_cast<_Float16>(v)) {}
  __device__ constexpr __half(int v) : gm_value(static_cast<_Float16>(v)) {}
  __device__ constexpr __half(unsigned v) : gm_value(static_cast<_Float16>(v)) {}
  __device__ constexpr __half(long long v) : gm_value(static_cast<_Float16>(v)) {}
  __device__ constexpr __half(unsigned long long v) : gm_value(static_cast<_Float16>(v)) {}
  __device__ constexpr operator float() const { return static_cast<float>(gm_value); }
  __device__ operator __half_raw() const { return {__builtin_bit_cast(unsigned short, gm_value)}; }
};
typedef __half half;
struct __align__(4) __half2 {
  __half x, y;

  __half2() = default;
  __device__ constexpr __half2(__half a, __half b) : x(a), y(b) {}
};
typedef __half2 half2;

GM_DEVICE float __half2float(__half h) { return static_cast<float>(h.gm_value); }
GM_DEVICE __half __float2half(float f) { return static_cast<_Float16>(f); }
GM_DEVICE __half __float2half_rn(float f) { return static_cast<_Float16>(f); }
GM_DEVICE __half __float2half_rz(float f) {
  unsigned short r;
  asm("cvt.rz.f16.f32 %0, %1;" : "=h"(r) : "f"(f));
  return __half_raw{r};
}
GM_DEVICE __half __double2half(double d) { return static_cast<_Float16>(d); }
GM_DEVICE __half __int2half_rn(int i) { return static_cast<_Float16>(i); }
GM_DEVICE int __half2int_rn(__half h) { return __float2int_rn(static_cast<float>(h.gm_value)); }
GM_DEVICE int __half2int_rz(__half h) { return static_cast<int>(h.gm_value); }
GM_DEVICE __half2 __floats2half2_rn(float a, float b) {
  return {static_cast<_Float16>(a), static_cast<_Float16>(b)};
}
GM_DEVICE __half2 __float22half2_rn(float2 v) { return __floats2half2_rn(v.x, v.y); }
GM_DEVICE __half2 __float2half2_rn(float v) { return __floats2half2_rn(v, v); }
GM_DEVICE float2 __half22float2(__half2 v) { return {__half2float(v.x), __half2float(v.y)}; }
GM_DEVICE __half2 __half2half2(__half v) { return {v, v}; }
GM_DEVICE __half2 __halves2half2(__half a, __half b) { return {a, b}; }
GM_DEVICE __half2 make_half2(__half a, __half b) { return {a, b}; }
GM_DEVICE __half __low2half(__half2 v) { return v.x; }
GM_DEVICE __half __high2half(__half2 v) { return v.y; }
GM_DEVICE float __low2float(__half2 v) { return __half2float(v.x); }
GM_DEVICE float __high2float(__half2 v) { return __half2float(v.y); }
GM_DEVICE unsigned short __half_as_ushort(__half h) {
  return __builtin_bit_cast(unsigned short, h);
}
GM_DEVICE short __half_as_short(__half h) { return __builtin_bit_cast(short, h); }
GM_DEVICE __half __ushort_as_half(unsigned short v) { return __half_raw{v}; }
GM_DEVICE __half __short_as_half(short v) { return __half_raw{static_cast<unsigned short>(v)}; }

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
  return __half_raw{static_cast<unsigned short>(__half_as_ushort(a) & 0x7fff)};
}
GM_DEVICE __half2 __habs2(__half2 a) { return {__habs(a.x), __habs(a.y)}; }
GM_DEVICE __half __hfma(__half a, __half b, __half c) {
  return static_cast<_Float16>(__builtin_fmaf16(a.gm_value, b.gm_value, c.gm_value));
}
GM_DEVICE __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
  return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}

#define GM_HALF_COMPARISON(OPERATOR, NAME)                                                         \
  GM_DEVICE bool NAME(__half a, __half b) { return a.gm_value OPERATOR b.gm_value; }               \
  GM_DEVICE bool operator OPERATOR(__half a, __half b) { return a.gm_value OPERATOR b.gm_value; }
GM_HALF_COMPARISON(==, __heq)
GM_HALF_COMPARISON(!=, __hne)
GM_HALF_COMPARISON(<, __hlt)
GM_HALF_COMPARISON(<=, __hle)
GM_HALF_COMPARISON(>, __hgt)
GM_HALF_COMPARISON(>=, __hge)
#undef GM_HALF_COMPARISON
GM_DEVICE bool __hisnan(__half a) { return a.gm_value != a.gm_value; }
GM_DEVICE int __hisinf(__half a) { return (__half_as_ushort(a) & 0x7fff) == 0x7c00; }
GM_DEVICE __half __hmax(__half a, __half b) {
  return __hisnan(a) ? b : __hisnan(b) ? a : a.gm_value < b.gm_value ? b : a;
}
GM_DEVICE __half __hmin(__half a, __half b) {
  return __hisnan(a) ? b : __hisnan(b) ? a : b.gm_value < a.gm_value ? b : a;
}
GM_DEVICE __half2 __hmax2(__half2 a, __half2 b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }
GM_DEVICE __half2 __hmin2(__half2 a, __half2 b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; }

// Computed in float and rounded once.
#define GM_HALF_FUNCTION(NAME, PAIR, EXPRESSION)                                                   \
  GM_DEVICE __half NAME(__half h) {                                                                \
    float x = __half2float(h);                                                                     \
    return __float2half_rn(EXPRESSION);                                                            \
  }                                                                                                \
  GM_DEVICE __half2 PAIR(__half2 v) { return {NAME(v.x), NAME(v.y)}; }
GM_HALF_FUNCTION(hexp, h2exp, __expf(x))
GM_HALF_FUNCTION(hexp2, h2exp2, exp2f(x))
GM_HALF_FUNCTION(hlog, h2log, __logf(x))
GM_HALF_FUNCTION(hlog2, h2log2, __log2f(x))
GM_HALF_FUNCTION(hsqrt, h2sqrt, sqrtf(x))
GM_HALF_FUNCTION(hrsqrt, h2rsqrt, rsqrtf(x))
GM_HALF_FUNCTION(hrcp, h2rcp, 1.f / x)
GM_HALF_FUNCTION(hsin, h2sin, __sinf(x))
GM_HALF_FUNCTION(hcos, h2cos, __cosf(x))
GM_HALF_FUNCTION(hfloor, h2floor, floorf(x))
GM_HALF_FUNCTION(hceil, h2ceil, ceilf(x))
GM_HALF_FUNCTION(hrint, h2rint, rintf(x))
GM_HALF_FUNCTION(htrunc, h2trunc, truncf(x))
#undef GM_HALF_FUNCTION

#define GM_HALF_SHUFFLE(NAME, SECOND)                                                              \
  GM_DEVICE __half NAME(unsigned mask, __half v, SECOND lane, int width = 32) {                    \
    return __ushort_as_half(static_cast<unsigned short>(                                           \
      NAME(mask, static_cast<unsigned>(__half_as_ushort(v)), lane, width)));                       \
  }                                                                                                \
  GM_DEVICE __half2 NAME(unsigned mask, __half2 v, SECOND lane, int width = 32) {                  \
    return __builtin_bit_cast(__half2, NAME(mask, __builtin_bit_cast(unsigned, v), lane, width));  \
  }
GM_HALF_SHUFFLE(__shfl_sync, int)
GM_HALF_SHUFFLE(__shfl_xor_sync, int)
GM_HALF_SHUFFLE(__shfl_down_sync, unsigned)
GM_HALF_SHUFFLE(__shfl_up_sync, unsigned)
#undef GM_HALF_SHUFFLE

GM_DEVICE __half2 atomicAdd(__half2* p, __half2 v) {
  unsigned* word = reinterpret_cast<unsigned*>(p);
  unsigned seen = *word, expected;
  do {
    expected = seen;
    __half2 sum = __hadd2(__builtin_bit_cast(__half2, expected), v);
    seen = atomicCAS(word, expected, __builtin_bit_cast(unsigned, sum));
  } while (seen != expected);
  return __builtin_bit_cast(__half2, seen);
}
