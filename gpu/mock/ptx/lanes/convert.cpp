#include "gpu/mock/ptx/lanes/short_floats.hpp"
#include "gpu/mock/ptx/lanes/tables.hpp"

#include <cfenv>

namespace gristmill::ptx::GRISTMILL_PTX_LANES {
namespace {

// The types of the two 16-bit formats; a float or an integer stands for itself.
struct half {
  uint16_t bits;
};
struct bfloat {
  uint16_t bits;
};

template <class T>
constexpr bool is_integer = std::is_integral_v<T>;
template <class T>
constexpr bool is_small_float = std::is_same_v<T, half> || std::is_same_v<T, bfloat>;

inline float widened(half x) {
  return from_half_by_mask(x.bits);
}
inline float widened(bfloat x) {
  return from_bfloat(x.bits);
}
inline float widened(float x) {
  return x;
}
inline double widened(double x) {
  return x;
}

template <class T>
struct limits;
#define LIMITS(T, LOW, HIGH)                                                                       \
  template <>                                                                                      \
  struct limits<T> {                                                                               \
    static constexpr T low = LOW;                                                                  \
    static constexpr T high = HIGH;                                                                \
  };
LIMITS(int8_t, INT8_MIN, INT8_MAX)
LIMITS(int16_t, INT16_MIN, INT16_MAX)
LIMITS(int32_t, INT32_MIN, INT32_MAX)
LIMITS(int64_t, INT64_MIN, INT64_MAX)
LIMITS(uint8_t, 0, UINT8_MAX)
LIMITS(uint16_t, 0, UINT16_MAX)
LIMITS(uint32_t, 0, UINT32_MAX)
LIMITS(uint64_t, 0, UINT64_MAX)

inline double integral(double x, uint8_t mode) {
  switch (mode) {
  case round_nearest:
    return __builtin_rint(x);
  case round_down:
    return __builtin_floor(x);
  case round_up:
    return __builtin_ceil(x);
  default:
    return __builtin_trunc(x);
  }
}
inline float integral(float x, uint8_t mode) {
  switch (mode) {
  case round_nearest:
    return __builtin_rintf(x);
  case round_down:
    return __builtin_floorf(x);
  case round_up:
    return __builtin_ceilf(x);
  default:
    return __builtin_truncf(x);
  }
}

/// What NaN becomes. PTX leaves it open; this is what a GPU gives: 0, but where the source or the
/// result has 64 bits the highest bit alone.
template <class D, class F>
constexpr D of_nan = sizeof(D) == 8 || sizeof(F) == 8
  ? static_cast<D>(uint64_t{1} << (8 * sizeof(D) - 1))
  : D{0};

/// Clamps. `x` is integral or will be truncated.
template <class D, class F>
inline D clamped(F x) {
  constexpr auto low = static_cast<F>(limits<D>::low);
  // One above the highest value: a power of two, so exact in every format.
  constexpr F high = static_cast<F>(limits<D>::high / 2 + 1) * F{2};
  const bool inside = x > low && x < high;
  const D value = static_cast<D>(inside ? x : F{0});
  const D number = x >= high ? limits<D>::high : x <= low ? limits<D>::low : value;
  return x == x ? number : of_nan<D, F>;
}

inline int set_mode(uint8_t mode) {
  const int wanted = mode == round_zero ? FE_TOWARDZERO
    : mode == round_down                ? FE_DOWNWARD
    : mode == round_up                  ? FE_UPWARD
                                        : FE_TONEAREST;
  std::fesetround(wanted);
  return wanted;
}

/// Towards zero, from a float that is exact or rounded to odd.
template <class D>
inline uint16_t truncated(float x) {
  if constexpr (std::is_same_v<D, bfloat>)
    return x != x ? uint16_t{0x7fff} : static_cast<uint16_t>(bits(x) >> 16);
  const uint16_t nearest = to_half(x);
  const float back = from_half(nearest);
  // Below infinity comes the largest number, so that an overflow is right as well.
  const bool overshot = __builtin_fabsf(back) > __builtin_fabsf(x);
  return static_cast<uint16_t>(overshot ? nearest - 1 : nearest);
}

/// Away from zero when that is the direction of the rounding. Infinity follows the largest number.
template <class D>
inline uint16_t directed(float x, uint8_t mode) {
  const uint16_t inner = truncated<D>(x);
  const bool outward = mode == round_up ? x > 0 : mode == round_down && x < 0;
  return outward && widened(D{inner}) != x ? static_cast<uint16_t>(inner + 1) : inner;
}

template <class D>
inline D narrowed(float x, uint8_t mode) {
  if (mode == round_zero || mode == round_down || mode == round_up)
    return D{directed<D>(x, mode)};
  if constexpr (std::is_same_v<D, half>)
    return D{to_half(x)};
  else
    return D{to_bfloat(x)};
}

template <class D, class S>
inline D integer_to_integer(S x, bool saturate) {
  if (!saturate)
    return static_cast<D>(x);
  if constexpr (std::is_signed_v<S>) {
    if (x < 0)
      return std::is_signed_v<D> && static_cast<int64_t>(x) >= static_cast<int64_t>(limits<D>::low)
        ? static_cast<D>(x)
        : limits<D>::low;
  }
  return static_cast<uint64_t>(x) > static_cast<uint64_t>(limits<D>::high) ? limits<D>::high
                                                                           : static_cast<D>(x);
}

/// An integer as a float that is rounded to odd: the highest 40 bits, and whether any is set below.
template <class S>
inline float odd_float(S x) {
  if constexpr (sizeof(S) < 8) {
    return narrowed_to_odd(static_cast<double>(x));
  } else {
    bool negative = false;
    if constexpr (std::is_signed_v<S>)
      negative = x < 0;
    const uint64_t u = negative ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
    constexpr uint64_t below = (1ULL << 24) - 1;
    const bool is_small = u >> 40 == 0;
    const uint64_t kept = is_small ? u : (u & ~below) | ((u & below) != 0 ? below + 1 : 0);
    const auto wide = static_cast<double>(kept);
    return narrowed_to_odd(negative ? -wide : wide);
  }
}

template <class D, class S>
inline D one(S x, uint8_t mode, int64_t flags) {
  if constexpr (is_integer<D> && is_integer<S>) {
    return integer_to_integer<D>(x, (flags & convert_saturate) != 0);
  } else if constexpr (is_integer<D>) {
    auto wide = widened(x);
    if constexpr (std::is_same_v<S, float>)
      wide = flags & convert_flush ? flushed(wide) : wide;
    return clamped<D>(integral(wide, mode));
  } else if constexpr (is_integer<S>) {
    if constexpr (is_small_float<D>)
      return narrowed<D>(odd_float(x), mode);
    else
      return flags & convert_saturate ? unit(static_cast<D>(x)) : static_cast<D>(x);
  } else {
    auto wide = widened(x);
    if constexpr (std::is_same_v<S, float>)
      wide = flags & convert_flush ? flushed(wide) : wide;
    if constexpr (std::is_same_v<D, S>)
      wide = mode == round_none ? wide : integral(wide, mode);
    wide = flags & convert_saturate ? unit(wide) : wide;
    wide = flags & convert_relu && wide <= 0 ? decltype(wide){0} : wide;
    if constexpr (is_small_float<D>) {
      if constexpr (std::is_same_v<D, S>)
        return narrowed<D>(wide, round_nearest);
      else if constexpr (std::is_same_v<S, double>)
        return narrowed<D>(narrowed_to_odd(wide), mode);
      else
        return narrowed<D>(wide, mode);
    } else {
      // From bf16 to f32 is a move, also of a NaN.
      constexpr bool moves = std::is_same_v<D, float> && std::is_same_v<S, bfloat>;
      auto result = moves ? static_cast<D>(wide) : settled(static_cast<D>(wide));
      if constexpr (std::is_same_v<D, float>)
        result = flags & convert_flush ? flushed(result) : result;
      return result;
    }
  }
}

/// Conversions that round to nearest, or not at all, need no mode of the processor.
template <class D, class S>
constexpr bool depends_on_mode =
  !is_integer<
    D> && !is_small_float<D> && ((is_integer<S> && sizeof(S) >= 4) || (sizeof(S) == 8 && sizeof(D) == 4));

template <class D, class S>
void convert(lane_state& s, const operation& o) {
  D* d = lane<D>(s, o.d);
  const S* a = lane<S>(s, o.a);
  const uint32_t active = s.active;
  const bool plain = o.imm == 0 && (o.mode == round_none || o.mode == round_nearest);
  if (active == all_lanes && plain
    && !(is_integer<D> && !is_integer<S>)&&!(std::is_same_v<D, S> && o.mode != round_none)) {
#pragma GCC ivdep
    for (uint32_t l = 0; l < warp_lanes; ++l)
      d[l] = one<D>(a[l], std::is_same_v<D, S> ? round_none : round_nearest, 0);
    return;
  }
  if (active == all_lanes && o.imm == 0 && o.mode == round_zero
    && is_integer<D> && !is_integer<S>) {
#pragma GCC ivdep
    for (uint32_t l = 0; l < warp_lanes; ++l)
      d[l] = one<D>(a[l], round_zero, 0);
    return;
  }
  if constexpr (depends_on_mode<D, S>) {
    if (o.mode > round_nearest) {
      set_mode(o.mode);
      for (uint32_t l = 0; l < warp_lanes; ++l) {
        if (!(active >> l & 1))
          continue;
        const volatile S x = a[l]; // Keeps the conversion between the changes of mode.
        const volatile D y = one<D>(static_cast<S>(x), o.mode, o.imm);
        d[l] = y;
      }
      std::fesetround(FE_TONEAREST);
      return;
    }
  }
  for (uint32_t l = 0; l < warp_lanes; ++l)
    if (active >> l & 1)
      d[l] = one<D>(a[l], o.mode, o.imm);
}

/// Two floats into one register: a is the high half.
template <class D, uint8_t Mode>
void convert_two(lane_state& s, const operation& o) {
  uint32_t* d = lane<uint32_t>(s, o.d);
  const float* a = lane<float>(s, o.a);
  const float* b = lane<float>(s, o.b);
  const bool relu = (o.imm & convert_relu) != 0;
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    const float x = relu && a[l] <= 0 ? 0.0F : a[l];
    const float y = relu && b[l] <= 0 ? 0.0F : b[l];
    const uint32_t both =
      static_cast<uint32_t>(narrowed<D>(x, Mode).bits) << 16 | narrowed<D>(y, Mode).bits;
    d[l] = s.active >> l & 1 ? both : d[l];
  }
}

/// f32 with the mantissa of tf32, 10 bits; `mode` says how to round.
void to_tf32(lane_state& s, const operation& o) {
  uint32_t* d = lane<uint32_t>(s, o.d);
  const uint32_t* a = lane<uint32_t>(s, o.a);
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    if (!(s.active >> l & 1))
      continue;
    const uint32_t u = a[l];
    const bool finite = (u & 0x7f800000) != 0x7f800000;
    const uint32_t bias = o.mode == round_nearest_away ? 0x1000
      : o.mode == round_zero                           ? 0
                                                       : 0xfff + (u >> 13 & 1);
    const bool nan = (u & 0x7fffffff) > 0x7f800000;
    const uint32_t rounded = (u + (finite ? bias : 0)) & 0xffffe000;
    const uint32_t of_nan_bits = o.mode == round_nearest_away ? u & 0xffffe000 : 0x7fffe000;
    d[l] = nan ? of_nan_bits : o.imm & convert_relu && (u >> 31) ? 0 : rounded;
  }
}

inline uint16_t half_of(e5m2, uint8_t x) {
  // The upper byte of a half.
  return (x & 0x7f) > 0x7c ? uint16_t{0x7fff} : static_cast<uint16_t>(x << 8);
}
inline uint16_t half_of(e4m3, uint8_t x) {
  if ((x & 0x7f) == 0x7f)
    return 0x7fff;
  // As a half with the exponent 8 too small, which keeps the subnormals right.
  const auto scaled = static_cast<uint16_t>((x & 0x80) << 8 | (x & 0x7f) << 7);
  return narrowed<half>(from_half(scaled) * 256.0F, round_nearest).bits;
}

inline float without_negative(float x, bool relu) {
  return relu && x <= 0 ? 0.0F : x;
}
inline uint16_t without_negative(uint16_t x, bool relu) {
  return relu && x >= 0x8000 && x <= 0xfc00 ? uint16_t{0} : x;
}

template <class T>
void float8_to_halves(lane_state& s, const operation& o) {
  uint32_t* d = lane<uint32_t>(s, o.d);
  const uint16_t* a = lane<uint16_t>(s, o.a);
  const bool relu = (o.imm & convert_relu) != 0;
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    if (!(s.active >> l & 1))
      continue;
    const uint32_t high = without_negative(half_of(T{}, static_cast<uint8_t>(a[l] >> 8)), relu);
    const uint32_t low = without_negative(half_of(T{}, static_cast<uint8_t>(a[l])), relu);
    d[l] = high << 16 | low;
  }
}

/// From one element of a pair to the next: nibbles, else bytes.
template <class T>
constexpr int short_step = short_bits<T> == 4 ? 4 : 8;

template <class T>
uint16_t two_short(float high, float low, bool relu) {
  return static_cast<uint16_t>(to_short<T>(without_negative(high, relu))
      << short_step<T> | to_short<T>(without_negative(low, relu)));
}

template <class T>
void halves_to_short(lane_state& s, const operation& o) {
  uint16_t* d = lane<uint16_t>(s, o.d);
  const uint32_t* a = lane<uint32_t>(s, o.a);
  for (uint32_t l = 0; l < warp_lanes; ++l)
    if (s.active >> l & 1)
      d[l] = two_short<T>(from_half(static_cast<uint16_t>(a[l] >> 16)),
        from_half(static_cast<uint16_t>(a[l])), (o.imm & convert_relu) != 0);
}

/// a is the upper one.
template <class T>
void floats_to_short(lane_state& s, const operation& o) {
  uint16_t* d = lane<uint16_t>(s, o.d);
  const float* a = lane<float>(s, o.a);
  const float* b = lane<float>(s, o.b);
  for (uint32_t l = 0; l < warp_lanes; ++l)
    if (s.active >> l & 1)
      d[l] = two_short<T>(a[l], b[l], (o.imm & convert_relu) != 0);
}

template <class T>
void short_to_halves(lane_state& s, const operation& o) {
  uint32_t* d = lane<uint32_t>(s, o.d);
  const uint16_t* a = lane<uint16_t>(s, o.a);
  const bool relu = (o.imm & convert_relu) != 0;
  const auto half_of_element = [&](uint32_t x) {
    return uint32_t{without_negative(narrowed<half>(from_short<T>(x), round_nearest).bits, relu)};
  };
  for (uint32_t l = 0; l < warp_lanes; ++l)
    if (s.active >> l & 1)
      d[l] =
        half_of_element(static_cast<uint32_t>(a[l]) >> short_step<T>) << 16 | half_of_element(a[l]);
}

inline uint16_t two_scales(float high, float low, const operation& o) {
  const bool up = o.mode == round_up;
  const bool finite = (o.imm & convert_saturate) != 0;
  return static_cast<uint16_t>(to_scale(high, up, finite) << 8 | to_scale(low, up, finite));
}

void floats_to_scales(lane_state& s, const operation& o) {
  uint16_t* d = lane<uint16_t>(s, o.d);
  const float* a = lane<float>(s, o.a);
  const float* b = lane<float>(s, o.b);
  for (uint32_t l = 0; l < warp_lanes; ++l)
    if (s.active >> l & 1)
      d[l] = two_scales(a[l], b[l], o);
}

void bfloats_to_scales(lane_state& s, const operation& o) {
  uint16_t* d = lane<uint16_t>(s, o.d);
  const uint32_t* a = lane<uint32_t>(s, o.a);
  for (uint32_t l = 0; l < warp_lanes; ++l)
    if (s.active >> l & 1)
      d[l] = two_scales(from_bits(a[l] & 0xffff0000), from_bits(a[l] << 16), o);
}

void scales_to_bfloats(lane_state& s, const operation& o) {
  uint32_t* d = lane<uint32_t>(s, o.d);
  const uint16_t* a = lane<uint16_t>(s, o.a);
  const auto bfloat_of = [](uint32_t x) { return x == 255 ? 0x7fffU : x == 0 ? 0x0040U : x << 7; };
  for (uint32_t l = 0; l < warp_lanes; ++l)
    if (s.active >> l & 1)
      d[l] = bfloat_of(static_cast<uint32_t>(a[l]) >> 8) << 16 | bfloat_of(a[l] & 255U);
}

#define ROW(D, DNAME)                                                                              \
  {DNAME ".u8", convert<D, uint8_t>}, {DNAME ".s8", convert<D, int8_t>},                           \
    {DNAME ".u16", convert<D, uint16_t>}, {DNAME ".s16", convert<D, int16_t>},                     \
    {DNAME ".u32", convert<D, uint32_t>}, {DNAME ".s32", convert<D, int32_t>},                     \
    {DNAME ".f16", convert<D, half>}, {DNAME ".bf16", convert<D, bfloat>},                         \
    {DNAME ".f32", convert<D, float>}, {                                                           \
    DNAME ".f64", convert<D, double>                                                               \
  }
#define WIDE(D, DNAME)                                                                             \
  {DNAME ".u64", convert<D, uint64_t>}, {                                                          \
    DNAME ".s64", convert<D, int64_t>                                                              \
  }

} // namespace

extern const convert_entry convert_entries[];
extern const size_t convert_size;
extern const handler convert_pairs[4];

const convert_entry convert_entries[] = {
  ROW(uint8_t, "u8"),
  WIDE(uint8_t, "u8"),
  ROW(int8_t, "s8"),
  WIDE(int8_t, "s8"),
  ROW(uint16_t, "u16"),
  WIDE(uint16_t, "u16"),
  ROW(int16_t, "s16"),
  WIDE(int16_t, "s16"),
  ROW(uint32_t, "u32"),
  WIDE(uint32_t, "u32"),
  ROW(int32_t, "s32"),
  WIDE(int32_t, "s32"),
  ROW(uint64_t, "u64"),
  WIDE(uint64_t, "u64"),
  ROW(int64_t, "s64"),
  WIDE(int64_t, "s64"),
  ROW(float, "f32"),
  WIDE(float, "f32"),
  ROW(double, "f64"),
  WIDE(double, "f64"),
  ROW(half, "f16"),
  WIDE(half, "f16"),
  ROW(bfloat, "bf16"),
  WIDE(bfloat, "bf16"),
  {"tf32.f32", to_tf32},
  {"f16x2.e4m3x2", float8_to_halves<e4m3>},
  {"f16x2.e5m2x2", float8_to_halves<e5m2>},
  {"e4m3x2.f16x2", halves_to_short<e4m3>},
  {"e5m2x2.f16x2", halves_to_short<e5m2>},
  {"e4m3x2.f32", floats_to_short<e4m3>},
  {"e5m2x2.f32", floats_to_short<e5m2>},
  {"e2m1x2.f32", floats_to_short<e2m1>},
  {"e2m3x2.f32", floats_to_short<e2m3>},
  {"e3m2x2.f32", floats_to_short<e3m2>},
  {"f16x2.e2m1x2", short_to_halves<e2m1>},
  {"f16x2.e2m3x2", short_to_halves<e2m3>},
  {"f16x2.e3m2x2", short_to_halves<e3m2>},
  {"ue8m0x2.f32", floats_to_scales},
  {"ue8m0x2.bf16x2", bfloats_to_scales},
  {"bf16x2.ue8m0x2", scales_to_bfloats},
};
const size_t convert_size = sizeof convert_entries / sizeof convert_entries[0];

const handler convert_pairs[4] = {convert_two<half, round_nearest>, convert_two<half, round_zero>,
  convert_two<bfloat, round_nearest>, convert_two<bfloat, round_zero>};

} // namespace gristmill::ptx::GRISTMILL_PTX_LANES
