#include "gpu/mock/ptx/lanes/floats.hpp"
#include "gpu/mock/ptx/lanes/tables.hpp"

/// Arithmetic on f16 and bf16, one or two in a register. All in single precision, which is exact
/// enough for one correct rounding of a sum; where it is not (products with a sum), the
/// intermediate value is rounded to odd.
namespace gristmill::ptx::GRISTMILL_PTX_LANES {
namespace {

float tanh_of(float x) {
  return __builtin_tanhf(x);
}
float exp2_of(float x) {
  return __builtin_exp2f(x);
}

struct half {
  static constexpr uint16_t nan = 0x7fff;
  static constexpr uint16_t one = 0x3c00;
  static float load(uint16_t h) { return from_half(h); }
  static uint16_t store(float x) { return to_half(x); }
  static uint16_t flush(uint16_t h) {
    return (h & 0x7c00) != 0 ? h : static_cast<uint16_t>(h & 0x8000);
  }
  static uint16_t multiply_add(uint16_t a, uint16_t b, uint16_t c) {
    const float product = load(a) * load(b); // Exact: 22 bits.
    const float addend = load(c);
    const float sum = product + addend;
    return store(rounded_to_odd(sum, error_of_sum(product, addend, sum)));
  }
};

struct bfloat {
  static constexpr uint16_t nan = 0x7fff;
  static constexpr uint16_t one = 0x3f80;
  static float load(uint16_t h) { return from_bfloat(h); }
  static uint16_t store(float x) { return to_bfloat(x); }
  static uint16_t flush(uint16_t h) {
    return (h & 0x7f80) != 0 ? h : static_cast<uint16_t>(h & 0x8000);
  }
  static uint16_t multiply_add(uint16_t a, uint16_t b, uint16_t c) {
    // The range of the format is that of float: only double holds the product.
    const double product = static_cast<double>(load(a)) * static_cast<double>(load(b));
    const auto addend = static_cast<double>(load(c));
    const double sum = product + addend;
    return store(narrowed_to_odd(rounded_to_odd(sum, error_of_sum(product, addend, sum))));
  }
};

template <class H>
bool is_nan(uint16_t h) {
  return H::load(h) != H::load(h);
}

template <class H>
struct add {
  static uint16_t of(uint16_t a, uint16_t b) { return H::store(H::load(a) + H::load(b)); }
};
template <class H>
struct sub {
  static uint16_t of(uint16_t a, uint16_t b) { return H::store(H::load(a) - H::load(b)); }
};
template <class H>
struct mul {
  // Minus zero changes no product, not even one that is zero.
  static uint16_t of(uint16_t a, uint16_t b) { return H::multiply_add(a, b, 0x8000); }
};
template <class H>
struct fma {
  static uint16_t of(uint16_t a, uint16_t b, uint16_t c) { return H::multiply_add(a, b, c); }
};
template <class H>
struct min {
  static uint16_t of(uint16_t a, uint16_t b) { return H::store(smaller(H::load(a), H::load(b))); }
};
template <class H>
struct max {
  static uint16_t of(uint16_t a, uint16_t b) { return H::store(larger(H::load(a), H::load(b))); }
};
template <class H>
struct min_nan {
  static uint16_t of(uint16_t a, uint16_t b) {
    return H::store(smaller_or_nan(H::load(a), H::load(b)));
  }
};
template <class H>
struct max_nan {
  static uint16_t of(uint16_t a, uint16_t b) {
    return H::store(larger_or_nan(H::load(a), H::load(b)));
  }
};
template <class H>
struct neg {
  static uint16_t of(uint16_t a) {
    return is_nan<H>(a) ? H::nan : static_cast<uint16_t>(a ^ 0x8000);
  }
};
template <class H>
struct abs {
  static uint16_t of(uint16_t a) {
    return is_nan<H>(a) ? H::nan : static_cast<uint16_t>(a & 0x7fff);
  }
};
template <class H>
struct tanh {
  static uint16_t of(uint16_t a) { return H::store(tanh_of(H::load(a))); }
};
template <class H>
struct exp2 {
  static uint16_t of(uint16_t a) { return H::store(exp2_of(H::load(a))); }
};

// Modifiers, as wrappers of the operations above.
template <class H, class F>
struct ftz {
  template <class... Args>
  static uint16_t of(Args... args) {
    return H::flush(F::of(H::flush(args)...));
  }
};
template <class H, class F>
struct sat {
  template <class... Args>
  static uint16_t of(Args... args) {
    return H::store(unit(H::load(F::of(args...))));
  }
};
// Negative results become 0; a NaN stays one.
template <class H, class F>
struct relu {
  template <class... Args>
  static uint16_t of(Args... args) {
    const uint16_t result = F::of(args...);
    return is_nan<H>(result) ? H::nan : result & 0x8000 ? uint16_t{0} : result;
  }
};
// Two in one register.
template <class F>
struct two {
  template <class... Args>
  static uint32_t of(Args... args) {
    const uint32_t low = F::of(static_cast<uint16_t>(args)...);
    const uint32_t high = F::of(static_cast<uint16_t>(args >> 16)...);
    return high << 16 | low;
  }
};

// set.CMP.f16x2.f16x2 and its like: 1.0 or 0.
enum class test { lt, le, gt, ge, eq, ne, ltu, leu, gtu, geu, equ, neu, num, nan };
bool holds(test t, float x, float y) {
  switch (t) {
  case test::lt:
    return x < y;
  case test::le:
    return x <= y;
  case test::gt:
    return x > y;
  case test::ge:
    return x >= y;
  case test::eq:
    return x == y;
  case test::ne:
    return x < y || x > y;
  case test::ltu:
    return !(x >= y);
  case test::leu:
    return !(x > y);
  case test::gtu:
    return !(x <= y);
  case test::geu:
    return !(x < y);
  case test::equ:
    return !(x < y || x > y);
  case test::neu:
    return !(x == y);
  case test::num:
    return x == x && y == y;
  case test::nan:
    return x != x || y != y;
  }
  return false;
}
template <class H, test T>
struct set_one {
  static uint16_t of(uint16_t a, uint16_t b) {
    return holds(T, H::load(a), H::load(b)) ? H::one : uint16_t{0};
  }
};
template <class H, test T>
struct set_mask {
  static uint16_t of(uint16_t a, uint16_t b) {
    return holds(T, H::load(a), H::load(b)) ? uint16_t{0xffff} : uint16_t{0};
  }
};

constexpr auto fp16 = category::fp16;

// One and two in a register.
#define HALF_UNARY(NAME, TYPE, FLOPS, ...)                                                         \
  lane_entry{NAME TYPE, unary<uint16_t, uint16_t, __VA_ARGS__>, fp16, 2, {2}, 'i', FLOPS},         \
    lane_entry {                                                                                   \
    NAME TYPE "x2", unary<uint32_t, uint32_t, two<__VA_ARGS__>>, fp16, 4, {4}, 'i', 2 * FLOPS      \
  }
#define HALF_BINARY(NAME, TYPE, ...)                                                               \
  lane_entry{                                                                                      \
    NAME TYPE, binary<uint16_t, uint16_t, uint16_t, __VA_ARGS__>, fp16, 2, {2, 2}, 'i', 1},        \
    lane_entry {                                                                                   \
    NAME TYPE "x2", binary<uint32_t, uint32_t, uint32_t, two<__VA_ARGS__>>, fp16, 4, {4, 4}, 'i',  \
      2                                                                                            \
  }
#define HALF_TERNARY(NAME, TYPE, ...)                                                              \
  lane_entry{NAME TYPE, ternary<uint16_t, uint16_t, uint16_t, uint16_t, __VA_ARGS__>, fp16, 2,     \
    {2, 2, 2}, 'i', 2},                                                                            \
    lane_entry {                                                                                   \
    NAME TYPE "x2", ternary<uint32_t, uint32_t, uint32_t, uint32_t, two<__VA_ARGS__>>, fp16, 4,    \
      {4, 4, 4}, 'i', 4                                                                            \
  }
#define SET(CMP, H, TYPE)                                                                          \
  lane_entry{"set." #CMP "." TYPE "x2." TYPE "x2",                                                 \
    binary<uint32_t, uint32_t, uint32_t, two<set_one<H, test::CMP>>>, fp16, 4, {4, 4}, 'i', 0},    \
    lane_entry{"set." #CMP "." TYPE "." TYPE,                                                      \
      binary<uint16_t, uint16_t, uint16_t, set_one<H, test::CMP>>, fp16, 2, {2, 2}, 'i', 0},       \
    lane_entry {                                                                                   \
    "set." #CMP ".u32." TYPE "x2",                                                                 \
      binary<uint32_t, uint32_t, uint32_t, two<set_mask<H, test::CMP>>>, fp16, 4, {4, 4}, 'i', 0   \
  }
#define SETS(H, TYPE)                                                                              \
  SET(lt, H, TYPE), SET(le, H, TYPE), SET(gt, H, TYPE), SET(ge, H, TYPE), SET(eq, H, TYPE),        \
    SET(ne, H, TYPE), SET(ltu, H, TYPE), SET(leu, H, TYPE), SET(gtu, H, TYPE), SET(geu, H, TYPE),  \
    SET(equ, H, TYPE), SET(neu, H, TYPE), SET(num, H, TYPE), SET(nan, H, TYPE)
#define COMMON(H, TYPE)                                                                            \
  HALF_BINARY("add.", TYPE, add<H>), HALF_BINARY("sub.", TYPE, sub<H>),                            \
    HALF_BINARY("mul.", TYPE, mul<H>), HALF_TERNARY("fma.", TYPE, fma<H>),                         \
    HALF_TERNARY("fma.relu.", TYPE, relu<H, fma<H>>), HALF_BINARY("min.", TYPE, min<H>),           \
    HALF_BINARY("max.", TYPE, max<H>), HALF_BINARY("min.NaN.", TYPE, min_nan<H>),                  \
    HALF_BINARY("max.NaN.", TYPE, max_nan<H>), HALF_UNARY("neg.", TYPE, 0, neg<H>),                \
    HALF_UNARY("abs.", TYPE, 0, abs<H>), HALF_UNARY("tanh.", TYPE, 1, tanh<H>), SETS(H, TYPE)
#define FLUSHED(H, TYPE)                                                                           \
  HALF_BINARY("add.ftz.", TYPE, ftz<H, add<H>>), HALF_BINARY("sub.ftz.", TYPE, ftz<H, sub<H>>),    \
    HALF_BINARY("mul.ftz.", TYPE, ftz<H, mul<H>>), HALF_TERNARY("fma.ftz.", TYPE, ftz<H, fma<H>>), \
    HALF_TERNARY("fma.ftz.relu.", TYPE, relu<H, ftz<H, fma<H>>>),                                  \
    HALF_BINARY("min.ftz.", TYPE, ftz<H, min<H>>), HALF_BINARY("max.ftz.", TYPE, ftz<H, max<H>>),  \
    HALF_BINARY("min.ftz.NaN.", TYPE, ftz<H, min_nan<H>>),                                         \
    HALF_BINARY("max.ftz.NaN.", TYPE, ftz<H, max_nan<H>>),                                         \
    HALF_UNARY("neg.ftz.", TYPE, 0, ftz<H, neg<H>>),                                               \
    HALF_UNARY("abs.ftz.", TYPE, 0, ftz<H, abs<H>>)
#define SATURATED(H, TYPE)                                                                         \
  HALF_BINARY("add.sat.", TYPE, sat<H, add<H>>), HALF_BINARY("sub.sat.", TYPE, sat<H, sub<H>>),    \
    HALF_BINARY("mul.sat.", TYPE, sat<H, mul<H>>), HALF_TERNARY("fma.sat.", TYPE, sat<H, fma<H>>)

#define FLUSHED_SATURATED(TYPE)                                                                    \
  HALF_BINARY("add.ftz.sat.", TYPE, sat<half, ftz<half, add<half>>>),                              \
    HALF_BINARY("sub.ftz.sat.", TYPE, sat<half, ftz<half, sub<half>>>),                            \
    HALF_BINARY("mul.ftz.sat.", TYPE, sat<half, ftz<half, mul<half>>>),                            \
    HALF_TERNARY("fma.ftz.sat.", TYPE, sat<half, ftz<half, fma<half>>>)

const lane_entry entries[] = {
  COMMON(half, "f16"),
  COMMON(bfloat, "bf16"),
  FLUSHED(half, "f16"),
  SATURATED(half, "f16"),
  FLUSHED_SATURATED("f16"),
  HALF_UNARY("ex2.", "f16", 1, exp2<half>),
  HALF_UNARY("ex2.ftz.", "bf16", 1, ftz<bfloat, exp2<bfloat>>),
};

} // namespace

const lane_entries half_entries{entries, sizeof entries / sizeof entries[0]};

} // namespace gristmill::ptx::GRISTMILL_PTX_LANES
