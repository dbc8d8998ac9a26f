#include "gpu/mock/ptx/lanes/loops.hpp"
#include "gpu/mock/ptx/lanes/tables.hpp"

namespace gristmill::ptx::GRISTMILL_PTX_LANES {
namespace {

template <class T>
using unsigned_of = std::make_unsigned_t<T>;
template <class T>
constexpr uint32_t bits_of = 8 * sizeof(T);

// Twice as wide, for products.
template <class T>
struct wider;
template <>
struct wider<int16_t> {
  using type = int32_t;
};
template <>
struct wider<uint16_t> {
  using type = uint32_t;
};
template <>
struct wider<int32_t> {
  using type = int64_t;
};
template <>
struct wider<uint32_t> {
  using type = uint64_t;
};
__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;
template <>
struct wider<int64_t> {
  using type = int128;
};
template <>
struct wider<uint64_t> {
  using type = uint128;
};
template <class T>
using wider_of = typename wider<T>::type;

struct add {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
};
struct sub {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  }
};
struct mul {
  template <class T>
  static T of(T a, T b) {
    if constexpr (sizeof(T) == 4) // Or the loop would multiply 64-bit values.
      return static_cast<T>(static_cast<uint32_t>(a) * static_cast<uint32_t>(b));
    else
      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
};
struct mad {
  template <class T>
  static T of(T a, T b, T c) {
    return add::of(mul::of(a, b), c);
  }
};
template <class T>
T saturated(int64_t value) {
  constexpr int64_t low = -(int64_t{1} << (bits_of<T> - 1));
  constexpr int64_t high = (int64_t{1} << (bits_of<T> - 1)) - 1;
  return static_cast<T>(value < low ? low : value > high ? high : value);
}
struct add_sat {
  static int32_t of(int32_t a, int32_t b) { return saturated<int32_t>(int64_t{a} + b); }
};
struct sub_sat {
  static int32_t of(int32_t a, int32_t b) { return saturated<int32_t>(int64_t{a} - b); }
};
struct mul_hi {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(
      (static_cast<wider_of<T>>(a) * static_cast<wider_of<T>>(b)) >> bits_of<T>);
  }
};
struct mad_hi {
  template <class T>
  static T of(T a, T b, T c) {
    return add::of(mul_hi::of(a, b), c);
  }
};
struct mul_wide {
  template <class T>
  static wider_of<T> of(T a, T b) {
    return static_cast<wider_of<T>>(static_cast<wider_of<T>>(a) * static_cast<wider_of<T>>(b));
  }
};
struct mad_wide {
  template <class T>
  static wider_of<T> of(T a, T b, wider_of<T> c) {
    return add::of(mul_wide::of(a, b), c);
  }
};
template <class T>
T low24(T a) {
  if constexpr (std::is_signed_v<T>)
    return static_cast<T>(static_cast<int32_t>(static_cast<uint32_t>(a) << 8) >> 8);
  else
    return a & 0xffffff;
}
struct mul24 {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(static_cast<uint32_t>(low24(a)) * static_cast<uint32_t>(low24(b)));
  }
};
struct mad24 {
  template <class T>
  static T of(T a, T b, T c) {
    return add::of(mul24::of(a, b), c);
  }
};
// A GPU gives all ones for a division by zero; PTX leaves it open.
struct div {
  template <class T>
  static T of(T a, T b) {
    if (b == 0)
      return static_cast<T>(-1);
    if constexpr (std::is_signed_v<T>)
      if (b == -1)
        return sub::of(T{0}, a);
    return static_cast<T>(a / b);
  }
};
struct rem {
  template <class T>
  static T of(T a, T b) {
    if (b == 0)
      return a;
    if constexpr (std::is_signed_v<T>)
      if (b == -1)
        return 0;
    return static_cast<T>(a % b);
  }
};
struct min {
  template <class T>
  static T of(T a, T b) {
    return b < a ? b : a;
  }
};
struct max {
  template <class T>
  static T of(T a, T b) {
    return a < b ? b : a;
  }
};
struct neg {
  template <class T>
  static T of(T a) {
    return sub::of(T{0}, a);
  }
};
struct abs {
  template <class T>
  static T of(T a) {
    return a < 0 ? sub::of(T{0}, a) : a;
  }
};
struct sad {
  template <class T>
  static T of(T a, T b, T c) {
    return add::of(c, a < b ? sub::of(b, a) : sub::of(a, b));
  }
};
struct band {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct bor {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct bxor {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};
struct bnot {
  template <class T>
  static T of(T a) {
    return static_cast<T>(~a);
  }
};
struct cnot {
  template <class T>
  static T of(T a) {
    return a == 0 ? 1 : 0;
  }
};
struct shl {
  template <class T>
  static T of(T a, uint32_t n) {
    return n >= bits_of<T> ? T{0} : static_cast<T>(a << n);
  }
};
struct shr {
  template <class T>
  static T of(T a, uint32_t n) {
    if constexpr (std::is_signed_v<T>)
      return static_cast<T>(a >> (n >= bits_of<T> ? bits_of<T> - 1 : n));
    else
      return n >= bits_of<T> ? T{0} : static_cast<T>(a >> n);
  }
};
// Funnel shifts: b holds the high word.
template <bool Right, bool Wrap>
struct shf {
  static uint32_t of(uint32_t a, uint32_t b, uint32_t c) {
    const uint32_t n = Wrap ? c & 31 : (c < 32 ? c : 32);
    const uint64_t both = static_cast<uint64_t>(b) << 32 | a;
    return Right ? static_cast<uint32_t>(both >> n) : static_cast<uint32_t>((both << n) >> 32);
  }
};
// Bit k of the table is the result for the input bits (a, b, c) = k.
struct lop3 {
  static uint32_t of(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
    uint32_t result = 0;
    for (uint32_t k = 0; k < 8; ++k)
      result |= (0U - (table >> k & 1)) & (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
    return result;
  }
};
uint32_t byte_of(uint32_t a, uint32_t b, uint32_t selector) {
  const uint64_t both = static_cast<uint64_t>(b) << 32 | a;
  const auto byte = static_cast<uint32_t>(both >> (8 * (selector & 7)) & 255);
  if ((selector & 8) == 0)
    return byte;
  return byte & 0x80 ? 255 : 0;
}
enum class permutation { plain, forward, backward, replicate, clamp_left, clamp_right, halves };
template <permutation Mode>
struct prmt {
  static uint32_t of(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t result = 0;
    const uint32_t n = c & 3;
    for (uint32_t i = 0; i < 4; ++i) {
      uint32_t selector = 0;
      switch (Mode) {
      case permutation::plain:
        selector = c >> (4 * i) & 15;
        break;
      case permutation::forward:
        selector = n + i;
        break;
      case permutation::backward:
        selector = (n + 8 - i) & 7;
        break;
      case permutation::replicate:
        selector = n;
        break;
      case permutation::clamp_left:
        selector = i > n ? i : n;
        break;
      case permutation::clamp_right:
        selector = i < n ? i : n;
        break;
      case permutation::halves:
        selector = (n & 1) * 2 + (i & 1);
        break;
      }
      result |= byte_of(a, b, selector) << (8 * i);
    }
    return result;
  }
};
/// Position or length of a field: the low byte; of 64-bit values a GPU looks at all bits.
template <class T>
uint32_t field(uint32_t x) {
  return sizeof(T) == 4 ? x & 255 : x < 255 ? x : 255;
}
struct bfe {
  template <class T>
  static T of(T a, uint32_t b, uint32_t c) {
    const uint32_t position = field<T>(b);
    const uint32_t length = field<T>(c);
    constexpr uint32_t top = bits_of<T> - 1;
    const uint32_t last = position + length - 1;
    unsigned_of<T> sign = 0;
    if (std::is_signed_v<T> && length > 0)
      sign = static_cast<unsigned_of<T>>(a) >> (last < top ? last : top) & 1;
    unsigned_of<T> result = sign ? static_cast<unsigned_of<T>>(-1) : 0;
    for (uint32_t i = 0; i < length && i <= top && position + i <= top; ++i) {
      const unsigned_of<T> bit = static_cast<unsigned_of<T>>(a) >> (position + i) & 1;
      result = (result & ~(unsigned_of<T>{1} << i)) | bit << i;
    }
    return static_cast<T>(result);
  }
};
struct bfi {
  template <class T>
  static T of(T a, T b, uint32_t c, uint32_t d) {
    const uint32_t position = field<T>(c);
    const uint32_t length = field<T>(d);
    if (position >= bits_of<T>)
      return b;
    const T mask = length >= bits_of<T> ? static_cast<T>(-1) : (T{1} << length) - 1;
    return (b & ~(mask << position)) | (a & mask) << position;
  }
};
struct popc {
  template <class T>
  static uint32_t of(T a) {
    return static_cast<uint32_t>(std::popcount(a));
  }
};
struct clz {
  template <class T>
  static uint32_t of(T a) {
    return static_cast<uint32_t>(std::countl_zero(a));
  }
};
template <bool Shift>
struct bfind {
  template <class T>
  static uint32_t of(T a) {
    const auto value = static_cast<unsigned_of<T>>(std::is_signed_v<T> && a < 0 ? ~a : a);
    if (value == 0)
      return UINT32_MAX;
    const auto zeros = static_cast<uint32_t>(std::countl_zero(value));
    return Shift ? zeros : bits_of<T> - 1 - zeros;
  }
};
struct brev {
  template <class T>
  static T of(T a) {
    T result = 0;
    for (uint32_t i = 0; i < bits_of<T>; ++i)
      result |= (a >> i & 1) << (bits_of<T> - 1 - i);
    return result;
  }
};

template <class A, class B>
struct dp4a {
  static uint32_t of(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t sum = c;
    for (uint32_t i = 0; i < 4; ++i)
      sum += static_cast<uint32_t>(static_cast<int32_t>(static_cast<A>(a >> (8 * i)))
        * static_cast<int32_t>(static_cast<B>(b >> (8 * i))));
    return sum;
  }
};
template <bool Clamp>
struct bmsk {
  static uint32_t of(uint32_t a, uint32_t b) {
    const uint32_t from = Clamp ? (a < 32 ? a : 32) : a & 31;
    const uint32_t size = Clamp ? (b < 32 ? b : 32) : b & 31;
    const uint64_t mask = (uint64_t{1} << size) - 1;
    return static_cast<uint32_t>(mask << from);
  }
};
struct slct {
  template <class T>
  static T of(T a, T b, int32_t c) {
    return c >= 0 ? a : b;
  }
};
// The carry travels in predicate 1, which no register of the text maps to. After a subtraction it
// is that of a + ~b + 1, so set when nothing was borrowed: divisions of 128 bits mix it with sums.
template <class T, bool Subtract, bool In, bool Out>
void carry(lane_state& s, const operation& o) {
  T* d = lane<T>(s, o.d);
  const T* a = lane<T>(s, o.a);
  const T* b = lane<T>(s, o.b);
  const uint32_t before = In ? s.predicates[1] : 0;
  uint32_t after = 0;
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    if (!(s.active >> l & 1))
      continue;
    const T in = static_cast<T>(In && Subtract ? ~before >> l & 1 : before >> l & 1);
    const uint128 wide =
      Subtract ? static_cast<uint128>(a[l]) - b[l] - in : static_cast<uint128>(a[l]) + b[l] + in;
    d[l] = static_cast<T>(wide);
    const auto beyond = static_cast<uint32_t>(wide >> bits_of<T> & 1);
    after |= (Subtract ? beyond ^ 1 : beyond) << l;
  }
  if (Out)
    s.predicates[1] = (s.predicates[1] & ~s.active) | after;
}
template <class T, bool High, bool In, bool Out>
void carry_mad(lane_state& s, const operation& o) {
  T* d = lane<T>(s, o.d);
  const T* a = lane<T>(s, o.a);
  const T* b = lane<T>(s, o.b);
  const T* c = lane<T>(s, o.c);
  const uint32_t before = In ? s.predicates[1] : 0;
  uint32_t after = 0;
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    if (!(s.active >> l & 1))
      continue;
    const uint128 product = static_cast<uint128>(a[l]) * b[l];
    const uint128 wide =
      static_cast<uint128>(static_cast<T>(High ? product >> bits_of<T> : product)) + c[l]
      + (before >> l & 1);
    d[l] = static_cast<T>(wide);
    after |= static_cast<uint32_t>(wide >> bits_of<T> & 1) << l;
  }
  if (Out)
    s.predicates[1] = (s.predicates[1] & ~s.active) | after;
}

// Names without commas, for the macros.
using funnel_left_wrap = shf<false, true>;
using funnel_left_clamp = shf<false, false>;
using funnel_right_wrap = shf<true, true>;
using funnel_right_clamp = shf<true, false>;
using dp4a_uu = dp4a<uint8_t, uint8_t>;
using dp4a_ss = dp4a<int8_t, int8_t>;
using dp4a_su = dp4a<int8_t, uint8_t>;
using dp4a_us = dp4a<uint8_t, int8_t>;

constexpr category kind = category::integer;

#define UNARY(NAME, T, F)                                                                          \
  lane_entry {                                                                                     \
    NAME, unary<T, T, F>, kind, sizeof(T), {sizeof(T), 0, 0, 0}, 'i', 0                            \
  }
#define COUNT(NAME, T, F)                                                                          \
  lane_entry {                                                                                     \
    NAME, unary<uint32_t, T, F>, kind, 4, {sizeof(T)}, 'i', 0                                      \
  }
#define BINARY(NAME, T, F)                                                                         \
  lane_entry {                                                                                     \
    NAME, binary<T, T, T, F>, kind, sizeof(T), {sizeof(T), sizeof(T)}, 'i', 0                      \
  }
#define SHIFT(NAME, T, F)                                                                          \
  lane_entry {                                                                                     \
    NAME, binary<T, T, uint32_t, F>, kind, sizeof(T), {sizeof(T), 4}, 'i', 0                       \
  }
#define TERNARY(NAME, T, F)                                                                        \
  lane_entry {                                                                                     \
    NAME, ternary<T, T, T, T, F>, kind, sizeof(T), {sizeof(T), sizeof(T), sizeof(T)}, 'i', 0       \
  }
#define WIDE(NAME, T, F)                                                                           \
  lane_entry {                                                                                     \
    NAME, binary<wider_of<T>, T, T, F>, kind, 2 * sizeof(T), {sizeof(T), sizeof(T)}, 'i', 0        \
  }
#define WIDE_MAD(NAME, T, F)                                                                       \
  lane_entry {                                                                                     \
    NAME, ternary<wider_of<T>, T, T, wider_of<T>, F>, kind, 2 * sizeof(T),                         \
      {sizeof(T), sizeof(T), 2 * sizeof(T)}, 'i', 0                                                \
  }
#define FIELD(NAME, T, F)                                                                          \
  lane_entry {                                                                                     \
    NAME, ternary<T, T, uint32_t, uint32_t, F>, kind, sizeof(T), {sizeof(T), 4, 4}, 'i', 0         \
  }
#define CARRY(NAME, T, ...)                                                                        \
  lane_entry {                                                                                     \
    NAME, carry<T, __VA_ARGS__>, kind, sizeof(T), {sizeof(T), sizeof(T)}, 'i', 0                   \
  }
#define CARRY_MAD(NAME, T, ...)                                                                    \
  lane_entry {                                                                                     \
    NAME, carry_mad<T, __VA_ARGS__>, kind, sizeof(T), {sizeof(T), sizeof(T), sizeof(T)}, 'i', 0    \
  }
#define SIX(MACRO, NAME, F)                                                                        \
  MACRO(NAME ".u16", uint16_t, F), MACRO(NAME ".s16", int16_t, F),                                 \
    MACRO(NAME ".u32", uint32_t, F), MACRO(NAME ".s32", int32_t, F),                               \
    MACRO(NAME ".u64", uint64_t, F), MACRO(NAME ".s64", int64_t, F)
#define SIGNED(MACRO, NAME, F)                                                                     \
  MACRO(NAME ".s16", int16_t, F), MACRO(NAME ".s32", int32_t, F), MACRO(NAME ".s64", int64_t, F)
#define BITS(MACRO, NAME, F)                                                                       \
  MACRO(NAME ".b16", uint16_t, F), MACRO(NAME ".b32", uint32_t, F), MACRO(NAME ".b64", uint64_t, F)

const lane_entry entries[] = {
  SIX(BINARY, "add", add),
  SIX(BINARY, "sub", sub),
  SIX(BINARY, "mul.lo", mul),
  SIX(BINARY, "mul.hi", mul_hi),
  SIX(TERNARY, "mad.lo", mad),
  SIX(TERNARY, "mad.hi", mad_hi),
  SIX(BINARY, "div", div),
  SIX(BINARY, "rem", rem),
  SIX(BINARY, "min", min),
  SIX(BINARY, "max", max),
  SIX(TERNARY, "sad", sad),
  SIX(SHIFT, "shr", shr),
  SIGNED(UNARY, "neg", neg),
  SIGNED(UNARY, "abs", abs),
  BITS(BINARY, "and", band),
  BITS(BINARY, "or", bor),
  BITS(BINARY, "xor", bxor),
  BITS(UNARY, "not", bnot),
  BITS(UNARY, "cnot", cnot),
  BITS(SHIFT, "shl", shl),
  BITS(SHIFT, "shr", shr),
  BINARY("add.sat.s32", int32_t, add_sat),
  BINARY("sub.sat.s32", int32_t, sub_sat),
  WIDE("mul.wide.u16", uint16_t, mul_wide),
  WIDE("mul.wide.s16", int16_t, mul_wide),
  WIDE("mul.wide.u32", uint32_t, mul_wide),
  WIDE("mul.wide.s32", int32_t, mul_wide),
  WIDE_MAD("mad.wide.u16", uint16_t, mad_wide),
  WIDE_MAD("mad.wide.s16", int16_t, mad_wide),
  WIDE_MAD("mad.wide.u32", uint32_t, mad_wide),
  WIDE_MAD("mad.wide.s32", int32_t, mad_wide),
  BINARY("mul24.lo.u32", uint32_t, mul24),
  BINARY("mul24.lo.s32", int32_t, mul24),
  TERNARY("mad24.lo.u32", uint32_t, mad24),
  TERNARY("mad24.lo.s32", int32_t, mad24),
  TERNARY("shf.l.wrap.b32", uint32_t, funnel_left_wrap),
  TERNARY("shf.l.clamp.b32", uint32_t, funnel_left_clamp),
  TERNARY("shf.r.wrap.b32", uint32_t, funnel_right_wrap),
  TERNARY("shf.r.clamp.b32", uint32_t, funnel_right_clamp),
  {"lop3.b32", quaternary<uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, lop3>, kind, 4,
    {4, 4, 4, 4}, 'i', 0},
  TERNARY("prmt.b32", uint32_t, prmt<permutation::plain>),
  TERNARY("prmt.b32.f4e", uint32_t, prmt<permutation::forward>),
  TERNARY("prmt.b32.b4e", uint32_t, prmt<permutation::backward>),
  TERNARY("prmt.b32.rc8", uint32_t, prmt<permutation::replicate>),
  TERNARY("prmt.b32.ecl", uint32_t, prmt<permutation::clamp_left>),
  TERNARY("prmt.b32.ecr", uint32_t, prmt<permutation::clamp_right>),
  TERNARY("prmt.b32.rc16", uint32_t, prmt<permutation::halves>),
  FIELD("bfe.u32", uint32_t, bfe),
  FIELD("bfe.s32", int32_t, bfe),
  FIELD("bfe.u64", uint64_t, bfe),
  FIELD("bfe.s64", int64_t, bfe),
  {"bfi.b32", quaternary<uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, bfi>, kind, 4,
    {4, 4, 4, 4}, 'i', 0},
  {"bfi.b64", quaternary<uint64_t, uint64_t, uint64_t, uint32_t, uint32_t, bfi>, kind, 8,
    {8, 8, 4, 4}, 'i', 0},
  COUNT("popc.b32", uint32_t, popc),
  COUNT("popc.b64", uint64_t, popc),
  COUNT("clz.b32", uint32_t, clz),
  COUNT("clz.b64", uint64_t, clz),
  COUNT("bfind.u32", uint32_t, bfind<false>),
  COUNT("bfind.s32", int32_t, bfind<false>),
  COUNT("bfind.u64", uint64_t, bfind<false>),
  COUNT("bfind.s64", int64_t, bfind<false>),
  COUNT("bfind.shiftamt.u32", uint32_t, bfind<true>),
  COUNT("bfind.shiftamt.s32", int32_t, bfind<true>),
  COUNT("bfind.shiftamt.u64", uint64_t, bfind<true>),
  COUNT("bfind.shiftamt.s64", int64_t, bfind<true>),
  UNARY("brev.b32", uint32_t, brev),
  UNARY("brev.b64", uint64_t, brev),
  BINARY("bmsk.clamp.b32", uint32_t, bmsk<true>),
  BINARY("bmsk.wrap.b32", uint32_t, bmsk<false>),
  TERNARY("dp4a.u32.u32", uint32_t, dp4a_uu),
  TERNARY("dp4a.s32.s32", uint32_t, dp4a_ss),
  TERNARY("dp4a.s32.u32", uint32_t, dp4a_su),
  TERNARY("dp4a.u32.s32", uint32_t, dp4a_us),
  {"slct.b32.s32", ternary<uint32_t, uint32_t, uint32_t, int32_t, slct>, kind, 4, {4, 4, 4}, 'i',
    0},
  {"slct.u32.s32", ternary<uint32_t, uint32_t, uint32_t, int32_t, slct>, kind, 4, {4, 4, 4}, 'i',
    0},
  {"slct.s32.s32", ternary<uint32_t, uint32_t, uint32_t, int32_t, slct>, kind, 4, {4, 4, 4}, 'i',
    0},
  {"slct.f32.s32", ternary<uint32_t, uint32_t, uint32_t, int32_t, slct>, kind, 4, {4, 4, 4}, 'f',
    0},
  {"slct.b64.s32", ternary<uint64_t, uint64_t, uint64_t, int32_t, slct>, kind, 8, {8, 8, 4}, 'i',
    0},
  CARRY("add.cc.u32", uint32_t, false, false, true),
  CARRY("add.cc.s32", uint32_t, false, false, true),
  CARRY("add.cc.u64", uint64_t, false, false, true),
  CARRY("add.cc.s64", uint64_t, false, false, true),
  CARRY("addc.u32", uint32_t, false, true, false),
  CARRY("addc.s32", uint32_t, false, true, false),
  CARRY("addc.u64", uint64_t, false, true, false),
  CARRY("addc.s64", uint64_t, false, true, false),
  CARRY("addc.cc.u32", uint32_t, false, true, true),
  CARRY("addc.cc.s32", uint32_t, false, true, true),
  CARRY("addc.cc.u64", uint64_t, false, true, true),
  CARRY("addc.cc.s64", uint64_t, false, true, true),
  CARRY("sub.cc.u32", uint32_t, true, false, true),
  CARRY("sub.cc.s32", uint32_t, true, false, true),
  CARRY("sub.cc.u64", uint64_t, true, false, true),
  CARRY("sub.cc.s64", uint64_t, true, false, true),
  CARRY("subc.u32", uint32_t, true, true, false),
  CARRY("subc.s32", uint32_t, true, true, false),
  CARRY("subc.u64", uint64_t, true, true, false),
  CARRY("subc.s64", uint64_t, true, true, false),
  CARRY("subc.cc.u32", uint32_t, true, true, true),
  CARRY("subc.cc.s32", uint32_t, true, true, true),
  CARRY("subc.cc.u64", uint64_t, true, true, true),
  CARRY("subc.cc.s64", uint64_t, true, true, true),
  CARRY_MAD("mad.lo.cc.u32", uint32_t, false, false, true),
  CARRY_MAD("mad.hi.cc.u32", uint32_t, true, false, true),
  CARRY_MAD("madc.lo.u32", uint32_t, false, true, false),
  CARRY_MAD("madc.hi.u32", uint32_t, true, true, false),
  CARRY_MAD("madc.lo.cc.u32", uint32_t, false, true, true),
  CARRY_MAD("madc.hi.cc.u32", uint32_t, true, true, true),
  CARRY_MAD("mad.lo.cc.u64", uint64_t, false, false, true),
  CARRY_MAD("mad.hi.cc.u64", uint64_t, true, false, true),
  CARRY_MAD("madc.lo.u64", uint64_t, false, true, false),
  CARRY_MAD("madc.hi.u64", uint64_t, true, true, false),
  CARRY_MAD("madc.lo.cc.u64", uint64_t, false, true, true),
  CARRY_MAD("madc.hi.cc.u64", uint64_t, true, true, true),
};

} // namespace

const lane_entries integer_entries{entries, sizeof entries / sizeof entries[0]};

} // namespace gristmill::ptx::GRISTMILL_PTX_LANES
