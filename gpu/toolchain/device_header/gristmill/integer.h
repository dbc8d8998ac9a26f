// Integer intrinsics, casts by bit pattern, and conversions with a rounding mode.
#pragma once
#include "types.h"

GM_DEVICE int __popc(unsigned x) { return __builtin_popcount(x); }
GM_DEVICE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
GM_DEVICE int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
GM_DEVICE int __clzll(long long x) {
  return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x));
}
GM_DEVICE int __ffs(int x) { return x == 0 ? 0 : __builtin_ctz(static_cast<unsigned>(x)) + 1; }
GM_DEVICE int __ffsll(long long x) {
  return x == 0 ? 0 : __builtin_ctzll(static_cast<unsigned long long>(x)) + 1;
}
GM_DEVICE unsigned __brev(unsigned x) { return __builtin_bitreverse32(x); }
GM_DEVICE unsigned long long __brevll(unsigned long long x) { return __builtin_bitreverse64(x); }
GM_DEVICE unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  return static_cast<unsigned>(
    __nvvm_prmt(static_cast<int>(a), static_cast<int>(b), static_cast<int>(selector)));
}
#define GM_FUNNEL(NAME, MODE)                                                                      \
  GM_DEVICE unsigned NAME(unsigned low, unsigned high, unsigned shift) {                           \
    unsigned r;                                                                                    \
    asm("shf." MODE ".b32 %0, %1, %2, %3;" : "=r"(r) : "r"(low), "r"(high), "r"(shift));           \
    return r;                                                                                      \
  }
GM_FUNNEL(__funnelshift_l, "l.wrap")
GM_FUNNEL(__funnelshift_r, "r.wrap")
GM_FUNNEL(__funnelshift_lc, "l.clamp")
GM_FUNNEL(__funnelshift_rc, "r.clamp")
#undef GM_FUNNEL

GM_DEVICE int __mulhi(int a, int b) {
  return static_cast<int>((static_cast<long long>(a) * b) >> 32);
}
GM_DEVICE unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<unsigned long long>(a) * b) >> 32);
}
GM_DEVICE long long __mul64hi(long long a, long long b) { return __nvvm_mulhi_ll(a, b); }
GM_DEVICE unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return __nvvm_mulhi_ull(a, b);
}
// The low 24 bits (sign-extended) of both factors.
GM_DEVICE int __mul24(int a, int b) {
  return (static_cast<int>(static_cast<unsigned>(a) << 8) >> 8)
    * (static_cast<int>(static_cast<unsigned>(b) << 8) >> 8);
}
GM_DEVICE unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
GM_DEVICE unsigned __sad(int a, int b, unsigned c) {
  return c + static_cast<unsigned>(a < b ? b - a : a - b);
}
GM_DEVICE unsigned __usad(unsigned a, unsigned b, unsigned c) {
  return c + (a < b ? b - a : a - b);
}
GM_DEVICE int __hadd(int a, int b) {
  return static_cast<int>((static_cast<long long>(a) + b) >> 1);
}
GM_DEVICE unsigned __uhadd(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<unsigned long long>(a) + b) >> 1);
}
GM_DEVICE unsigned __urhadd(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<unsigned long long>(a) + b + 1) >> 1);
}
// Where the nth set bit of `mask` is, counted from bit `base` up, or down for a negative n.
GM_DEVICE unsigned __fns(unsigned mask, unsigned base, int n) {
  if (n == 0)
    return (mask >> base & 1u) != 0 ? base : 0xffffffffu;
  int step = n > 0 ? 1 : -1;
  for (int at = static_cast<int>(base); at >= 0 && at < 32; at += step)
    if ((mask >> at & 1u) != 0 && (n -= step) == 0)
      return static_cast<unsigned>(at);
  return 0xffffffffu;
}
GM_DEVICE int __rhadd(int a, int b) {
  return static_cast<int>((static_cast<long long>(a) + b + 1) >> 1);
}
#define GM_MIN_MAX(T)                                                                              \
  GM_DEVICE constexpr T min(T a, T b) { return b < a ? b : a; }                                    \
  GM_DEVICE constexpr T max(T a, T b) { return a < b ? b : a; }
GM_MIN_MAX(int)
GM_MIN_MAX(unsigned)
GM_MIN_MAX(long)
GM_MIN_MAX(unsigned long)
GM_MIN_MAX(long long)
GM_MIN_MAX(unsigned long long)
#undef GM_MIN_MAX
GM_DEVICE constexpr unsigned min(int a, unsigned b) { return min(static_cast<unsigned>(a), b); }
GM_DEVICE constexpr unsigned min(unsigned a, int b) { return min(a, static_cast<unsigned>(b)); }
GM_DEVICE constexpr unsigned max(int a, unsigned b) { return max(static_cast<unsigned>(a), b); }
GM_DEVICE constexpr unsigned max(unsigned a, int b) { return max(a, static_cast<unsigned>(b)); }
GM_DEVICE constexpr unsigned umin(unsigned a, unsigned b) { return min(a, b); }
GM_DEVICE constexpr unsigned umax(unsigned a, unsigned b) { return max(a, b); }
GM_DEVICE constexpr long long llmin(long long a, long long b) { return min(a, b); }
GM_DEVICE constexpr long long llmax(long long a, long long b) { return max(a, b); }
GM_DEVICE constexpr unsigned long long ullmin(unsigned long long a, unsigned long long b) {
  return min(a, b);
}
GM_DEVICE constexpr unsigned long long ullmax(unsigned long long a, unsigned long long b) {
  return max(a, b);
}
#define GM_MIXED_MIN_MAX(A, B, T)                                                                  \
  GM_DEVICE constexpr T min(A a, B b) { return min(static_cast<T>(a), static_cast<T>(b)); }        \
  GM_DEVICE constexpr T min(B a, A b) { return min(static_cast<T>(a), static_cast<T>(b)); }        \
  GM_DEVICE constexpr T max(A a, B b) { return max(static_cast<T>(a), static_cast<T>(b)); }        \
  GM_DEVICE constexpr T max(B a, A b) { return max(static_cast<T>(a), static_cast<T>(b)); }
GM_MIXED_MIN_MAX(long, unsigned long, unsigned long)
GM_MIXED_MIN_MAX(long long, unsigned long long, unsigned long long)
#undef GM_MIXED_MIN_MAX
GM_DEVICE constexpr int abs(int x) { return x < 0 ? -x : x; }
GM_DEVICE constexpr long abs(long x) { return x < 0 ? -x : x; }
GM_DEVICE constexpr long long abs(long long x) { return x < 0 ? -x : x; }
GM_DEVICE constexpr long labs(long x) { return x < 0 ? -x : x; }
GM_DEVICE constexpr long long llabs(long long x) { return x < 0 ? -x : x; }

GM_DEVICE int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
GM_DEVICE unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
GM_DEVICE float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
GM_DEVICE float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
GM_DEVICE long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
GM_DEVICE double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
GM_DEVICE int __double2hiint(double x) {
  return static_cast<int>(__builtin_bit_cast(unsigned long long, x) >> 32);
}
GM_DEVICE int __double2loint(double x) {
  return static_cast<int>(__builtin_bit_cast(unsigned long long, x));
}
GM_DEVICE double __hiloint2double(int high, int low) {
  return __builtin_bit_cast(double,
    static_cast<unsigned long long>(static_cast<unsigned>(high)) << 32
      | static_cast<unsigned>(low));
}

// Out of range becomes the limit of the integer.
#define GM_CONVERT(NAME, FROM, TO, MODE, IN, OUT)                                                  \
  GM_DEVICE TO NAME(FROM x) {                                                                      \
    TO r;                                                                                          \
    asm("cvt." MODE " %0, %1;" : OUT(r) : IN(x));                                                  \
    return r;                                                                                      \
  }
#define GM_TO_INTEGERS(FROM, SOURCE, IN, MODE, ROUND)                                              \
  GM_CONVERT(__##FROM##2int_##MODE, FROM, int, ROUND ".s32." SOURCE, IN, "=r")                     \
  GM_CONVERT(__##FROM##2uint_##MODE, FROM, unsigned, ROUND ".u32." SOURCE, IN, "=r")               \
  GM_CONVERT(__##FROM##2ll_##MODE, FROM, long long, ROUND ".s64." SOURCE, IN, "=l")                \
  GM_CONVERT(__##FROM##2ull_##MODE, FROM, unsigned long long, ROUND ".u64." SOURCE, IN, "=l")
#define GM_FROM_INTEGERS(TO, TARGET, OUT, MODE, ROUND)                                             \
  GM_CONVERT(__int2##TO##_##MODE, int, TO, ROUND "." TARGET ".s32", "r", OUT)                      \
  GM_CONVERT(__uint2##TO##_##MODE, unsigned, TO, ROUND "." TARGET ".u32", "r", OUT)                \
  GM_CONVERT(__ll2##TO##_##MODE, long long, TO, ROUND "." TARGET ".s64", "l", OUT)                 \
  GM_CONVERT(__ull2##TO##_##MODE, unsigned long long, TO, ROUND "." TARGET ".u64", "l", OUT)
#define GM_CONVERT_ALL(MODE, WHOLE, ROUND)                                                         \
  GM_TO_INTEGERS(float, "f32", "f", MODE, WHOLE)                                                   \
  GM_TO_INTEGERS(double, "f64", "d", MODE, WHOLE)                                                  \
  GM_FROM_INTEGERS(float, "f32", "=f", MODE, ROUND)                                                \
  GM_FROM_INTEGERS(double, "f64", "=d", MODE, ROUND)                                               \
  GM_CONVERT(__double2float_##MODE, double, float, ROUND ".f32.f64", "d", "=f")
GM_CONVERT_ALL(rn, "rni", "rn")
GM_CONVERT_ALL(rz, "rzi", "rz")
GM_CONVERT_ALL(rd, "rmi", "rm")
GM_CONVERT_ALL(ru, "rpi", "rp")
#undef GM_CONVERT
#undef GM_TO_INTEGERS
#undef GM_FROM_INTEGERS
#undef GM_CONVERT_ALL
