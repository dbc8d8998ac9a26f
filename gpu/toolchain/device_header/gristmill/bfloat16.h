// __nv_bfloat16 and __nv_bfloat162. Sums and products are computed in float and rounded once, which
// gives the same bits as the instructions of newer GPUs: a float holds them exactly enough.
#pragma once
#include "half.h"

struct __nv_bfloat16_raw {
  unsigned short x;
};
struct __nv_bfloat162_raw {
  unsigned short x, y;
};
GM_DEVICE unsigned short gm_to_bfloat16(float f) {
  unsigned short r;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(f));
  return r;
}
struct __align__(2) __nv_bfloat16 {
  unsigned short gm_bits;

  __nv_bfloat16() = default;
  __device__ constexpr __nv_bfloat16(__nv_bfloat16_raw v) : gm_bits(v.x) {}
  __device__ __nv_bfloat16(float v) : gm_bits(gm_to_bfloat16(v)) {}
  __device__ __nv_bfloat16(__half v) : gm_bits(gm_to_bfloat16(gm_single(v))) {}
  __device__ __nv_bfloat16(double v) : gm_bits(gm_to_bfloat16(gm_odd_float(v))) {}
  __device__ __nv_bfloat16(short v) : gm_bits(gm_to_bfloat16(static_cast<float>(v))) {}
  __device__ __nv_bfloat16(unsigned short v) : gm_bits(gm_to_bfloat16(static_cast<float>(v))) {}
  __device__ __nv_bfloat16(int v) : gm_bits(gm_to_bfloat16(gm_odd_float(v))) {}
  __device__ __nv_bfloat16(unsigned v) : gm_bits(gm_to_bfloat16(gm_odd_float(v))) {}
  __device__ __nv_bfloat16(long v) : gm_bits(gm_to_bfloat16(gm_odd_float(v))) {}
  __device__ __nv_bfloat16(unsigned long v) : gm_bits(gm_to_bfloat16(gm_odd_float(v))) {}
  __device__ __nv_bfloat16(long long v) : gm_bits(gm_to_bfloat16(gm_odd_float(v))) {}
  __device__ __nv_bfloat16(unsigned long long v) : gm_bits(gm_to_bfloat16(gm_odd_float(v))) {}
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
  __device__ constexpr __nv_bfloat162(__nv_bfloat162_raw v)
    : x(__nv_bfloat16_raw{v.x}), y(__nv_bfloat16_raw{v.y}) {}
  __device__ constexpr operator __nv_bfloat162_raw() const { return {x.gm_bits, y.gm_bits}; }
};
typedef __nv_bfloat162 nv_bfloat162;

GM_DEVICE float gm_single(__nv_bfloat16 v) {
  return __builtin_bit_cast(float, static_cast<unsigned>(v.gm_bits) << 16);
}
GM_DEVICE float gm_wide(__nv_bfloat16 v) { return gm_single(v); }
template <>
__device__ __forceinline__ __nv_bfloat16 gm_round_to<__nv_bfloat16>(float f) {
  return f;
}
// The upper half of the float, one step further from zero where bits were lost and `away` says so.
GM_DEVICE __nv_bfloat16 gm_upper_half(float f, bool away) {
  unsigned bits = __builtin_bit_cast(unsigned, f);
  unsigned upper = f != f ? 0x7fffu : (bits >> 16) + (away && (bits & 0xffffu) != 0 ? 1 : 0);
  return __nv_bfloat16_raw{static_cast<unsigned short>(upper)};
}
template <>
__device__ __forceinline__ __nv_bfloat16 gm_round_rz_to<__nv_bfloat16>(float f) {
  return gm_upper_half(f, false);
}
template <>
__device__ __forceinline__ __nv_bfloat16 gm_round_rm_to<__nv_bfloat16>(float f) {
  return gm_upper_half(f, f < 0);
}
template <>
__device__ __forceinline__ __nv_bfloat16 gm_round_rp_to<__nv_bfloat16>(float f) {
  return gm_upper_half(f, f > 0);
}

GM_DEVICE float __bfloat162float(__nv_bfloat16 v) { return gm_single(v); }
GM_DEVICE __nv_bfloat16 __float2bfloat16(float f) { return f; }
GM_DEVICE __nv_bfloat16 __float2bfloat16_rn(float f) { return f; }
GM_DEVICE __nv_bfloat16 __float2bfloat16_rz(float f) { return gm_upper_half(f, false); }
GM_DEVICE __nv_bfloat16 __float2bfloat16_rd(float f) { return gm_upper_half(f, f < 0); }
GM_DEVICE __nv_bfloat16 __float2bfloat16_ru(float f) { return gm_upper_half(f, f > 0); }
GM_DEVICE __nv_bfloat16 __double2bfloat16(double d) { return d; }
// The instruction takes the upper element first.
GM_DEVICE __nv_bfloat162 __floats2bfloat162_rn(float a, float b) {
  unsigned r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(b), "f"(a));
  return __builtin_bit_cast(__nv_bfloat162, r);
}
GM_DEVICE __nv_bfloat162 __float22bfloat162_rn(float2 v) { return __floats2bfloat162_rn(v.x, v.y); }
GM_DEVICE __nv_bfloat162 __float2bfloat162_rn(float v) { return __floats2bfloat162_rn(v, v); }
GM_DEVICE float2 __bfloat1622float2(__nv_bfloat162 v) { return {gm_single(v.x), gm_single(v.y)}; }
GM_DEVICE __nv_bfloat162 make_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return {a, b}; }

#define GM_BFLOAT_OPERATION(OPERATOR, SCALAR, PAIR)                                                \
  GM_DEVICE __nv_bfloat16 SCALAR(__nv_bfloat16 a, __nv_bfloat16 b) {                               \
    return gm_single(a) OPERATOR gm_single(b);                                                     \
  }                                                                                                \
  GM_DEVICE __nv_bfloat162 PAIR(__nv_bfloat162 a, __nv_bfloat162 b) {                              \
    return __floats2bfloat162_rn(                                                                  \
      gm_single(a.x) OPERATOR gm_single(b.x), gm_single(a.y) OPERATOR gm_single(b.y));             \
  }                                                                                                \
  GM_DEVICE __nv_bfloat16 SCALAR##_rn(__nv_bfloat16 a, __nv_bfloat16 b) { return SCALAR(a, b); }   \
  GM_DEVICE __nv_bfloat162 PAIR##_rn(__nv_bfloat162 a, __nv_bfloat162 b) { return PAIR(a, b); }    \
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
GM_PAIRS(__nv_bfloat16, __nv_bfloat162, bfloat16, bfloat162)
GM_COMPARISONS(__nv_bfloat16, __nv_bfloat162)
GM_LIMITS_OF_TWO(__nv_bfloat16, __nv_bfloat162, "bf16")
#if __CUDA_ARCH__ >= 800
GM_INSTRUCTION_3(__nv_bfloat16, __nv_bfloat162, __hfma, __hfma2, "fma.rn.", "bf16")
GM_SATURATED(__nv_bfloat16, __nv_bfloat162)
#endif
GM_INTEGERS(__nv_bfloat16, bfloat16)
GM_SHORT_FUNCTIONS(__nv_bfloat16, __nv_bfloat162, "bf16")
GM_SHORT_SHUFFLES(__nv_bfloat16, __nv_bfloat162)
#if __CUDA_ARCH__ >= 900
GM_SHORT_ATOMICS(__nv_bfloat16, __nv_bfloat162, "bf16")
#else
GM_SHORT_ATOMICS_BY_EXCHANGE(__nv_bfloat16, __nv_bfloat162)
#endif
#undef GM_BOTH_HALVES
#undef GM_COMPARISON
#undef GM_COMPARISONS
#undef GM_INSTRUCTION_2
#undef GM_INSTRUCTION_3
#undef GM_LIMITS_OF_TWO
#undef GM_SATURATED
#undef GM_INTEGER_FORM
#undef GM_SHORT_FORM
#undef GM_INTEGERS_BY
#undef GM_INTEGERS
#undef GM_PAIRS
#undef GM_SHORT_FUNCTION
#undef GM_SHORT_FUNCTIONS
#undef GM_SHORT_SHUFFLE
#undef GM_SHORT_SHUFFLES
#undef GM_SHORT_ATOMICS
#undef GM_SHORT_ATOMICS_BY_EXCHANGE
