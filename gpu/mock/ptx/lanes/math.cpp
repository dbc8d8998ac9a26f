#include "gpu/mock/ptx/lanes/floats.hpp"
#include "gpu/mock/ptx/lanes/tables.hpp"

/// Functions of one or two numbers, from the mathematical library of the host: the approximate
/// instructions, and what front ends without a device library leave as calls.
namespace gristmill::ptx::GRISTMILL_PTX_LANES {
namespace {

template <class T>
constexpr T pi = static_cast<T>(3.14159265358979323846);

template <subnormals S, class F>
struct approximate {
  static float of(float a) { return output<S, range::full>(F::of(input<S>(a))); }
};

template <class F>
struct settle {
  template <class... Args>
  static auto of(Args... args) {
    return settled(F::of(args...));
  }
};

#define FUNCTION(NAME, SINGLE, DOUBLE)                                                             \
  struct NAME {                                                                                    \
    static float of(float x) { return SINGLE; }                                                    \
    static double of(double x) { return DOUBLE; }                                                  \
  };
#define FUNCTION_OF_TWO(NAME, SINGLE, DOUBLE)                                                      \
  struct NAME {                                                                                    \
    static float of(float x, float y) { return SINGLE; }                                           \
    static double of(double x, double y) { return DOUBLE; }                                        \
  };

FUNCTION(exp, __builtin_expf(x), __builtin_exp(x))
FUNCTION(exp2, __builtin_exp2f(x), __builtin_exp2(x))
FUNCTION(
  exp10, static_cast<float>(__builtin_pow(10.0, static_cast<double>(x))), __builtin_pow(10.0, x))
FUNCTION(expm1, __builtin_expm1f(x), __builtin_expm1(x))
FUNCTION(log, __builtin_logf(x), __builtin_log(x))
FUNCTION(log2, __builtin_log2f(x), __builtin_log2(x))
FUNCTION(log10, __builtin_log10f(x), __builtin_log10(x))
FUNCTION(log1p, __builtin_log1pf(x), __builtin_log1p(x))
FUNCTION(root, __builtin_sqrtf(x), __builtin_sqrt(x))
FUNCTION(
  rsqrt, static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(x))), 1.0 / __builtin_sqrt(x))
FUNCTION(cbrt, __builtin_cbrtf(x), __builtin_cbrt(x))
FUNCTION(
  rcbrt, static_cast<float>(1.0 / __builtin_cbrt(static_cast<double>(x))), 1.0 / __builtin_cbrt(x))
FUNCTION(sin, __builtin_sinf(x), __builtin_sin(x))
FUNCTION(cos, __builtin_cosf(x), __builtin_cos(x))
FUNCTION(tan, __builtin_tanf(x), __builtin_tan(x))
FUNCTION(asin, __builtin_asinf(x), __builtin_asin(x))
FUNCTION(acos, __builtin_acosf(x), __builtin_acos(x))
FUNCTION(atan, __builtin_atanf(x), __builtin_atan(x))
FUNCTION(sinh, __builtin_sinhf(x), __builtin_sinh(x))
FUNCTION(cosh, __builtin_coshf(x), __builtin_cosh(x))
FUNCTION(tanh, __builtin_tanhf(x), __builtin_tanh(x))
FUNCTION(asinh, __builtin_asinhf(x), __builtin_asinh(x))
FUNCTION(acosh, __builtin_acoshf(x), __builtin_acosh(x))
FUNCTION(atanh, __builtin_atanhf(x), __builtin_atanh(x))
FUNCTION(erf, __builtin_erff(x), __builtin_erf(x))
FUNCTION(erfc, __builtin_erfcf(x), __builtin_erfc(x))
FUNCTION(tgamma, __builtin_tgammaf(x), __builtin_tgamma(x))
FUNCTION(fabs, __builtin_fabsf(x), __builtin_fabs(x))
FUNCTION(floor, __builtin_floorf(x), __builtin_floor(x))
FUNCTION(ceil, __builtin_ceilf(x), __builtin_ceil(x))
FUNCTION(trunc, __builtin_truncf(x), __builtin_trunc(x))
FUNCTION(round, __builtin_roundf(x), __builtin_round(x))
FUNCTION(rint, __builtin_rintf(x), __builtin_rint(x))
FUNCTION(sinpi, static_cast<float>(__builtin_sin(pi<double>* static_cast<double>(x))),
  __builtin_sin(pi<double>* x))
FUNCTION(cospi, static_cast<float>(__builtin_cos(pi<double>* static_cast<double>(x))),
  __builtin_cos(pi<double>* x))
FUNCTION(normcdf,
  static_cast<float>(0.5 * __builtin_erfc(-static_cast<double>(x) * 0.70710678118654752440)),
  0.5 * __builtin_erfc(-x * 0.70710678118654752440))
FUNCTION_OF_TWO(pow, __builtin_powf(x, y), __builtin_pow(x, y))
FUNCTION_OF_TWO(atan2, __builtin_atan2f(x, y), __builtin_atan2(x, y))
FUNCTION_OF_TWO(fmod, __builtin_fmodf(x, y), __builtin_fmod(x, y))
FUNCTION_OF_TWO(remainder, __builtin_remainderf(x, y), __builtin_remainder(x, y))
FUNCTION_OF_TWO(hypot, __builtin_hypotf(x, y), __builtin_hypot(x, y))
FUNCTION_OF_TWO(fdim, __builtin_fdimf(x, y), __builtin_fdim(x, y))
FUNCTION_OF_TWO(fmax, larger(x, y), larger(x, y))
FUNCTION_OF_TWO(fmin, smaller(x, y), smaller(x, y))
FUNCTION_OF_TWO(copysign, __builtin_copysignf(x, y), __builtin_copysign(x, y))

struct ldexp {
  static float of(float x, int32_t n) { return __builtin_ldexpf(x, n); }
  static double of(double x, int32_t n) { return __builtin_ldexp(x, n); }
};
struct fma_call {
  static float of(float x, float y, float z) { return fused(x, y, z); }
  static double of(double x, double y, double z) { return fused(x, y, z); }
};

enum class property { finite, infinite, number, not_a_number, normal, subnormal };
template <property P>
struct has {
  template <class T>
  static bool of(T x) {
    switch (P) {
    case property::finite:
      return __builtin_isfinite(x);
    case property::infinite:
      return x == x && !__builtin_isfinite(x);
    case property::number:
      return x == x;
    case property::not_a_number:
      return x != x;
    case property::normal:
      return __builtin_isnormal(x) || x == 0; // So PTX says of zero.
    case property::subnormal:
      return __builtin_isfinite(x) && !__builtin_isnormal(x) && x != 0;
    }
    return false;
  }
};

/// The result is the predicate p.
template <class T, property P>
void testp(lane_state& s, const operation& o) {
  const T* a = lane<T>(s, o.a);
  uint32_t mask = 0;
  for (uint32_t l = 0; l < warp_lanes; ++l)
    mask |= static_cast<uint32_t>(has<P>::of(a[l])) << l;
  s.predicates[o.p] = (s.predicates[o.p] & ~s.active) | (mask & s.active);
}

constexpr auto sfu = category::sfu;

#define APPROXIMATE(NAME, F)                                                                       \
  lane_entry{                                                                                      \
    NAME ".f32", unary<float, float, approximate<subnormals::kept, F>>, sfu, 4, {4}, 'f', 1},      \
    lane_entry {                                                                                   \
    NAME ".ftz.f32", unary<float, float, approximate<subnormals::flushed, F>>, sfu, 4, {4}, 'f', 1 \
  }
#define CALL(NAME, F)                                                                              \
  lane_entry{"call." NAME "f", unary<float, float, settle<F>>, sfu, 4, {4}, 'f', 1}, lane_entry {  \
    "call." NAME, unary<double, double, settle<F>>, sfu, 8, {8}, 'd', 1                            \
  }
#define CALL_OF_TWO(NAME, F)                                                                       \
  lane_entry{"call." NAME "f", binary<float, float, float, settle<F>>, sfu, 4, {4, 4}, 'f', 1},    \
    lane_entry {                                                                                   \
    "call." NAME, binary<double, double, double, settle<F>>, sfu, 8, {8, 8}, 'd', 1                \
  }
#define TESTP(NAME, P)                                                                             \
  lane_entry{"testp." NAME ".f32", testp<float, P>, category::fp32, 0, {4}, 'f', 0}, lane_entry {  \
    "testp." NAME ".f64", testp<double, P>, category::fp64, 0, {8}, 'd', 0                         \
  }

const lane_entry entries[] = {
  APPROXIMATE("ex2", exp2),
  APPROXIMATE("lg2", log2),
  APPROXIMATE("sin", sin),
  APPROXIMATE("cos", cos),
  APPROXIMATE("tanh", tanh),
  CALL("exp", exp),
  CALL("exp2", exp2),
  CALL("exp10", exp10),
  CALL("expm1", expm1),
  CALL("log", log),
  CALL("log2", log2),
  CALL("log10", log10),
  CALL("log1p", log1p),
  CALL("sqrt", root),
  CALL("rsqrt", rsqrt),
  CALL("cbrt", cbrt),
  CALL("rcbrt", rcbrt),
  CALL("sin", sin),
  CALL("cos", cos),
  CALL("tan", tan),
  CALL("asin", asin),
  CALL("acos", acos),
  CALL("atan", atan),
  CALL("sinh", sinh),
  CALL("cosh", cosh),
  CALL("tanh", tanh),
  CALL("asinh", asinh),
  CALL("acosh", acosh),
  CALL("atanh", atanh),
  CALL("erf", erf),
  CALL("erfc", erfc),
  CALL("tgamma", tgamma),
  CALL("fabs", fabs),
  CALL("floor", floor),
  CALL("ceil", ceil),
  CALL("trunc", trunc),
  CALL("round", round),
  CALL("rint", rint),
  CALL("nearbyint", rint),
  CALL("sinpi", sinpi),
  CALL("cospi", cospi),
  CALL("normcdf", normcdf),
  CALL_OF_TWO("pow", pow),
  CALL_OF_TWO("atan2", atan2),
  CALL_OF_TWO("fmod", fmod),
  CALL_OF_TWO("remainder", remainder),
  CALL_OF_TWO("hypot", hypot),
  CALL_OF_TWO("fdim", fdim),
  CALL_OF_TWO("fmax", fmax),
  CALL_OF_TWO("fmin", fmin),
  CALL_OF_TWO("copysign", copysign),
  {"call.ldexpf", binary<float, float, int32_t, settle<ldexp>>, sfu, 4, {4, 4}, 'f', 1},
  {"call.ldexp", binary<double, double, int32_t, settle<ldexp>>, sfu, 8, {8, 4}, 'd', 1},
  {"call.fmaf", ternary<float, float, float, float, settle<fma_call>>, category::fp32, 4, {4, 4, 4},
    'f', 2},
  {"call.fma", ternary<double, double, double, double, settle<fma_call>>, category::fp64, 8,
    {8, 8, 8}, 'd', 2},
  TESTP("finite", property::finite),
  TESTP("infinite", property::infinite),
  TESTP("number", property::number),
  TESTP("notanumber", property::not_a_number),
  TESTP("normal", property::normal),
  TESTP("subnormal", property::subnormal),
};

} // namespace

const lane_entries math_entries{entries, sizeof entries / sizeof entries[0]};

} // namespace gristmill::ptx::GRISTMILL_PTX_LANES
