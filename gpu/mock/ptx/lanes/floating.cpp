#include "gpu/mock/ptx/lanes/floats.hpp"
#include "gpu/mock/ptx/lanes/tables.hpp"

#include <cfenv>

namespace gristmill::ptx::GRISTMILL_PTX_LANES {
namespace {

template <subnormals S, range R>
struct add {
  template <class T>
  static T of(T a, T b) {
    return output<S, R>(input<S>(a) + input<S>(b));
  }
};
template <subnormals S, range R>
struct sub {
  template <class T>
  static T of(T a, T b) {
    return output<S, R>(input<S>(a) - input<S>(b));
  }
};
template <subnormals S, range R>
struct mul {
  template <class T>
  static T of(T a, T b) {
    return output<S, R>(input<S>(a) * input<S>(b));
  }
};
template <subnormals S, range R>
struct fma {
  template <class T>
  static T of(T a, T b, T c) {
    return output<S, R>(fused(input<S>(a), input<S>(b), input<S>(c)));
  }
};
template <subnormals S, range R>
struct div {
  template <class T>
  static T of(T a, T b) {
    return output<S, R>(input<S>(a) / input<S>(b));
  }
};
template <subnormals S, range R>
struct rcp {
  template <class T>
  static T of(T a) {
    return output<S, R>(T{1} / input<S>(a));
  }
};
template <subnormals S, range R>
struct root {
  static float of(float a) { return output<S, R>(__builtin_sqrtf(input<S>(a))); }
  static double of(double a) { return output<S, R>(__builtin_sqrt(input<S>(a))); }
};
// Through double, so that the result is the nearest float in all but a few cases.
template <subnormals S, range R>
struct rsqrt {
  static float of(float a) {
    const auto wide = static_cast<double>(input<S>(a));
    return output<S, R>(static_cast<float>(1.0 / __builtin_sqrt(wide)));
  }
  static double of(double a) { return output<S, R>(1.0 / __builtin_sqrt(a)); }
};
// The approximations for double precision: only the upper half of the result, no subnormal numbers.
double upper_half(double x) {
  const uint64_t u = bits(x) & 0xffffffff00000000;
  return settled(from_bits((u & 0x7ff0000000000000) != 0 ? u : u & 0x8000000000000000));
}
struct rcp_upper {
  static double of(double a) { return upper_half(1.0 / flushed_double(a)); }
  static double flushed_double(double a) {
    const uint64_t u = bits(a);
    return (u & 0x7ff0000000000000) != 0 ? a : from_bits(u & 0x8000000000000000);
  }
};
struct rsqrt_upper {
  static double of(double a) {
    return upper_half(1.0 / __builtin_sqrt(rcp_upper::flushed_double(a)));
  }
};
template <subnormals S>
struct min {
  template <class T>
  static T of(T a, T b) {
    return smaller(input<S>(a), input<S>(b));
  }
};
template <subnormals S>
struct max {
  template <class T>
  static T of(T a, T b) {
    return larger(input<S>(a), input<S>(b));
  }
};
template <subnormals S>
struct min_nan {
  template <class T>
  static T of(T a, T b) {
    return smaller_or_nan(input<S>(a), input<S>(b));
  }
};
template <subnormals S>
struct max_nan {
  template <class T>
  static T of(T a, T b) {
    return larger_or_nan(input<S>(a), input<S>(b));
  }
};
template <class T>
constexpr auto sign_bit = static_cast<decltype(bits(T{}))>(1) << (8 * sizeof(T) - 1);
template <subnormals S>
struct neg {
  template <class T>
  static T of(T a) {
    return from_bits(bits(input<S>(a)) ^ sign_bit<T>);
  }
};
template <subnormals S>
struct abs {
  template <class T>
  static T of(T a) {
    return from_bits(bits(input<S>(a)) & ~sign_bit<T>);
  }
};
// The sign is that of the first operand.
struct copysign {
  template <class T>
  static T of(T a, T b) {
    return from_bits((bits(b) & ~sign_bit<T>) | (bits(a) & sign_bit<T>));
  }
};

// Two floats in one 64-bit register.
template <class F>
struct two {
  template <class... Args>
  static uint64_t of(Args... args) {
    const float low = F::of(from_bits(static_cast<uint32_t>(args))...);
    const float high = F::of(from_bits(static_cast<uint32_t>(args >> 32))...);
    return static_cast<uint64_t>(bits(high)) << 32 | bits(low);
  }
};

// Rounding modes other than to nearest: rare, so through the mode of the processor. `volatile`
// keeps the compiler from moving the operation across the changes of mode.
enum class direct { add, sub, mul, fma, div, rcp, root };
template <class T, direct Kind, int Mode, subnormals S, range R>
void directed(lane_state& s, const operation& o) {
  T* d = lane<T>(s, o.d);
  const T* a = lane<T>(s, o.a);
  const T* b = lane<T>(s, o.b);
  const T* c = lane<T>(s, o.c);
  std::fesetround(Mode);
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    if (!(s.active >> l & 1))
      continue;
    const volatile T x = input<S>(a[l]);
    const volatile T y = Kind == direct::rcp || Kind == direct::root ? T{1} : input<S>(b[l]);
    const volatile T z = Kind == direct::fma ? input<S>(c[l]) : T{0};
    volatile T result = 0;
    if constexpr (Kind == direct::add)
      result = x + y;
    else if constexpr (Kind == direct::sub)
      result = x - y;
    else if constexpr (Kind == direct::mul)
      result = x * y;
    else if constexpr (Kind == direct::div)
      result = x / y;
    else if constexpr (Kind == direct::rcp)
      result = y / x;
    else if constexpr (Kind == direct::fma)
      result = fused(x, y, z);
    else if constexpr (sizeof(T) == 4)
      result = __builtin_sqrtf(x);
    else
      result = __builtin_sqrt(x);
    d[l] = output<S, R>(T{result});
  }
  std::fesetround(FE_TONEAREST);
}

constexpr auto kept = subnormals::kept;
constexpr auto ftz = subnormals::flushed;
constexpr auto full = range::full;
constexpr auto sat = range::unit;
constexpr auto fp32 = category::fp32;
constexpr auto fp64 = category::fp64;
constexpr auto sfu = category::sfu;

#define F32(NAME, KIND, FLOPS, ...)                                                                \
  lane_entry {                                                                                     \
    NAME, binary<float, float, float, __VA_ARGS__>, KIND, 4, {4, 4}, 'f', FLOPS                    \
  }
#define F64(NAME, ...)                                                                             \
  lane_entry {                                                                                     \
    NAME, binary<double, double, double, __VA_ARGS__>, fp64, 8, {8, 8}, 'd', 1                     \
  }
#define F32_UNARY(NAME, KIND, FLOPS, ...)                                                          \
  lane_entry {                                                                                     \
    NAME, unary<float, float, __VA_ARGS__>, KIND, 4, {4}, 'f', FLOPS                               \
  }
#define F64_UNARY(NAME, ...)                                                                       \
  lane_entry {                                                                                     \
    NAME, unary<double, double, __VA_ARGS__>, fp64, 8, {8}, 'd', 1                                 \
  }
#define F32_FMA(NAME, ...)                                                                         \
  lane_entry {                                                                                     \
    NAME, ternary<float, float, float, float, __VA_ARGS__>, fp32, 4, {4, 4, 4}, 'f', 2             \
  }
#define FOUR(NAME, F)                                                                              \
  F32(NAME ".f32", fp32, 1, F<kept, full>), F32(NAME ".ftz.f32", fp32, 1, F<ftz, full>),           \
    F32(NAME ".sat.f32", fp32, 1, F<kept, sat>), F32(NAME ".ftz.sat.f32", fp32, 1, F<ftz, sat>)
#define PAIR(NAME, F)                                                                              \
  lane_entry{NAME ".f32x2", binary<uint64_t, uint64_t, uint64_t, two<F<kept, full>>>, fp32, 8,     \
    {8, 8}, 'i', 2},                                                                               \
    lane_entry {                                                                                   \
    NAME ".ftz.f32x2", binary<uint64_t, uint64_t, uint64_t, two<F<ftz, full>>>, fp32, 8, {8, 8},   \
      'i', 2                                                                                       \
  }
#define DIRECTED_MODE(NAME, WORD, T, LETTER, KIND, MODE, COUNT)                                    \
  lane_entry {                                                                                     \
    NAME "." WORD ".f" LETTER, directed<T, KIND, MODE, kept, full>, sizeof(T) == 4 ? fp32 : fp64,  \
      sizeof(T), {sizeof(T), COUNT > 1 ? sizeof(T) : 0, COUNT > 2 ? sizeof(T) : 0},                \
      sizeof(T) == 4 ? 'f' : 'd', 1                                                                \
  }
#define DIRECTED_FLUSHED(NAME, WORD, KIND, MODE, COUNT)                                            \
  lane_entry {                                                                                     \
    NAME "." WORD ".ftz.f32", directed<float, KIND, MODE, ftz, full>, fp32, 4,                     \
      {4, COUNT > 1 ? 4 : 0, COUNT > 2 ? 4 : 0}, 'f', 1                                            \
  }
#define DIRECTED(NAME, KIND, COUNT)                                                                \
  DIRECTED_MODE(NAME, "rz", float, "32", KIND, FE_TOWARDZERO, COUNT),                              \
    DIRECTED_MODE(NAME, "rm", float, "32", KIND, FE_DOWNWARD, COUNT),                              \
    DIRECTED_MODE(NAME, "rp", float, "32", KIND, FE_UPWARD, COUNT),                                \
    DIRECTED_FLUSHED(NAME, "rz", KIND, FE_TOWARDZERO, COUNT),                                      \
    DIRECTED_FLUSHED(NAME, "rm", KIND, FE_DOWNWARD, COUNT),                                        \
    DIRECTED_FLUSHED(NAME, "rp", KIND, FE_UPWARD, COUNT),                                          \
    DIRECTED_MODE(NAME, "rz", double, "64", KIND, FE_TOWARDZERO, COUNT),                           \
    DIRECTED_MODE(NAME, "rm", double, "64", KIND, FE_DOWNWARD, COUNT),                             \
    DIRECTED_MODE(NAME, "rp", double, "64", KIND, FE_UPWARD, COUNT)

const lane_entry entries[] = {
  FOUR("add", add),
  FOUR("sub", sub),
  FOUR("mul", mul),
  F32_FMA("fma.f32", fma<kept, full>),
  F32_FMA("fma.ftz.f32", fma<ftz, full>),
  F32_FMA("fma.sat.f32", fma<kept, sat>),
  F32_FMA("fma.ftz.sat.f32", fma<ftz, sat>),
  F32("div.f32", sfu, 1, div<kept, full>),
  F32("div.ftz.f32", sfu, 1, div<ftz, full>),
  F32("min.f32", fp32, 1, min<kept>),
  F32("min.ftz.f32", fp32, 1, min<ftz>),
  F32("min.NaN.f32", fp32, 1, min_nan<kept>),
  F32("min.ftz.NaN.f32", fp32, 1, min_nan<ftz>),
  F32("max.f32", fp32, 1, max<kept>),
  F32("max.ftz.f32", fp32, 1, max<ftz>),
  F32("max.NaN.f32", fp32, 1, max_nan<kept>),
  F32("max.ftz.NaN.f32", fp32, 1, max_nan<ftz>),
  F32("copysign.f32", fp32, 0, copysign),
  F32_UNARY("neg.f32", fp32, 0, neg<kept>),
  F32_UNARY("neg.ftz.f32", fp32, 0, neg<ftz>),
  F32_UNARY("abs.f32", fp32, 0, abs<kept>),
  F32_UNARY("abs.ftz.f32", fp32, 0, abs<ftz>),
  F32_UNARY("rcp.f32", sfu, 1, rcp<kept, full>),
  F32_UNARY("rcp.ftz.f32", sfu, 1, rcp<ftz, full>),
  F32_UNARY("sqrt.f32", sfu, 1, root<kept, full>),
  F32_UNARY("sqrt.ftz.f32", sfu, 1, root<ftz, full>),
  F32_UNARY("rsqrt.f32", sfu, 1, rsqrt<kept, full>),
  F32_UNARY("rsqrt.ftz.f32", sfu, 1, rsqrt<ftz, full>),
  F64("add.f64", add<kept, full>),
  F64("sub.f64", sub<kept, full>),
  F64("mul.f64", mul<kept, full>),
  F64("div.f64", div<kept, full>),
  F64("min.f64", min<kept>),
  F64("max.f64", max<kept>),
  F64("copysign.f64", copysign),
  F64_UNARY("neg.f64", neg<kept>),
  F64_UNARY("abs.f64", abs<kept>),
  F64_UNARY("rcp.f64", rcp<kept, full>),
  F64_UNARY("rcp.ftz.f64", rcp_upper),
  F64_UNARY("rsqrt.ftz.f64", rsqrt_upper),
  F64_UNARY("sqrt.f64", root<kept, full>),
  F64_UNARY("rsqrt.f64", rsqrt<kept, full>),
  {"fma.f64", ternary<double, double, double, double, fma<kept, full>>, fp64, 8, {8, 8, 8}, 'd', 2},
  PAIR("add", add),
  PAIR("sub", sub),
  PAIR("mul", mul),
  {"fma.f32x2", ternary<uint64_t, uint64_t, uint64_t, uint64_t, two<fma<kept, full>>>, fp32, 8,
    {8, 8, 8}, 'i', 4},
  {"fma.ftz.f32x2", ternary<uint64_t, uint64_t, uint64_t, uint64_t, two<fma<ftz, full>>>, fp32, 8,
    {8, 8, 8}, 'i', 4},
  DIRECTED("add", direct::add, 2),
  DIRECTED("sub", direct::sub, 2),
  DIRECTED("mul", direct::mul, 2),
  DIRECTED("fma", direct::fma, 3),
  DIRECTED("div", direct::div, 2),
  DIRECTED("rcp", direct::rcp, 1),
  DIRECTED("sqrt", direct::root, 1),
};

} // namespace

const lane_entries floating_entries{entries, sizeof entries / sizeof entries[0]};

} // namespace gristmill::ptx::GRISTMILL_PTX_LANES
