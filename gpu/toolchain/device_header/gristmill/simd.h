// Two or four small integers in a word: additions, differences, means, limits, comparisons; and the
// products of bytes and halves that a sum is made of.
#pragma once
#include "integer.h"

// Wraps, as the GPU does.
GM_DEVICE int gm_plus(int a, int b) {
  return static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b));
}
template <int bits, bool is_signed>
GM_DEVICE int gm_lane(unsigned word, int shift) {
  if (is_signed)
    return static_cast<int>(word << (32 - bits - shift)) >> (32 - bits);
  return static_cast<int>(word >> shift & ((1u << bits) - 1u));
}
template <int bits, bool is_signed>
GM_DEVICE int gm_fit(int v) {
  return is_signed ? min(max(v, -(1 << (bits - 1))), (1 << (bits - 1)) - 1)
                   : min(max(v, 0), (1 << bits) - 1);
}
#define GM_LANES(NAME, BITS, SIGNED, EXPRESSION)                                                   \
  GM_DEVICE unsigned NAME##BITS(unsigned a, unsigned b) {                                          \
    constexpr int width = BITS == 2 ? 16 : 8;                                                      \
    unsigned r = 0;                                                                                \
    _Pragma("unroll") for (int at = 0; at < 32; at += width) {                                     \
      int x = gm_lane<width, SIGNED>(a, at), y = gm_lane<width, SIGNED>(b, at);                    \
      r |= (static_cast<unsigned>(EXPRESSION) & ((1u << width) - 1u)) << at;                       \
    }                                                                                              \
    return r;                                                                                      \
  }
#define GM_LANES_OF_ONE(NAME, BITS, EXPRESSION)                                                    \
  GM_DEVICE unsigned NAME##BITS(unsigned a) {                                                      \
    constexpr int width = BITS == 2 ? 16 : 8;                                                      \
    unsigned r = 0;                                                                                \
    _Pragma("unroll") for (int at = 0; at < 32; at += width) {                                     \
      int x = gm_lane<width, true>(a, at);                                                         \
      r |= (static_cast<unsigned>(EXPRESSION) & ((1u << width) - 1u)) << at;                       \
    }                                                                                              \
    return r;                                                                                      \
  }
// Sums over the lanes.
#define GM_LANES_SUM(NAME, BITS, SIGNED)                                                           \
  GM_DEVICE unsigned NAME##BITS(unsigned a, unsigned b) {                                          \
    constexpr int width = BITS == 2 ? 16 : 8;                                                      \
    int sum = 0;                                                                                   \
    _Pragma("unroll") for (int at = 0; at < 32; at += width) sum +=                                \
      abs(gm_lane<width, SIGNED>(a, at) - gm_lane<width, SIGNED>(b, at));                          \
    return static_cast<unsigned>(sum);                                                             \
  }
#define GM_LANES_COMPARE(NAME, BITS, SIGNED, OPERATOR)                                             \
  GM_LANES(__vcmp##NAME, BITS, SIGNED, x OPERATOR y ? -1 : 0)                                      \
  GM_LANES(__vset##NAME, BITS, SIGNED, x OPERATOR y ? 1 : 0)
#define GM_LANES_ALL(BITS)                                                                         \
  GM_LANES_OF_ONE(__vabs, BITS, abs(x))                                                            \
  GM_LANES_OF_ONE(__vabsss, BITS, (gm_fit<width, true>(abs(x))))                                   \
  GM_LANES_OF_ONE(__vneg, BITS, -x)                                                                \
  GM_LANES_OF_ONE(__vnegss, BITS, (gm_fit<width, true>(-x)))                                       \
  GM_LANES(__vadd, BITS, false, x + y)                                                             \
  GM_LANES(__vaddss, BITS, true, (gm_fit<width, true>(x + y)))                                     \
  GM_LANES(__vaddus, BITS, false, (gm_fit<width, false>(x + y)))                                   \
  GM_LANES(__vsub, BITS, false, x - y)                                                             \
  GM_LANES(__vsubss, BITS, true, (gm_fit<width, true>(x - y)))                                     \
  GM_LANES(__vsubus, BITS, false, (gm_fit<width, false>(x - y)))                                   \
  GM_LANES(__vabsdiffs, BITS, true, abs(x - y))                                                    \
  GM_LANES(__vabsdiffu, BITS, false, abs(x - y))                                                   \
  GM_LANES(__vavgs, BITS, true, (x + y + (x + y >= 0 ? 1 : 0)) >> 1)                               \
  GM_LANES(__vavgu, BITS, false, (x + y + 1) >> 1)                                                 \
  GM_LANES(__vhaddu, BITS, false, (x + y) >> 1)                                                    \
  GM_LANES(__vmaxs, BITS, true, max(x, y))                                                         \
  GM_LANES(__vmaxu, BITS, false, max(x, y))                                                        \
  GM_LANES(__vmins, BITS, true, min(x, y))                                                         \
  GM_LANES(__vminu, BITS, false, min(x, y))                                                        \
  GM_LANES_COMPARE(eq, BITS, false, ==)                                                            \
  GM_LANES_COMPARE(ne, BITS, false, !=)                                                            \
  GM_LANES_COMPARE(ges, BITS, true, >=)                                                            \
  GM_LANES_COMPARE(geu, BITS, false, >=)                                                           \
  GM_LANES_COMPARE(gts, BITS, true, >)                                                             \
  GM_LANES_COMPARE(gtu, BITS, false, >)                                                            \
  GM_LANES_COMPARE(les, BITS, true, <=)                                                            \
  GM_LANES_COMPARE(leu, BITS, false, <=)                                                           \
  GM_LANES_COMPARE(lts, BITS, true, <)                                                             \
  GM_LANES_COMPARE(ltu, BITS, false, <)                                                            \
  GM_LANES_SUM(__vsads, BITS, true)                                                                \
  GM_LANES_SUM(__vsadu, BITS, false)
GM_LANES_ALL(2)
GM_LANES_ALL(4)

// An addition and a limit, or three numbers, in one: on words and on halves of words.
#define GM_THREE(NAME, T, EXPRESSION)                                                              \
  GM_DEVICE T NAME(T a, T b, T c) { return EXPRESSION; }                                           \
  GM_DEVICE T NAME##_relu(T a, T b, T c) { return max(EXPRESSION, T(0)); }
#define GM_THREE_UNSIGNED(NAME, EXPRESSION)                                                        \
  GM_DEVICE unsigned NAME(unsigned a, unsigned b, unsigned c) { return EXPRESSION; }
GM_THREE(__viaddmax_s32, int, max(gm_plus(a, b), c))
GM_THREE(__viaddmin_s32, int, min(gm_plus(a, b), c))
GM_THREE(__vimax3_s32, int, max(max(a, b), c))
GM_THREE(__vimin3_s32, int, min(min(a, b), c))
GM_THREE_UNSIGNED(__viaddmax_u32, max(a + b, c))
GM_THREE_UNSIGNED(__viaddmin_u32, min(a + b, c))
GM_THREE_UNSIGNED(__vimax3_u32, max(max(a, b), c))
GM_THREE_UNSIGNED(__vimin3_u32, min(min(a, b), c))
GM_THREE_UNSIGNED(__viaddmax_s16x2, __vmaxs2(__vadd2(a, b), c))
GM_THREE_UNSIGNED(__viaddmax_u16x2, __vmaxu2(__vadd2(a, b), c))
GM_THREE_UNSIGNED(__viaddmin_s16x2, __vmins2(__vadd2(a, b), c))
GM_THREE_UNSIGNED(__viaddmin_u16x2, __vminu2(__vadd2(a, b), c))
GM_THREE_UNSIGNED(__viaddmax_s16x2_relu, __vmaxs2(__vmaxs2(__vadd2(a, b), c), 0))
GM_THREE_UNSIGNED(__viaddmin_s16x2_relu, __vmaxs2(__vmins2(__vadd2(a, b), c), 0))
GM_THREE_UNSIGNED(__vimax3_s16x2, __vmaxs2(__vmaxs2(a, b), c))
GM_THREE_UNSIGNED(__vimax3_u16x2, __vmaxu2(__vmaxu2(a, b), c))
GM_THREE_UNSIGNED(__vimin3_s16x2, __vmins2(__vmins2(a, b), c))
GM_THREE_UNSIGNED(__vimin3_u16x2, __vminu2(__vminu2(a, b), c))
GM_THREE_UNSIGNED(__vimax3_s16x2_relu, __vmaxs2(__vmaxs2(__vmaxs2(a, b), c), 0))
GM_THREE_UNSIGNED(__vimin3_s16x2_relu, __vmaxs2(__vmins2(__vmins2(a, b), c), 0))
GM_DEVICE int __vimax_s32_relu(int a, int b) { return max(max(a, b), 0); }
GM_DEVICE int __vimin_s32_relu(int a, int b) { return max(min(a, b), 0); }
GM_DEVICE unsigned __vimax_s16x2_relu(unsigned a, unsigned b) {
  return __vmaxs2(__vmaxs2(a, b), 0);
}
GM_DEVICE unsigned __vimin_s16x2_relu(unsigned a, unsigned b) {
  return __vmaxs2(__vmins2(a, b), 0);
}
// With word of which one it was: true for the first.
#define GM_LIMIT_AND_WHICH(NAME, T, OPERATOR)                                                      \
  GM_DEVICE T NAME(T a, T b, bool* first) {                                                        \
    *first = a OPERATOR b;                                                                         \
    return *first ? a : b;                                                                         \
  }
GM_LIMIT_AND_WHICH(__vibmax_s32, int, >=)
GM_LIMIT_AND_WHICH(__vibmax_u32, unsigned, >=)
GM_LIMIT_AND_WHICH(__vibmin_s32, int, <=)
GM_LIMIT_AND_WHICH(__vibmin_u32, unsigned, <=)

// c and the products of four bytes, or of two halves with the lower or upper two bytes.
GM_DEVICE int __dp4a(int a, int b, int c) {
  int r;
  asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
  return r;
}
GM_DEVICE unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  unsigned r;
  asm("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
  return r;
}
GM_DEVICE int __dp4a(char4 a, char4 b, int c) {
  return __dp4a(__builtin_bit_cast(int, a), __builtin_bit_cast(int, b), c);
}
GM_DEVICE unsigned __dp4a(uchar4 a, uchar4 b, unsigned c) {
  return __dp4a(__builtin_bit_cast(unsigned, a), __builtin_bit_cast(unsigned, b), c);
}
#define GM_DP2A(NAME, SHIFT)                                                                       \
  GM_DEVICE int NAME(int a, int b, int c) {                                                        \
    unsigned x = static_cast<unsigned>(a), y = static_cast<unsigned>(b);                           \
    return gm_plus(c,                                                                              \
      gm_lane<16, true>(x, 0) * gm_lane<8, true>(y, SHIFT)                                         \
        + gm_lane<16, true>(x, 16) * gm_lane<8, true>(y, SHIFT + 8));                              \
  }                                                                                                \
  GM_DEVICE unsigned NAME(unsigned a, unsigned b, unsigned c) {                                    \
    return c + (a & 0xffffu) * (b >> SHIFT & 255u) + (a >> 16) * (b >> (SHIFT + 8) & 255u);        \
  }                                                                                                \
  GM_DEVICE int NAME(short2 a, char4 b, int c) {                                                   \
    return NAME(__builtin_bit_cast(int, a), __builtin_bit_cast(int, b), c);                        \
  }                                                                                                \
  GM_DEVICE unsigned NAME(ushort2 a, uchar4 b, unsigned c) {                                       \
    return NAME(__builtin_bit_cast(unsigned, a), __builtin_bit_cast(unsigned, b), c);              \
  }
GM_DP2A(__dp2a_lo, 0)
GM_DP2A(__dp2a_hi, 16)
#undef GM_LANES
#undef GM_LANES_OF_ONE
#undef GM_LANES_SUM
#undef GM_LANES_COMPARE
#undef GM_LANES_ALL
#undef GM_THREE
#undef GM_THREE_UNSIGNED
#undef GM_LIMIT_AND_WHICH
#undef GM_DP2A
