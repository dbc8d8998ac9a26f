// What __half and __nv_bfloat16 have alike, written once for both: comparisons, limits, saturating
// and exactly rounded arithmetic, integers, mathematics, shuffles and atomics.
//
// Before this file each type gives: `gm_wide` (the type that it is compared in), `gm_single` (its
// float), `gm_round_to<T>(float)` and the same with rz, rm, rp; the casts by bit pattern.
#pragma once
#include "integer.h"
#include "math.h"
#include "memory.h"
#include "threads.h"

// A float that rounds further as the number itself would: where the conversion is not exact, its
// last bit is set ("round to odd"), which is enough for a type with at most 22 bits.
GM_DEVICE float gm_odd(float rounded_to_zero, bool exact) {
  return exact ? rounded_to_zero
               : __builtin_bit_cast(float, __builtin_bit_cast(unsigned, rounded_to_zero) | 1u);
}
GM_DEVICE float gm_odd_float(double v) {
  float f = __nvvm_d2f_rz(v);
  return v != v ? static_cast<float>(v) : gm_odd(f, static_cast<double>(f) == v);
}
GM_DEVICE float gm_odd_float(int v) { return gm_odd_float(static_cast<double>(v)); }
GM_DEVICE float gm_odd_float(unsigned v) { return gm_odd_float(static_cast<double>(v)); }
GM_DEVICE float gm_odd_float(long long v) {
  float f = __ll2float_rz(v);
  return gm_odd(f, static_cast<long long>(f) == v);
}
GM_DEVICE float gm_odd_float(unsigned long long v) {
  float f = __ull2float_rz(v);
  return gm_odd(f, static_cast<unsigned long long>(f) == v);
}
GM_DEVICE float gm_odd_float(long v) { return gm_odd_float(static_cast<long long>(v)); }
GM_DEVICE float gm_odd_float(unsigned long v) {
  return gm_odd_float(static_cast<unsigned long long>(v));
}

// x less whole turns, for the instructions that are good near zero only.
GM_DEVICE float gm_within_a_turn(float x) {
  float turns = __builtin_rintf(x * 0.15915494309189535f);
  float r = __builtin_fmaf(turns, -6.28318548202514648f, x);
  return __builtin_fmaf(turns, 1.74845553146951715e-7f, r);
}
GM_DEVICE float gm_short_tanh(float x) {
  float a = __builtin_fabsf(x);
  if (a < 0.1f)
    return x - x * x * x * 0.33333333f;
  float t = 1.f - 2.f / (__expf(2.f * a) + 1.f);
  return x != x ? x : __builtin_copysignf(a > 20.f ? 1.f : t, x);
}

#define GM_BOTH_HALVES(H, H2, NAME, PAIR)                                                          \
  GM_DEVICE H2 PAIR(H2 a, H2 b) { return {NAME(a.x, b.x), NAME(a.y, b.y)}; }

// The ordered comparisons are false when an operand is NaN, those that end in u are true.
#define GM_COMPARISON(H, H2, NAME, EXPRESSION)                                                     \
  GM_DEVICE bool __h##NAME(H a, H b) {                                                             \
    auto x = gm_wide(a), y = gm_wide(b);                                                           \
    return EXPRESSION;                                                                             \
  }                                                                                                \
  GM_DEVICE bool __hb##NAME##2(H2 a, H2 b) { return __h##NAME(a.x, b.x) && __h##NAME(a.y, b.y); }  \
  GM_DEVICE H2 __h##NAME##2(H2 a, H2 b) {                                                          \
    return {gm_round_to<H>(__h##NAME(a.x, b.x) ? 1.f : 0.f),                                       \
      gm_round_to<H>(__h##NAME(a.y, b.y) ? 1.f : 0.f)};                                            \
  }                                                                                                \
  GM_DEVICE unsigned __h##NAME##2_mask(H2 a, H2 b) {                                               \
    return (__h##NAME(a.x, b.x) ? 0xffffu : 0u) | (__h##NAME(a.y, b.y) ? 0xffff0000u : 0u);        \
  }
#define GM_COMPARISONS(H, H2)                                                                      \
  GM_COMPARISON(H, H2, eq, x == y)                                                                 \
  GM_COMPARISON(H, H2, ne, x<y || x> y)                                                            \
  GM_COMPARISON(H, H2, lt, x < y)                                                                  \
  GM_COMPARISON(H, H2, le, x <= y)                                                                 \
  GM_COMPARISON(H, H2, gt, x > y)                                                                  \
  GM_COMPARISON(H, H2, ge, x >= y)                                                                 \
  GM_COMPARISON(H, H2, equ, !(x < y || x > y))                                                     \
  GM_COMPARISON(H, H2, neu, !(x == y))                                                             \
  GM_COMPARISON(H, H2, ltu, !(x >= y))                                                             \
  GM_COMPARISON(H, H2, leu, !(x > y))                                                              \
  GM_COMPARISON(H, H2, gtu, !(x <= y))                                                             \
  GM_COMPARISON(H, H2, geu, !(x < y))                                                              \
  GM_DEVICE bool operator==(H a, H b) { return __heq(a, b); }                                      \
  GM_DEVICE bool operator!=(H a, H b) { return __hneu(a, b); }                                     \
  GM_DEVICE bool operator<(H a, H b) { return __hlt(a, b); }                                       \
  GM_DEVICE bool operator<=(H a, H b) { return __hle(a, b); }                                      \
  GM_DEVICE bool operator>(H a, H b) { return __hgt(a, b); }                                       \
  GM_DEVICE bool operator>=(H a, H b) { return __hge(a, b); }                                      \
  GM_DEVICE bool operator==(H2 a, H2 b) { return __hbeq2(a, b); }                                  \
  GM_DEVICE bool operator!=(H2 a, H2 b) { return __hbneu2(a, b); }                                 \
  GM_DEVICE bool operator<(H2 a, H2 b) { return __hblt2(a, b); }                                   \
  GM_DEVICE bool operator<=(H2 a, H2 b) { return __hble2(a, b); }                                  \
  GM_DEVICE bool operator>(H2 a, H2 b) { return __hbgt2(a, b); }                                   \
  GM_DEVICE bool operator>=(H2 a, H2 b) { return __hbge2(a, b); }                                  \
  GM_DEVICE bool __hisnan(H a) {                                                                   \
    auto x = gm_wide(a);                                                                           \
    return x != x;                                                                                 \
  }                                                                                                \
  GM_DEVICE H2 __hisnan2(H2 a) {                                                                   \
    return {gm_round_to<H>(__hisnan(a.x) ? 1.f : 0.f), gm_round_to<H>(__hisnan(a.y) ? 1.f : 0.f)}; \
  }                                                                                                \
  GM_DEVICE int __hisinf(H a) {                                                                    \
    float x = gm_single(a);                                                                        \
    return x == __builtin_inff() ? 1 : x == -__builtin_inff() ? -1 : 0;                            \
  }

// One instruction of two operands on one number and on a pair.
#define GM_INSTRUCTION_2(H, H2, NAME, PAIR, OP, TYPE)                                              \
  GM_DEVICE H NAME(H a, H b) {                                                                     \
    unsigned short r;                                                                              \
    asm(OP TYPE " %0, %1, %2;"                                                                     \
        : "=h"(r)                                                                                  \
        : "h"(__builtin_bit_cast(unsigned short, a)), "h"(__builtin_bit_cast(unsigned short, b))); \
    return __builtin_bit_cast(H, r);                                                               \
  }                                                                                                \
  GM_DEVICE H2 PAIR(H2 a, H2 b) {                                                                  \
    unsigned r;                                                                                    \
    asm(OP TYPE "x2 %0, %1, %2;"                                                                   \
        : "=r"(r)                                                                                  \
        : "r"(__builtin_bit_cast(unsigned, a)), "r"(__builtin_bit_cast(unsigned, b)));             \
    return __builtin_bit_cast(H2, r);                                                              \
  }
#define GM_INSTRUCTION_3(H, H2, NAME, PAIR, OP, TYPE)                                              \
  GM_DEVICE H NAME(H a, H b, H c) {                                                                \
    unsigned short r;                                                                              \
    asm(OP TYPE " %0, %1, %2, %3;"                                                                 \
        : "=h"(r)                                                                                  \
        : "h"(__builtin_bit_cast(unsigned short, a)), "h"(__builtin_bit_cast(unsigned short, b)),  \
        "h"(__builtin_bit_cast(unsigned short, c)));                                               \
    return __builtin_bit_cast(H, r);                                                               \
  }                                                                                                \
  GM_DEVICE H2 PAIR(H2 a, H2 b, H2 c) {                                                            \
    unsigned r;                                                                                    \
    asm(OP TYPE "x2 %0, %1, %2, %3;"                                                               \
        : "=r"(r)                                                                                  \
        : "r"(__builtin_bit_cast(unsigned, a)), "r"(__builtin_bit_cast(unsigned, b)),              \
        "r"(__builtin_bit_cast(unsigned, c)));                                                     \
    return __builtin_bit_cast(H2, r);                                                              \
  }

// The smaller and the larger; with _nan in the name a NaN wins, else the number does.
#if __CUDA_ARCH__ >= 800
#define GM_LIMITS_OF_TWO(H, H2, TYPE)                                                              \
  GM_INSTRUCTION_2(H, H2, __hmin, __hmin2, "min.", TYPE)                                           \
  GM_INSTRUCTION_2(H, H2, __hmax, __hmax2, "max.", TYPE)                                           \
  GM_INSTRUCTION_2(H, H2, __hmin_nan, __hmin2_nan, "min.NaN.", TYPE)                               \
  GM_INSTRUCTION_2(H, H2, __hmax_nan, __hmax2_nan, "max.NaN.", TYPE)                               \
  GM_INSTRUCTION_3(H, H2, __hfma_relu, __hfma2_relu, "fma.rn.relu.", TYPE)
#else
#define GM_LIMITS_OF_TWO(H, H2, TYPE)                                                              \
  GM_DEVICE H __hmin(H a, H b) {                                                                   \
    return gm_round_to<H>(__builtin_fminf(gm_single(a), gm_single(b)));                            \
  }                                                                                                \
  GM_DEVICE H __hmax(H a, H b) {                                                                   \
    return gm_round_to<H>(__builtin_fmaxf(gm_single(a), gm_single(b)));                            \
  }                                                                                                \
  GM_BOTH_HALVES(H, H2, __hmin, __hmin2)                                                           \
  GM_BOTH_HALVES(H, H2, __hmax, __hmax2)
#endif

// Results held in 0 to 1, where a NaN becomes 0.
#define GM_SATURATED(H, H2)                                                                        \
  GM_DEVICE H gm_saturated(H a) { return gm_round_to<H>(__saturatef(gm_single(a))); }              \
  GM_DEVICE H __hadd_sat(H a, H b) { return gm_saturated(__hadd(a, b)); }                          \
  GM_DEVICE H __hsub_sat(H a, H b) { return gm_saturated(__hsub(a, b)); }                          \
  GM_DEVICE H __hmul_sat(H a, H b) { return gm_saturated(__hmul(a, b)); }                          \
  GM_DEVICE H __hfma_sat(H a, H b, H c) { return gm_saturated(__hfma(a, b, c)); }                  \
  GM_BOTH_HALVES(H, H2, __hadd_sat, __hadd2_sat)                                                   \
  GM_BOTH_HALVES(H, H2, __hsub_sat, __hsub2_sat)                                                   \
  GM_BOTH_HALVES(H, H2, __hmul_sat, __hmul2_sat)                                                   \
  GM_DEVICE H2 __hfma2_sat(H2 a, H2 b, H2 c) {                                                     \
    return {__hfma_sat(a.x, b.x, c.x), __hfma_sat(a.y, b.y, c.y)};                                 \
  }                                                                                                \
  GM_DEVICE H2 __hcmadd(H2 a, H2 b, H2 c) {                                                        \
    H real = __hfma(a.x, b.x, c.x), imaginary = __hfma(a.x, b.y, c.y);                             \
    return {__hfma(-a.y, b.y, real), __hfma(a.y, b.x, imaginary)};                                 \
  }                                                                                                \
  GM_DEVICE H operator+(H a) { return a; }                                                         \
  GM_DEVICE H2 operator+(H2 a) { return a; }                                                       \
  GM_DEVICE H& operator++(H& a) { return a = __hadd(a, gm_round_to<H>(1.f)); }                     \
  GM_DEVICE H& operator--(H& a) { return a = __hsub(a, gm_round_to<H>(1.f)); }                     \
  GM_DEVICE H operator++(H& a, int) {                                                              \
    H before = a;                                                                                  \
    ++a;                                                                                           \
    return before;                                                                                 \
  }                                                                                                \
  GM_DEVICE H operator--(H& a, int) {                                                              \
    H before = a;                                                                                  \
    --a;                                                                                           \
    return before;                                                                                 \
  }

// To and from integers with a rounding mode in the name; what does not fit becomes the limit.
#define GM_INTEGER_FORM(H, N, NAME, T, MODE, GM_MODE)                                              \
  GM_DEVICE T __##N##2##NAME##_##MODE(H h) { return __float2##NAME##_##MODE(gm_single(h)); }       \
  GM_DEVICE H __##NAME##2##N##_##MODE(T v) { return gm_round##GM_MODE##_to<H>(gm_odd_float(v)); }
#define GM_SHORT_FORM(H, N, NAME, T, LOW, HIGH, MODE, GM_MODE)                                     \
  GM_DEVICE T __##N##2##NAME##_##MODE(H h) {                                                       \
    return static_cast<T>(min(max(__float2int_##MODE(gm_single(h)), LOW), HIGH));                  \
  }                                                                                                \
  GM_DEVICE H __##NAME##2##N##_##MODE(T v) {                                                       \
    return gm_round##GM_MODE##_to<H>(static_cast<float>(v));                                       \
  }
#define GM_INTEGERS_BY(H, N, MODE, GM_MODE)                                                        \
  GM_INTEGER_FORM(H, N, int, int, MODE, GM_MODE)                                                   \
  GM_INTEGER_FORM(H, N, uint, unsigned, MODE, GM_MODE)                                             \
  GM_INTEGER_FORM(H, N, ll, long long, MODE, GM_MODE)                                              \
  GM_INTEGER_FORM(H, N, ull, unsigned long long, MODE, GM_MODE)                                    \
  GM_SHORT_FORM(H, N, short, short, -32768, 32767, MODE, GM_MODE)                                  \
  GM_SHORT_FORM(H, N, ushort, unsigned short, 0, 65535, MODE, GM_MODE)
#define GM_INTEGERS(H, N)                                                                          \
  GM_INTEGERS_BY(H, N, rn, )                                                                       \
  GM_INTEGERS_BY(H, N, rz, _rz)                                                                    \
  GM_INTEGERS_BY(H, N, rd, _rm)                                                                    \
  GM_INTEGERS_BY(H, N, ru, _rp)                                                                    \
  GM_DEVICE signed char __##N##2char_rz(H h) {                                                     \
    return static_cast<signed char>(min(max(__float2int_rz(gm_single(h)), -128), 127));            \
  }                                                                                                \
  GM_DEVICE unsigned char __##N##2uchar_rz(H h) {                                                  \
    return static_cast<unsigned char>(min(max(__float2int_rz(gm_single(h)), 0), 255));             \
  }

// Pairs made of the parts of pairs.
#define GM_PAIRS(H, H2, N, N2)                                                                     \
  GM_DEVICE H __low2##N(H2 v) { return v.x; }                                                      \
  GM_DEVICE H __high2##N(H2 v) { return v.y; }                                                     \
  GM_DEVICE H2 __low2##N2(H2 v) { return {v.x, v.x}; }                                             \
  GM_DEVICE H2 __high2##N2(H2 v) { return {v.y, v.y}; }                                            \
  GM_DEVICE H2 __lows2##N2(H2 a, H2 b) { return {a.x, b.x}; }                                      \
  GM_DEVICE H2 __highs2##N2(H2 a, H2 b) { return {a.y, b.y}; }                                     \
  GM_DEVICE H2 __halves2##N2(H a, H b) { return {a, b}; }                                          \
  GM_DEVICE H2 __##N##2##N2(H v) { return {v, v}; }                                                \
  GM_DEVICE H2 __lowhigh2highlow(H2 v) { return {v.y, v.x}; }                                      \
  GM_DEVICE float __low2float(H2 v) { return gm_single(v.x); }                                     \
  GM_DEVICE float __high2float(H2 v) { return gm_single(v.y); }                                    \
  GM_DEVICE unsigned short __##N##_as_ushort(H h) {                                                \
    return __builtin_bit_cast(unsigned short, h);                                                  \
  }                                                                                                \
  GM_DEVICE short __##N##_as_short(H h) { return __builtin_bit_cast(short, h); }                   \
  GM_DEVICE H __ushort_as_##N(unsigned short v) { return __builtin_bit_cast(H, v); }               \
  GM_DEVICE H __short_as_##N(short v) { return __builtin_bit_cast(H, v); }

// Computed in float and rounded once.
#define GM_SHORT_FUNCTION(H, H2, NAME, EXPRESSION)                                                 \
  GM_DEVICE H h##NAME(H h) {                                                                       \
    float x = gm_single(h);                                                                        \
    return gm_round_to<H>(EXPRESSION);                                                             \
  }                                                                                                \
  GM_DEVICE H2 h2##NAME(H2 v) { return {h##NAME(v.x), h##NAME(v.y)}; }
#define GM_SHORT_FUNCTIONS(H, H2, TYPE)                                                            \
  GM_SHORT_FUNCTION(H, H2, exp, expf(x))                                                           \
  GM_SHORT_FUNCTION(H, H2, exp2, exp2f(x))                                                         \
  GM_SHORT_FUNCTION(H, H2, exp10, __exp10f(x))                                                     \
  GM_SHORT_FUNCTION(H, H2, log, __logf(x))                                                         \
  GM_SHORT_FUNCTION(H, H2, log2, __log2f(x))                                                       \
  GM_SHORT_FUNCTION(H, H2, log10, __log10f(x))                                                     \
  GM_SHORT_FUNCTION(H, H2, sqrt, __nvvm_sqrt_rn_f(x))                                              \
  GM_SHORT_FUNCTION(H, H2, rsqrt, __nvvm_rsqrt_approx_f(x))                                        \
  GM_SHORT_FUNCTION(H, H2, rcp, 1.f / x)                                                           \
  GM_SHORT_FUNCTION(H, H2, sin, __sinf(gm_within_a_turn(x)))                                       \
  GM_SHORT_FUNCTION(H, H2, cos, __cosf(gm_within_a_turn(x)))                                       \
  GM_SHORT_FUNCTION(H, H2, tanh, gm_short_tanh(x))                                                 \
  GM_SHORT_FUNCTION(H, H2, floor, __builtin_floorf(x))                                             \
  GM_SHORT_FUNCTION(H, H2, ceil, __builtin_ceilf(x))                                               \
  GM_SHORT_FUNCTION(H, H2, rint, __builtin_rintf(x))                                               \
  GM_SHORT_FUNCTION(H, H2, trunc, __builtin_truncf(x))                                             \
  GM_DEVICE H htanh_approx(H a) {                                                                  \
    unsigned short r;                                                                              \
    asm("tanh.approx." TYPE " %0, %1;" : "=h"(r) : "h"(__builtin_bit_cast(unsigned short, a)));    \
    return __builtin_bit_cast(H, r);                                                               \
  }                                                                                                \
  GM_DEVICE H2 h2tanh_approx(H2 a) {                                                               \
    unsigned r;                                                                                    \
    asm("tanh.approx." TYPE "x2 %0, %1;" : "=r"(r) : "r"(__builtin_bit_cast(unsigned, a)));        \
    return __builtin_bit_cast(H2, r);                                                              \
  }

#define GM_SHORT_SHUFFLE(H, H2, NAME, SECOND)                                                      \
  GM_DEVICE H NAME(unsigned mask, H v, SECOND lane, int width = 32) {                              \
    unsigned bits = __builtin_bit_cast(unsigned short, v);                                         \
    return __builtin_bit_cast(H, static_cast<unsigned short>(NAME(mask, bits, lane, width)));      \
  }                                                                                                \
  GM_DEVICE H2 NAME(unsigned mask, H2 v, SECOND lane, int width = 32) {                            \
    return __builtin_bit_cast(H2, NAME(mask, __builtin_bit_cast(unsigned, v), lane, width));       \
  }
#define GM_SHORT_SHUFFLES(H, H2)                                                                   \
  GM_SHORT_SHUFFLE(H, H2, __shfl_sync, int)                                                        \
  GM_SHORT_SHUFFLE(H, H2, __shfl_xor_sync, int)                                                    \
  GM_SHORT_SHUFFLE(H, H2, __shfl_down_sync, unsigned)                                              \
  GM_SHORT_SHUFFLE(H, H2, __shfl_up_sync, unsigned)

// Where the GPU has no instruction, the word around is exchanged until nobody was faster.
#define GM_SHORT_ATOMICS(H, H2, TYPE)                                                              \
  GM_DEVICE H atomicAdd(H* p, H v) {                                                               \
    unsigned short r;                                                                              \
    asm volatile("atom.add.noftz." TYPE " %0, [%1], %2;"                                           \
                 : "=h"(r)                                                                         \
                 : "l"(p), "h"(__builtin_bit_cast(unsigned short, v))                              \
                 : "memory");                                                                      \
    return __builtin_bit_cast(H, r);                                                               \
  }                                                                                                \
  GM_DEVICE H2 atomicAdd(H2* p, H2 v) {                                                            \
    unsigned r;                                                                                    \
    asm volatile("atom.add.noftz." TYPE "x2 %0, [%1], %2;"                                         \
                 : "=r"(r)                                                                         \
                 : "l"(p), "r"(__builtin_bit_cast(unsigned, v))                                    \
                 : "memory");                                                                      \
    return __builtin_bit_cast(H2, r);                                                              \
  }
#define GM_SHORT_ATOMICS_BY_EXCHANGE(H, H2)                                                        \
  GM_DEVICE H2 atomicAdd(H2* p, H2 v) {                                                            \
    unsigned* word = reinterpret_cast<unsigned*>(p);                                               \
    unsigned seen = *word, expected;                                                               \
    do {                                                                                           \
      expected = seen;                                                                             \
      H2 sum = __hadd2(__builtin_bit_cast(H2, expected), v);                                       \
      seen = atomicCAS(word, expected, __builtin_bit_cast(unsigned, sum));                         \
    } while (seen != expected);                                                                    \
    return __builtin_bit_cast(H2, seen);                                                           \
  }                                                                                                \
  GM_DEVICE H atomicAdd(H* p, H v) {                                                               \
    size_t address = reinterpret_cast<size_t>(p);                                                  \
    unsigned* word = reinterpret_cast<unsigned*>(address & ~static_cast<size_t>(3));               \
    unsigned shift = (address & 2) != 0 ? 16 : 0, seen = *word, expected;                          \
    do {                                                                                           \
      expected = seen;                                                                             \
      H sum = __hadd(__builtin_bit_cast(H, static_cast<unsigned short>(seen >> shift)), v);        \
      unsigned bits = __builtin_bit_cast(unsigned short, sum);                                     \
      seen = atomicCAS(word, expected, (expected & ~(0xffffu << shift)) | bits << shift);          \
    } while (seen != expected);                                                                    \
    return __builtin_bit_cast(H, static_cast<unsigned short>(seen >> shift));                      \
  }
