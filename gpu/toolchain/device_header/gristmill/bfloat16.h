// __nv_bfloat16 and __nv_bfloat162. Sums and products are computed in float and rounded once, which
// gives the same bits as the instructions of newer GPUs: a float holds them exactly enough.
#pragma once
#include "half.h"

struct __nv_bfloat16_raw {
  unsigned short x;
};
GM_DEVICE unsigned short gm_to_bfloat16(float f) {
  unsigned short r;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(f));
  return r;
}
struct __nv_bfloat16 {
  unsigned short gm_bits;

  __nv_bfloat16() = default;
  __device__ constexpr __nv_bfloat16(__nv_bfloat16_raw v) : gm_bits(v.x) {}
  __device__ __nv_bfloat16(float v) : gm_bits(gm_to_bfloat16(v)) {}
  __device__ __nv_bfloat16(double v) : gm_bits(gm_to_bfloat16(static_cast<float>(v))) {}
  __device__ __nv_bfloat16(int v) : gm_bits(gm_to_bfloat16(static_cast<float>(v))) {}
  __device__ __nv_bfloat16(unsigned v) : gm_bits(gm_to_bfloat16(static_cast<float>(v))) {}
  __device__ __nv_bfloat16(long long v) : gm_bits(gm_to_bfloat16(static_cast<float>(v))) {}
  __device__ operator float() const {
    return __builtin_bit_cast(float, static_cast<unsigned>(gm_bits) << 16);
  }
  __device__ constexpr operator __nv_bfloat16_raw() const { return {gm_bits}; }
};
typedef __nv_bfloat16 nv_bfloat16;
struct __align__(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;

  __nv_bfloat162() = default;
  __device__ constexpr __nv_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) : x(a), y(b) {}
};
typedef __nv_bfloat162 nv_bfloat162;

GM_DEVICE float __bfloat162float(__nv_bfloat16 v) {
  return __builtin_bit_cast(float, static_cast<unsigned>(v.gm_bits) << 16);
}
GM_DEVICE __nv_bfloat16 __float2bfloat16(float f) { return f; }
GM_DEVICE __nv_bfloat16 __float2bfloat16_rn(float f) { return f; }
GM_DEVICE __nv_bfloat16 __float2bfloat16_rz(float f) {
  unsigned short r;
  asm("cvt.rz.bf16.f32 %0, %1;" : "=h"(r) : "f"(f));
  return __nv_bfloat16_raw{r};
}
GM_DEVICE __nv_bfloat16 __double2bfloat16(double d) { return static_cast<float>(d); }
GM_DEVICE __nv_bfloat16 __int2bfloat16_rn(int i) { return static_cast<float>(i); }
GM_DEVICE int __bfloat162int_rn(__nv_bfloat16 v) { return __float2int_rn(__bfloat162float(v)); }
// The instruction takes the upper element first.
GM_DEVICE __nv_bfloat162 __floats2bfloat162_rn(float a, float b) {
  unsigned r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(b), "f"(a));
  return __builtin_bit_cast(__nv_bfloat162, r);
}
GM_DEVICE __nv_bfloat162 __float22bfloat162_rn(float2 v) { return __floats2bfloat162_rn(v.x, v.y); }
GM_DEVICE __nv_bfloat162 __float2bfloat162_rn(float v) { return __floats2bfloat162_rn(v, v); }
GM_DEVICE float2 __bfloat1622float2(__nv_bfloat162 v) {
  return {__bfloat162float(v.x), __bfloat162float(v.y)};
}
GM_DEVICE __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 v) { return {v, v}; }
GM_DEVICE __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return {a, b}; }
GM_DEVICE __nv_bfloat162 make_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return {a, b}; }
GM_DEVICE __nv_bfloat16 __low2bfloat16(__nv_bfloat162 v) { return v.x; }
GM_DEVICE __nv_bfloat16 __high2bfloat16(__nv_bfloat162 v) { return v.y; }
GM_DEVICE float __low2float(__nv_bfloat162 v) { return __bfloat162float(v.x); }
GM_DEVICE float __high2float(__nv_bfloat162 v) { return __bfloat162float(v.y); }
GM_DEVICE unsigned short __bfloat16_as_ushort(__nv_bfloat16 v) { return v.gm_bits; }
GM_DEVICE short __bfloat16_as_short(__nv_bfloat16 v) { return static_cast<short>(v.gm_bits); }
GM_DEVICE __nv_bfloat16 __ushort_as_bfloat16(unsigned short v) { return __nv_bfloat16_raw{v}; }
GM_DEVICE __nv_bfloat16 __short_as_bfloat16(short v) {
  return __nv_bfloat16_raw{static_cast<unsigned short>(v)};
}

#define GM_BFLOAT_OPERATION(OPERATOR, SCALAR, PAIR)                                                \
  GM_DEVICE __nv_bfloat16 SCALAR(__nv_bfloat16 a, __nv_bfloat16 b) {                               \
    return __bfloat162float(a) OPERATOR __bfloat162float(b);                                       \
  }                                                                                                \
  GM_DEVICE __nv_bfloat162 PAIR(__nv_bfloat162 a, __nv_bfloat162 b) {                              \
    return __floats2bfloat162_rn(__bfloat162float(a.x) OPERATOR __bfloat162float(b.x),             \
      __bfloat162float(a.y) OPERATOR __bfloat162float(b.y));                                       \
  }                                                                                                \
  GM_DEVICE __nv_bfloat16 operator OPERATOR(__nv_bfloat16 a, __nv_bfloat16 b) {                    \
    return SCALAR(a, b);                                                                           \
  }                                                                                                \
  GM_DEVICE __nv_bfloat162 operator OPERATOR(__nv_bfloat162 a, __nv_bfloat162 b) {                 \
    return PAIR(a, b);                                                                             \
  }                                                                                                \
  GM_DEVICE __nv_bfloat16& operator OPERATOR##=(__nv_bfloat16& a, __nv_bfloat16 b) {               \
    return a = SCALAR(a, b);                                                                       \
  }                                                                                                \
  GM_DEVICE __nv_bfloat162& operator OPERATOR##=(__nv_bfloat162& a, __nv_bfloat162 b) {            \
    return a = PAIR(a, b);                                                                         \
  }
GM_BFLOAT_OPERATION(+, __hadd, __hadd2)
GM_BFLOAT_OPERATION(-, __hsub, __hsub2)
GM_BFLOAT_OPERATION(*, __hmul, __hmul2)
GM_BFLOAT_OPERATION(/, __hdiv, __h2div)
#undef GM_BFLOAT_OPERATION
GM_DEVICE __nv_bfloat16 operator-(__nv_bfloat16 a) {
  return __nv_bfloat16_raw{static_cast<unsigned short>(a.gm_bits ^ 0x8000)};
}
GM_DEVICE __nv_bfloat162 operator-(__nv_bfloat162 a) { return {-a.x, -a.y}; }
GM_DEVICE __nv_bfloat16 __hneg(__nv_bfloat16 a) { return -a; }
GM_DEVICE __nv_bfloat162 __hneg2(__nv_bfloat162 a) { return -a; }
GM_DEVICE __nv_bfloat16 __habs(__nv_bfloat16 a) {
  return __nv_bfloat16_raw{static_cast<unsigned short>(a.gm_bits & 0x7fff)};
}
GM_DEVICE __nv_bfloat162 __habs2(__nv_bfloat162 a) { return {__habs(a.x), __habs(a.y)}; }
#if __CUDA_ARCH__ >= 800
GM_DEVICE __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) {
  unsigned short r;
  asm("fma.rn.bf16 %0, %1, %2, %3;" : "=h"(r) : "h"(a.gm_bits), "h"(b.gm_bits), "h"(c.gm_bits));
  return __nv_bfloat16_raw{r};
}
GM_DEVICE __nv_bfloat162 __hfma2(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c) {
  unsigned r;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;"
      : "=r"(r)
      : "r"(__builtin_bit_cast(unsigned, a)), "r"(__builtin_bit_cast(unsigned, b)),
      "r"(__builtin_bit_cast(unsigned, c)));
  return __builtin_bit_cast(__nv_bfloat162, r);
}
#endif

#define GM_BFLOAT_COMPARISON(OPERATOR, NAME)                                                       \
  GM_DEVICE bool NAME(__nv_bfloat16 a, __nv_bfloat16 b) {                                          \
    return __bfloat162float(a) OPERATOR __bfloat162float(b);                                       \
  }                                                                                                \
  GM_DEVICE bool operator OPERATOR(__nv_bfloat16 a, __nv_bfloat16 b) { return NAME(a, b); }
GM_BFLOAT_COMPARISON(==, __heq)
GM_BFLOAT_COMPARISON(!=, __hne)
GM_BFLOAT_COMPARISON(<, __hlt)
GM_BFLOAT_COMPARISON(<=, __hle)
GM_BFLOAT_COMPARISON(>, __hgt)
GM_BFLOAT_COMPARISON(>=, __hge)
#undef GM_BFLOAT_COMPARISON
GM_DEVICE bool __hisnan(__nv_bfloat16 a) { return (a.gm_bits & 0x7fff) > 0x7f80; }
GM_DEVICE int __hisinf(__nv_bfloat16 a) { return (a.gm_bits & 0x7fff) == 0x7f80; }
GM_DEVICE __nv_bfloat16 __hmax(__nv_bfloat16 a, __nv_bfloat16 b) {
  return __builtin_fmaxf(__bfloat162float(a), __bfloat162float(b));
}
GM_DEVICE __nv_bfloat16 __hmin(__nv_bfloat16 a, __nv_bfloat16 b) {
  return __builtin_fminf(__bfloat162float(a), __bfloat162float(b));
}
GM_DEVICE __nv_bfloat162 __hmax2(__nv_bfloat162 a, __nv_bfloat162 b) {
  return {__hmax(a.x, b.x), __hmax(a.y, b.y)};
}
GM_DEVICE __nv_bfloat162 __hmin2(__nv_bfloat162 a, __nv_bfloat162 b) {
  return {__hmin(a.x, b.x), __hmin(a.y, b.y)};
}

#define GM_BFLOAT_FUNCTION(NAME, PAIR, EXPRESSION)                                                 \
  GM_DEVICE __nv_bfloat16 NAME(__nv_bfloat16 h) {                                                  \
    float x = __bfloat162float(h);                                                                 \
    return EXPRESSION;                                                                             \
  }                                                                                                \
  GM_DEVICE __nv_bfloat162 PAIR(__nv_bfloat162 v) { return {NAME(v.x), NAME(v.y)}; }
GM_BFLOAT_FUNCTION(hexp, h2exp, __expf(x))
GM_BFLOAT_FUNCTION(hexp2, h2exp2, exp2f(x))
GM_BFLOAT_FUNCTION(hlog, h2log, __logf(x))
GM_BFLOAT_FUNCTION(hlog2, h2log2, __log2f(x))
GM_BFLOAT_FUNCTION(hsqrt, h2sqrt, sqrtf(x))
GM_BFLOAT_FUNCTION(hrsqrt, h2rsqrt, rsqrtf(x))
GM_BFLOAT_FUNCTION(hrcp, h2rcp, 1.f / x)
#undef GM_BFLOAT_FUNCTION

#define GM_BFLOAT_SHUFFLE(NAME, SECOND)                                                            \
  GM_DEVICE __nv_bfloat16 NAME(unsigned mask, __nv_bfloat16 v, SECOND lane, int width = 32) {      \
    return __ushort_as_bfloat16(                                                                   \
      static_cast<unsigned short>(NAME(mask, static_cast<unsigned>(v.gm_bits), lane, width)));     \
  }                                                                                                \
  GM_DEVICE __nv_bfloat162 NAME(unsigned mask, __nv_bfloat162 v, SECOND lane, int width = 32) {    \
    return __builtin_bit_cast(                                                                     \
      __nv_bfloat162, NAME(mask, __builtin_bit_cast(unsigned, v), lane, width));                   \
  }
GM_BFLOAT_SHUFFLE(__shfl_sync, int)
GM_BFLOAT_SHUFFLE(__shfl_xor_sync, int)
GM_BFLOAT_SHUFFLE(__shfl_down_sync, unsigned)
GM_BFLOAT_SHUFFLE(__shfl_up_sync, unsigned)
#undef GM_BFLOAT_SHUFFLE

GM_DEVICE __nv_bfloat162 atomicAdd(__nv_bfloat162* p, __nv_bfloat162 v) {
  unsigned* word = reinterpret_cast<unsigned*>(p);
  unsigned seen = *word, expected;
  do {
    expected = seen;
    __nv_bfloat162 sum = __hadd2(__builtin_bit_cast(__nv_bfloat162, expected), v);
    seen = atomicCAS(word, expected, __builtin_bit_cast(unsigned, sum));
  } while (seen != expected);
  return __builtin_bit_cast(__nv_bfloat162, seen);
}
