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
GM_DEVICE int __rhadd(int a, int b) {
  return static_cast<int>((static_cast<long long>(a) + b + 1) >> 1);
}
GM_DEVICE int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 32; i += 8)
    c += static_cast<signed char>(a >> i) * static_cast<signed char>(b >> i);
  return c;
}
GM_DEVICE unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 32; i += 8)
    c += (a >> i & 255u) * (b >> i & 255u);
  return c;
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

#define GM_CONVERT(NAME, FROM, TO, MODE, IN, OUT)                                                  \
  GM_DEVICE TO NAME(FROM x) {                                                                      \
    TO r;                                                                                          \
    asm("cvt." MODE " %0, %1;" : OUT(r) : IN(x));                                                  \
    return r;                                                                                      \
  }
GM_CONVERT(__float2int_rn, float, int, "rni.s32.f32", "f", "=r")
GM_CONVERT(__float2int_rz, float, int, "rzi.s32.f32", "f", "=r")
GM_CONVERT(__float2int_rd, float, int, "rmi.s32.f32", "f", "=r")
GM_CONVERT(__float2int_ru, float, int, "rpi.s32.f32", "f", "=r")
GM_CONVERT(__float2uint_rn, float, unsigned, "rni.u32.f32", "f", "=r")
GM_CONVERT(__float2uint_rz, float, unsigned, "rzi.u32.f32", "f", "=r")
GM_CONVERT(__float2uint_rd, float, unsigned, "rmi.u32.f32", "f", "=r")
GM_CONVERT(__float2uint_ru, float, unsigned, "rpi.u32.f32", "f", "=r")
GM_CONVERT(__float2ll_rn, float, long long, "rni.s64.f32", "f", "=l")
GM_CONVERT(__float2ll_rz, float, long long, "rzi.s64.f32", "f", "=l")
GM_CONVERT(__double2int_rn, double, int, "rni.s32.f64", "d", "=r")
GM_CONVERT(__double2int_rz, double, int, "rzi.s32.f64", "d", "=r")
GM_CONVERT(__double2ll_rn, double, long long, "rni.s64.f64", "d", "=l")
#undef GM_CONVERT
GM_DEVICE float __int2float_rn(int x) { return static_cast<float>(x); }
GM_DEVICE float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
GM_DEVICE float __ll2float_rn(long long x) { return static_cast<float>(x); }
GM_DEVICE float __ull2float_rn(unsigned long long x) { return static_cast<float>(x); }
GM_DEVICE double __int2double_rn(int x) { return static_cast<double>(x); }
GM_DEVICE double __ll2double_rn(long long x) { return static_cast<double>(x); }
GM_DEVICE float __double2float_rn(double x) { return static_cast<float>(x); }
