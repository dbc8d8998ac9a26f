#include "gpu/mock/ptx/lanes/floats.hpp"
#include "gpu/mock/ptx/lanes/tables.hpp"

/// Integer instructions on two or four small values in a register, and other rare ones.
namespace gristmill::ptx::GRISTMILL_PTX_LANES {
namespace {

/// Part i of a register, as a number.
template <class T>
int32_t part(uint32_t x, uint32_t i) {
  return static_cast<T>(x >> (8 * sizeof(T) * i));
}

// Two products of a half of `a` with a byte of `b`: those of the lower or of the upper half of b.
template <class A, class B, bool Upper>
struct dp2a {
  static uint32_t of(uint32_t a, uint32_t b, uint32_t c) {
    for (uint32_t i = 0; i < 2; ++i)
      c += static_cast<uint32_t>(part<A>(a, i) * part<B>(b, i + (Upper ? 2 : 0)));
    return c;
  }
};

/// The sum of the absolute differences of the parts and c, or those differences without a sum: then
/// c only fills parts that a mask leaves out, and there is no mask here.
template <class T, bool Sum>
struct vabsdiff {
  static uint32_t of(uint32_t a, uint32_t b, uint32_t c) {
    constexpr uint32_t parts = 4 / sizeof(T);
    constexpr uint32_t width = 8 * sizeof(T);
    uint32_t result = Sum ? c : 0;
    for (uint32_t i = 0; i < parts; ++i) {
      const int32_t x = part<T>(a, i);
      const int32_t y = part<T>(b, i);
      const auto difference = static_cast<uint32_t>(x < y ? y - x : x - y);
      result = Sum ? result + difference : result | difference << (width * i);
    }
    return result;
  }
};

template <class F, class T>
struct two {
  static uint32_t of(uint32_t a, uint32_t b) {
    const auto low = static_cast<uint16_t>(F::of(part<T>(a, 0), part<T>(b, 0)));
    const auto high = static_cast<uint16_t>(F::of(part<T>(a, 1), part<T>(b, 1)));
    return static_cast<uint32_t>(high) << 16 | low;
  }
};
struct sum {
  static int32_t of(int32_t a, int32_t b) { return a + b; }
};
struct least {
  static int32_t of(int32_t a, int32_t b) { return a < b ? a : b; }
};
struct most {
  static int32_t of(int32_t a, int32_t b) { return a < b ? b : a; }
};
template <class F>
struct not_negative {
  static int32_t of(int32_t a, int32_t b) {
    const int32_t result = F::of(a, b);
    return result < 0 ? 0 : result;
  }
};

/// Position of the n-th bit that is set, from position b upwards or, for a negative n, downwards;
/// all ones when there is none. n = 0 asks whether bit b itself is set.
struct fns {
  static uint32_t of(uint32_t mask, uint32_t base, int32_t n) {
    const int32_t step = n < 0 ? -1 : 1;
    uint32_t left = n < 0 ? 0U - static_cast<uint32_t>(n) : static_cast<uint32_t>(n);
    int32_t at = base < 32 ? static_cast<int32_t>(base) : 32;
    if (n == 0)
      return at < 32 && (mask >> at & 1) ? base : UINT32_MAX;
    for (; at >= 0 && at < 32; at += step)
      if ((mask >> at & 1) != 0 && --left == 0)
        return static_cast<uint32_t>(at);
    return UINT32_MAX;
  }
};

/// The b lowest bits of a, extended to 32.
template <bool Signed, bool Clamp>
struct szext {
  static uint32_t of(uint32_t a, uint32_t b) {
    const uint32_t n = Clamp ? (b < 32 ? b : 32) : b & 31;
    if (n == 0)
      return 0;
    const uint32_t shift = 32 - n;
    return Signed ? static_cast<uint32_t>(static_cast<int32_t>(a << shift) >> shift)
                  : a << shift >> shift;
  }
};

template <class C>
struct slct {
  template <class T>
  static T of(T a, T b, C c) {
    return c >= 0 ? a : b;
  }
};
struct slct_flushed {
  template <class T>
  static T of(T a, T b, float c) {
    return flushed(c) >= 0 ? a : b;
  }
};

// Saturated to the range of the type, of the upper half of the product.
struct mad_hi_sat {
  static int32_t of(int32_t a, int32_t b, int32_t c) {
    const int64_t sum = ((int64_t{a} * b) >> 32) + c;
    return sum < INT32_MIN ? INT32_MIN : sum > INT32_MAX ? INT32_MAX : static_cast<int32_t>(sum);
  }
};

// The upper 32 of the 48 bits of a product of two numbers of 24 bits.
template <bool Signed>
int64_t product24(uint32_t a, uint32_t b) {
  if (Signed)
    return int64_t{static_cast<int32_t>(a << 8) >> 8} * (static_cast<int32_t>(b << 8) >> 8);
  return static_cast<int64_t>(uint64_t{a & 0xffffff} * (b & 0xffffff));
}
template <bool Signed>
struct mul24_hi {
  static uint32_t of(uint32_t a, uint32_t b) {
    return static_cast<uint32_t>(product24<Signed>(a, b) >> 16);
  }
};
template <bool Signed>
struct mad24_hi {
  static uint32_t of(uint32_t a, uint32_t b, uint32_t c) { return mul24_hi<Signed>::of(a, b) + c; }
};

/// Of the magnitudes; the sign is the exclusive or of both signs. `Magnitude` and `Number`: how to
/// take a value apart and put it together again.
template <bool Greater, bool Nan, subnormals S>
struct extreme {
  static float of(float a, float b) {
    const float x = from_bits(bits(input<S>(a)) & 0x7fffffff);
    const float y = from_bits(bits(input<S>(b)) & 0x7fffffff);
    const uint32_t sign = (bits(a) ^ bits(b)) & 0x80000000;
    const float result = Nan ? (Greater ? larger_or_nan(x, y) : smaller_or_nan(x, y))
                             : (Greater ? larger(x, y) : smaller(x, y));
    return result != result ? result : from_bits(bits(result) | sign);
  }
};
struct half {
  static float load(uint16_t h) { return from_half(h); }
  static uint16_t store(float x) { return to_half(x); }
};
struct bfloat {
  static float load(uint16_t h) { return from_bfloat(h); }
  static uint16_t store(float x) { return to_bfloat(x); }
};
template <class H, bool Greater, bool Nan>
struct small_extreme {
  static uint16_t one(uint16_t a, uint16_t b) {
    return H::store(extreme<Greater, Nan, subnormals::kept>::of(H::load(a), H::load(b)));
  }
  static uint16_t of(uint16_t a, uint16_t b) { return one(a, b); }
  static uint32_t of(uint32_t a, uint32_t b) {
    const uint32_t low = one(static_cast<uint16_t>(a), static_cast<uint16_t>(b));
    const uint32_t high = one(static_cast<uint16_t>(a >> 16), static_cast<uint16_t>(b >> 16));
    return high << 16 | low;
  }
};

constexpr category kind = category::integer;
constexpr auto fp32 = category::fp32;
constexpr auto fp16 = category::fp16;

// Names without commas, for the macros.
template <class A, class B>
using dp2a_low = dp2a<A, B, false>;
template <class A, class B>
using dp2a_high = dp2a<A, B, true>;

#define THREE(NAME, ...)                                                                           \
  lane_entry {                                                                                     \
    NAME, ternary<uint32_t, uint32_t, uint32_t, uint32_t, __VA_ARGS__>, kind, 4, {4, 4, 4}, 'i', 0 \
  }
#define TWO(NAME, ...)                                                                             \
  lane_entry {                                                                                     \
    NAME, binary<uint32_t, uint32_t, uint32_t, __VA_ARGS__>, kind, 4, {4, 4}, 'i', 0               \
  }
#define TWO_SIGNED(NAME, ...)                                                                      \
  lane_entry {                                                                                     \
    NAME, binary<int32_t, int32_t, int32_t, __VA_ARGS__>, kind, 4, {4, 4}, 'i', 0                  \
  }
#define DP2A(TYPES, A, B)                                                                          \
  THREE("dp2a.lo." TYPES, dp2a_low<A, B>), THREE("dp2a.hi." TYPES, dp2a_high<A, B>)
#define VABSDIFF(NAME, U, S)                                                                       \
  THREE(NAME ".u32.u32.u32", vabsdiff<U, false>), THREE(NAME ".u32.s32.s32", vabsdiff<S, false>),  \
    THREE(NAME ".u32.u32.u32.add", vabsdiff<U, true>),                                             \
    THREE(NAME ".u32.s32.s32.add", vabsdiff<S, true>)
#define SLCT(NAME, T, LETTER)                                                                      \
  lane_entry {                                                                                     \
    "slct." NAME ".s32", ternary<T, T, T, int32_t, slct<int32_t>>, kind, sizeof(T),                \
      {sizeof(T), sizeof(T), 4}, LETTER, 0                                                         \
  }
#define SLCT_FLOAT(NAME, T, LETTER)                                                                \
  lane_entry{"slct." NAME ".f32", ternary<T, T, T, float, slct<float>>, kind, sizeof(T),           \
    {sizeof(T), sizeof(T), 4}, LETTER, 0},                                                         \
    lane_entry {                                                                                   \
    "slct.ftz." NAME ".f32", ternary<T, T, T, float, slct_flushed>, kind, sizeof(T),               \
      {sizeof(T), sizeof(T), 4}, LETTER, 0                                                         \
  }
#define EXTREME(NAME, G)                                                                           \
  lane_entry{NAME ".xorsign.abs.f32",                                                              \
    binary<float, float, float, extreme<G, false, subnormals::kept>>, fp32, 4, {4, 4}, 'f', 1},    \
    lane_entry{NAME ".ftz.xorsign.abs.f32",                                                        \
      binary<float, float, float, extreme<G, false, subnormals::flushed>>, fp32, 4, {4, 4}, 'f',   \
      1},                                                                                          \
    lane_entry{NAME ".NaN.xorsign.abs.f32",                                                        \
      binary<float, float, float, extreme<G, true, subnormals::kept>>, fp32, 4, {4, 4}, 'f', 1},   \
    lane_entry {                                                                                   \
    NAME ".ftz.NaN.xorsign.abs.f32",                                                               \
      binary<float, float, float, extreme<G, true, subnormals::flushed>>, fp32, 4, {4, 4}, 'f', 1  \
  }
#define SMALL_EXTREME(NAME, H, TYPE, G)                                                            \
  lane_entry{NAME ".xorsign.abs." TYPE,                                                            \
    binary<uint16_t, uint16_t, uint16_t, small_extreme<H, G, false>>, fp16, 2, {2, 2}, 'i', 1},    \
    lane_entry{NAME ".xorsign.abs." TYPE "x2",                                                     \
      binary<uint32_t, uint32_t, uint32_t, small_extreme<H, G, false>>, fp16, 4, {4, 4}, 'i', 2},  \
    lane_entry{NAME ".NaN.xorsign.abs." TYPE,                                                      \
      binary<uint16_t, uint16_t, uint16_t, small_extreme<H, G, true>>, fp16, 2, {2, 2}, 'i', 1},   \
    lane_entry {                                                                                   \
    NAME ".NaN.xorsign.abs." TYPE "x2",                                                            \
      binary<uint32_t, uint32_t, uint32_t, small_extreme<H, G, true>>, fp16, 4, {4, 4}, 'i', 2     \
  }

const lane_entry entries[] = {
  DP2A("u32.u32", uint16_t, uint8_t),
  DP2A("s32.s32", int16_t, int8_t),
  DP2A("s32.u32", int16_t, uint8_t),
  DP2A("u32.s32", uint16_t, int8_t),
  VABSDIFF("vabsdiff4", uint8_t, int8_t),
  VABSDIFF("vabsdiff2", uint16_t, int16_t),
  TWO("add.u16x2", two<sum, uint16_t>),
  TWO("add.s16x2", two<sum, int16_t>),
  TWO("min.u16x2", two<least, uint16_t>),
  TWO("min.s16x2", two<least, int16_t>),
  TWO("max.u16x2", two<most, uint16_t>),
  TWO("max.s16x2", two<most, int16_t>),
  TWO("min.relu.s16x2", two<not_negative<least>, int16_t>),
  TWO("max.relu.s16x2", two<not_negative<most>, int16_t>),
  // nvcc writes the modifier behind the type.
  TWO("min.s16x2.relu", two<not_negative<least>, int16_t>),
  TWO("max.s16x2.relu", two<not_negative<most>, int16_t>),
  TWO_SIGNED("min.relu.s32", not_negative<least>),
  TWO_SIGNED("max.relu.s32", not_negative<most>),
  TWO_SIGNED("min.s32.relu", not_negative<least>),
  TWO_SIGNED("max.s32.relu", not_negative<most>),
  {"fns.b32", ternary<uint32_t, uint32_t, uint32_t, int32_t, fns>, kind, 4, {4, 4, 4}, 'i', 0},
  TWO("szext.clamp.u32", szext<false, true>),
  TWO("szext.clamp.s32", szext<true, true>),
  TWO("szext.wrap.u32", szext<false, false>),
  TWO("szext.wrap.s32", szext<true, false>),
  {"mad.hi.sat.s32", ternary<int32_t, int32_t, int32_t, int32_t, mad_hi_sat>, kind, 4, {4, 4, 4},
    'i', 0},
  TWO("mul24.hi.u32", mul24_hi<false>),
  TWO("mul24.hi.s32", mul24_hi<true>),
  THREE("mad24.hi.u32", mad24_hi<false>),
  THREE("mad24.hi.s32", mad24_hi<true>),
  SLCT("b16", uint16_t, 'i'),
  SLCT("u16", uint16_t, 'i'),
  SLCT("s16", uint16_t, 'i'),
  SLCT("u64", uint64_t, 'i'),
  SLCT("s64", uint64_t, 'i'),
  SLCT("f64", uint64_t, 'd'),
  SLCT_FLOAT("b16", uint16_t, 'i'),
  SLCT_FLOAT("u16", uint16_t, 'i'),
  SLCT_FLOAT("s16", uint16_t, 'i'),
  SLCT_FLOAT("b32", uint32_t, 'i'),
  SLCT_FLOAT("u32", uint32_t, 'i'),
  SLCT_FLOAT("s32", uint32_t, 'i'),
  SLCT_FLOAT("f32", uint32_t, 'f'),
  SLCT_FLOAT("b64", uint64_t, 'i'),
  SLCT_FLOAT("u64", uint64_t, 'i'),
  SLCT_FLOAT("s64", uint64_t, 'i'),
  SLCT_FLOAT("f64", uint64_t, 'd'),
  EXTREME("min", false),
  EXTREME("max", true),
  SMALL_EXTREME("min", half, "f16", false),
  SMALL_EXTREME("max", half, "f16", true),
  SMALL_EXTREME("min", bfloat, "bf16", false),
  SMALL_EXTREME("max", bfloat, "bf16", true),
};

} // namespace

const lane_entries packed_entries{entries, sizeof entries / sizeof entries[0]};

} // namespace gristmill::ptx::GRISTMILL_PTX_LANES
