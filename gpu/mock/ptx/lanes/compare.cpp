#include "gpu/mock/ptx/lanes/floats.hpp"
#include "gpu/mock/ptx/lanes/masks.hpp"
#include "gpu/mock/ptx/lanes/tables.hpp"

namespace gristmill::ptx::GRISTMILL_PTX_LANES {
namespace {

// Of numbers a bool, of vectors a vector: see mask_of_numbers.
struct eq {
  template <class T>
  static auto of(T a, T b) {
    return a == b;
  }
};
// Of floats: false when one is NaN.
struct ne {
  template <class T>
  static auto of(T a, T b) {
    if constexpr (std::is_floating_point_v<T>)
      return static_cast<bool>((a < b) | (a > b));
    else
      return a != b;
  }
};
struct lt {
  template <class T>
  static auto of(T a, T b) {
    return a < b;
  }
};
struct le {
  template <class T>
  static auto of(T a, T b) {
    return a <= b;
  }
};
struct gt {
  template <class T>
  static auto of(T a, T b) {
    return a > b;
  }
};
struct ge {
  template <class T>
  static auto of(T a, T b) {
    return a >= b;
  }
};
struct number {
  template <class T>
  static bool of(T a, T b) {
    return (a == a) & (b == b);
  }
};
/// True also when one is NaN: the opposite of the opposite.
template <class F>
struct negated {
  template <class T>
  static bool of(T a, T b) {
    return !F::of(a, b);
  }
};

void finish(lane_state& s, const operation& o, uint32_t mask, uint32_t complement) {
  const uint32_t other = s.predicates[o.r] ^ (o.mode & 4 ? all_lanes : 0);
  const auto combined = [&](uint32_t x) {
    switch (o.mode & 3) {
    case 1:
      return x & other;
    case 2:
      return x | other;
    case 3:
      return x ^ other;
    default:
      return x;
    }
  };
  const uint32_t p = combined(mask);
  const uint32_t q = combined(complement);
  s.predicates[o.p] = (s.predicates[o.p] & ~s.active) | (p & s.active);
  s.predicates[o.q] = (s.predicates[o.q] & ~s.active) | (q & s.active);
}

// How the bits of an operand become a number.
template <class T>
struct plain {
  using stored = T;
  static T load(T x) { return x; }
};
struct flushed_float {
  using stored = float;
  static float load(float x) { return flushed(x); }
};
struct half {
  using stored = uint16_t;
  static float load(uint16_t x) { return from_half(x); }
};
struct bfloat {
  using stored = uint16_t;
  static float load(uint16_t x) { return from_bfloat(x); }
};
struct flushed_half {
  using stored = uint16_t;
  static float load(uint16_t x) { return (x & 0x7c00) != 0 ? from_half(x) : 0.0F; }
};

template <class A, class F>
void compare(lane_state& s, const operation& o) {
  using T = typename A::stored;
  const T* a = lane<T>(s, o.a);
  const T* b = lane<T>(s, o.b);
#if defined(__AVX2__)
  if constexpr (std::is_same_v<A, plain<T>> && std::is_integral_v<T> && sizeof(T) >= 4) {
    const uint32_t mask = mask_of_numbers<F>(a, b);
    return finish(s, o, mask, ~mask);
  }
#endif
  alignas(32) uint8_t flags[warp_lanes];
  for (uint32_t l = 0; l < warp_lanes; ++l)
    flags[l] = F::of(A::load(a[l]), A::load(b[l]));
  const uint32_t mask = mask_of(flags);
  finish(s, o, mask, ~mask);
}

/// Two values in a register: p is the result of the low ones, q that of the high ones.
template <class H, class F>
void compare_two(lane_state& s, const operation& o) {
  const uint16_t* a = lane<uint16_t>(s, o.a);
  const uint16_t* b = lane<uint16_t>(s, o.b);
  uint32_t low = 0;
  uint32_t high = 0;
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    const bool first = F::of(H::load(a[2 * l]), H::load(b[2 * l]));
    const bool second = F::of(H::load(a[2 * l + 1]), H::load(b[2 * l + 1]));
    low |= static_cast<uint32_t>(first) << l;
    high |= static_cast<uint32_t>(second) << l;
  }
  finish(s, o, low, high);
}

constexpr auto integer = category::integer;

#define BITS(TYPE, T)                                                                              \
  compare_entry{"eq." TYPE, compare<plain<T>, eq>, integer, sizeof(T), 'i'}, compare_entry {       \
    "ne." TYPE, compare<plain<T>, ne>, integer, sizeof(T), 'i'                                     \
  }
#define ORDER(TYPE, T)                                                                             \
  BITS(TYPE, T), compare_entry{"lt." TYPE, compare<plain<T>, lt>, integer, sizeof(T), 'i'},        \
    compare_entry{"le." TYPE, compare<plain<T>, le>, integer, sizeof(T), 'i'},                     \
    compare_entry{"gt." TYPE, compare<plain<T>, gt>, integer, sizeof(T), 'i'}, compare_entry {     \
    "ge." TYPE, compare<plain<T>, ge>, integer, sizeof(T), 'i'                                     \
  }
#define UNSIGNED(TYPE, T)                                                                          \
  ORDER(TYPE, T), compare_entry{"lo." TYPE, compare<plain<T>, lt>, integer, sizeof(T), 'i'},       \
    compare_entry{"ls." TYPE, compare<plain<T>, le>, integer, sizeof(T), 'i'},                     \
    compare_entry{"hi." TYPE, compare<plain<T>, gt>, integer, sizeof(T), 'i'}, compare_entry {     \
    "hs." TYPE, compare<plain<T>, ge>, integer, sizeof(T), 'i'                                     \
  }
#define FLOAT(TYPE, LOOP, A, KIND, BYTES, LETTER)                                                  \
  compare_entry{"eq." TYPE, LOOP<A, eq>, KIND, BYTES, LETTER},                                     \
    compare_entry{"ne." TYPE, LOOP<A, ne>, KIND, BYTES, LETTER},                                   \
    compare_entry{"lt." TYPE, LOOP<A, lt>, KIND, BYTES, LETTER},                                   \
    compare_entry{"le." TYPE, LOOP<A, le>, KIND, BYTES, LETTER},                                   \
    compare_entry{"gt." TYPE, LOOP<A, gt>, KIND, BYTES, LETTER},                                   \
    compare_entry{"ge." TYPE, LOOP<A, ge>, KIND, BYTES, LETTER},                                   \
    compare_entry{"equ." TYPE, LOOP<A, negated<ne>>, KIND, BYTES, LETTER},                         \
    compare_entry{"neu." TYPE, LOOP<A, negated<eq>>, KIND, BYTES, LETTER},                         \
    compare_entry{"ltu." TYPE, LOOP<A, negated<ge>>, KIND, BYTES, LETTER},                         \
    compare_entry{"leu." TYPE, LOOP<A, negated<gt>>, KIND, BYTES, LETTER},                         \
    compare_entry{"gtu." TYPE, LOOP<A, negated<le>>, KIND, BYTES, LETTER},                         \
    compare_entry{"geu." TYPE, LOOP<A, negated<lt>>, KIND, BYTES, LETTER},                         \
    compare_entry{"num." TYPE, LOOP<A, number>, KIND, BYTES, LETTER}, compare_entry {              \
    "nan." TYPE, LOOP<A, negated<number>>, KIND, BYTES, LETTER                                     \
  }

} // namespace

extern const compare_entry compare_entries[];
extern const size_t compare_size;

const compare_entry compare_entries[] = {
  BITS("b16", uint16_t),
  BITS("b32", uint32_t),
  BITS("b64", uint64_t),
  UNSIGNED("u16", uint16_t),
  UNSIGNED("u32", uint32_t),
  UNSIGNED("u64", uint64_t),
  ORDER("s16", int16_t),
  ORDER("s32", int32_t),
  ORDER("s64", int64_t),
  FLOAT("f32", compare, plain<float>, category::fp32, 4, 'f'),
  FLOAT("ftz.f32", compare, flushed_float, category::fp32, 4, 'f'),
  FLOAT("f64", compare, plain<double>, category::fp64, 8, 'd'),
  FLOAT("f16", compare, half, category::fp16, 2, 'i'),
  FLOAT("ftz.f16", compare, flushed_half, category::fp16, 2, 'i'),
  FLOAT("bf16", compare, bfloat, category::fp16, 2, 'i'),
  FLOAT("f16x2", compare_two, half, category::fp16, 4, 'i'),
  FLOAT("ftz.f16x2", compare_two, flushed_half, category::fp16, 4, 'i'),
  FLOAT("bf16x2", compare_two, bfloat, category::fp16, 4, 'i'),
};
const size_t compare_size = sizeof compare_entries / sizeof compare_entries[0];

} // namespace gristmill::ptx::GRISTMILL_PTX_LANES
