// The rarer functions of <math.h> and of CUDA's list: scaling and parts of a number, whole turns,
// norms, the normal distribution, the gamma function. The float forms of the long ones are computed
// in double.
#pragma once
#include "integer.h"
#include "math.h"

#define GM_CALL_1(NAME)                                                                            \
  extern "C" __device__ float gm_call_##NAME##f(float) __asm__(#NAME "f");                         \
  extern "C" __device__ double gm_call_##NAME(double) __asm__(#NAME);                              \
  GM_DEVICE float NAME##f(float x) { return gm_call_##NAME##f(x); }                                \
  GM_DEVICE float NAME(float x) { return gm_call_##NAME##f(x); }                                   \
  GM_DEVICE double NAME(double x) { return gm_call_##NAME(x); }
GM_CALL_1(rcbrt)
#undef GM_CALL_1

// Both precisions of a function whose double form is called gm_NAME.
#define GM_FROM_DOUBLE(NAME)                                                                       \
  GM_DEVICE double NAME(double x) { return gm_##NAME(x); }                                         \
  GM_DEVICE float NAME(float x) { return static_cast<float>(gm_##NAME(static_cast<double>(x))); }  \
  GM_DEVICE float NAME##f(float x) { return NAME(x); }

// The turns go off first, exactly.
GM_DEVICE double gm_sinpi(double x) {
  double r = x - 2 * __builtin_rint(x * 0.5);
  return r == 0              ? __builtin_copysign(0.0, x)
    : __builtin_fabs(r) == 1 ? __builtin_copysign(0.0, x)
                             : sin(3.14159265358979323846
                               * (r > 0.5     ? 1 - r
                                   : r < -0.5 ? -1 - r
                                              : r));
}
GM_DEVICE double gm_cospi(double x) {
  double r = __builtin_fabs(x - 2 * __builtin_rint(x * 0.5));
  return r == 0.5 ? 0.0 : cos(3.14159265358979323846 * r);
}
GM_FROM_DOUBLE(sinpi)
GM_FROM_DOUBLE(cospi)
GM_DEVICE void sincos(double x, double* s, double* c) {
  *s = sin(x);
  *c = cos(x);
}
GM_DEVICE void sincos(float x, float* s, float* c) { sincosf(x, s, c); }
GM_DEVICE void sincospi(double x, double* s, double* c) {
  *s = sinpi(x);
  *c = cospi(x);
}
GM_DEVICE void sincospif(float x, float* s, float* c) {
  *s = sinpif(x);
  *c = cospif(x);
}
GM_DEVICE void sincospi(float x, float* s, float* c) { sincospif(x, s, c); }
GM_DEVICE float exp10(float x) { return exp10f(x); }

// x times 2^n, rounded once.
GM_DEVICE double gm_power_of_two(int n) {
  return __builtin_bit_cast(double, static_cast<long long>(n + 1023) << 52);
}
GM_DEVICE float ldexpf(float x, int n) {
  return static_cast<float>(static_cast<double>(x) * gm_power_of_two(min(max(n, -400), 400)));
}
GM_DEVICE double ldexp(double x, int n) {
  n = min(max(n, -2200), 2200);
  for (int i = 0; i < 2 && n > 1023; ++i, n -= 1023)
    x *= gm_power_of_two(1023);
  // Down in steps that end above the subnormal numbers, so that only the last one rounds.
  for (int i = 0; i < 2 && n < -969; ++i, n += 969)
    x *= gm_power_of_two(-969);
  return x * gm_power_of_two(min(max(n, -1022), 1023));
}
GM_DEVICE float ldexp(float x, int n) { return ldexpf(x, n); }
GM_DEVICE float scalbnf(float x, int n) { return ldexpf(x, n); }
GM_DEVICE double scalbn(double x, int n) { return ldexp(x, n); }
GM_DEVICE float scalbn(float x, int n) { return ldexpf(x, n); }
GM_DEVICE float scalblnf(float x, long n) {
  return ldexpf(x, static_cast<int>(min(max(n, -5000L), 5000L)));
}
GM_DEVICE double scalbln(double x, long n) {
  return ldexp(x, static_cast<int>(min(max(n, -5000L), 5000L)));
}
// The exponent of x as if it had 1 <= |mantissa| < 2; subnormals are scaled up first.
GM_DEVICE int gm_exponent(double x) {
  bool tiny = __builtin_fabs(x) < 2.2250738585072014e-308;
  double v = tiny ? x * 18014398509481984.0 : x;
  int e = static_cast<int>(__builtin_bit_cast(unsigned long long, v) >> 52 & 2047) - 1023;
  return tiny ? e - 54 : e;
}
GM_DEVICE int ilogb(double x) {
  return x == 0 || x != x                  ? -2147483647 - 1
    : __builtin_fabs(x) == __builtin_inf() ? 2147483647
                                           : gm_exponent(x);
}
GM_DEVICE int ilogb(float x) { return ilogb(static_cast<double>(x)); }
GM_DEVICE int ilogbf(float x) { return ilogb(static_cast<double>(x)); }
GM_DEVICE double gm_logb(double x) {
  return x == 0                           ? -__builtin_inf()
    : __builtin_fabs(x) < __builtin_inf() ? static_cast<double>(gm_exponent(x))
                                          : x * x;
}
GM_FROM_DOUBLE(logb)
GM_DEVICE double frexp(double x, int* exponent) {
  if (x == 0 || !(__builtin_fabs(x) < __builtin_inf())) {
    *exponent = 0;
    return x;
  }
  *exponent = gm_exponent(x) + 1;
  return ldexp(x, -*exponent);
}
GM_DEVICE float frexpf(float x, int* exponent) {
  return static_cast<float>(frexp(static_cast<double>(x), exponent));
}
GM_DEVICE float frexp(float x, int* exponent) { return frexpf(x, exponent); }
GM_DEVICE double modf(double x, double* whole) {
  *whole = __builtin_trunc(x);
  return __builtin_copysign(__builtin_fabs(x) == __builtin_inf() ? 0.0 : x - *whole, x);
}
GM_DEVICE float modff(float x, float* whole) {
  *whole = __builtin_truncf(x);
  return __builtin_copysignf(__builtin_fabsf(x) == __builtin_inff() ? 0.f : x - *whole, x);
}
GM_DEVICE float modf(float x, float* whole) { return modff(x, whole); }
GM_DEVICE float nextafterf(float x, float y) {
  if (x != x || y != y)
    return x + y;
  if (x == y)
    return y;
  int bits = __builtin_bit_cast(int, x);
  if (x == 0)
    return __builtin_copysignf(__builtin_bit_cast(float, 1), y);
  return __builtin_bit_cast(float, (x < y) == (x > 0) ? bits + 1 : bits - 1);
}
GM_DEVICE double nextafter(double x, double y) {
  if (x != x || y != y)
    return x + y;
  if (x == y)
    return y;
  long long bits = __builtin_bit_cast(long long, x);
  if (x == 0)
    return __builtin_copysign(__builtin_bit_cast(double, 1LL), y);
  return __builtin_bit_cast(double, (x < y) == (x > 0) ? bits + 1 : bits - 1);
}
GM_DEVICE float nextafter(float x, float y) { return nextafterf(x, y); }
GM_DEVICE float nanf(const char*) { return __builtin_nanf(""); }
GM_DEVICE double nan(const char*) { return __builtin_nan(""); }

GM_DEVICE double fdim(double a, double b) { return a <= b ? 0 : a - b; }
GM_DEVICE float fdimf(float a, float b) { return a <= b ? 0.f : a - b; }
GM_DEVICE float fdim(float a, float b) { return fdimf(a, b); }
#define GM_TO_WHOLE(NAME, T, ROUND, MODE)                                                          \
  GM_DEVICE T NAME##f(float x) { return __float2##MODE(__builtin_##ROUND##f(x)); }                 \
  GM_DEVICE T NAME(float x) { return __float2##MODE(__builtin_##ROUND##f(x)); }                    \
  GM_DEVICE T NAME(double x) { return __double2##MODE(__builtin_##ROUND(x)); }
GM_TO_WHOLE(lrint, long, rint, ll_rn)
GM_TO_WHOLE(llrint, long long, rint, ll_rn)
GM_TO_WHOLE(lround, long, round, ll_rz)
GM_TO_WHOLE(llround, long long, round, ll_rz)
#undef GM_TO_WHOLE
GM_DEVICE bool signbit(double x) { return __builtin_bit_cast(long long, x) < 0; }
GM_DEVICE bool isnormal(double x) {
  return __builtin_fabs(x) >= 2.2250738585072014e-308 && __builtin_fabs(x) < __builtin_inf();
}
GM_DEVICE bool isnormal(float x) {
  return __builtin_fabsf(x) >= 1.175494351e-38f && __builtin_fabsf(x) < __builtin_inff();
}

// Lengths. The float ones are squared in double, where no float overflows.
GM_DEVICE double norm3d(double a, double b, double c) { return hypot(hypot(a, b), c); }
GM_DEVICE double norm4d(double a, double b, double c, double d) {
  return hypot(hypot(a, b), hypot(c, d));
}
GM_DEVICE double rhypot(double a, double b) { return 1 / hypot(a, b); }
GM_DEVICE double rnorm3d(double a, double b, double c) { return 1 / norm3d(a, b, c); }
GM_DEVICE double rnorm4d(double a, double b, double c, double d) { return 1 / norm4d(a, b, c, d); }
GM_DEVICE double norm(int count, const double* v) {
  double length = 0;
  for (int i = 0; i < count; ++i)
    length = hypot(length, v[i]);
  return length;
}
GM_DEVICE double rnorm(int count, const double* v) { return 1 / norm(count, v); }
GM_DEVICE double gm_squares(float a, float b, float c, float d) {
  double w = a, x = b, y = c, z = d;
  return w * w + x * x + y * y + z * z;
}
GM_DEVICE float norm3df(float a, float b, float c) {
  return static_cast<float>(sqrt(gm_squares(a, b, c, 0)));
}
GM_DEVICE float norm4df(float a, float b, float c, float d) {
  return static_cast<float>(sqrt(gm_squares(a, b, c, d)));
}
GM_DEVICE float rhypotf(float a, float b) {
  return static_cast<float>(rsqrt(gm_squares(a, b, 0, 0)));
}
GM_DEVICE float rhypot(float a, float b) { return rhypotf(a, b); }
GM_DEVICE float rnorm3df(float a, float b, float c) {
  return static_cast<float>(rsqrt(gm_squares(a, b, c, 0)));
}
GM_DEVICE float rnorm4df(float a, float b, float c, float d) {
  return static_cast<float>(rsqrt(gm_squares(a, b, c, d)));
}
GM_DEVICE float normf(int count, const float* v) {
  double squares = 0;
  for (int i = 0; i < count; ++i)
    squares += static_cast<double>(v[i]) * v[i];
  return static_cast<float>(sqrt(squares));
}
GM_DEVICE float rnormf(int count, const float* v) { return 1 / normf(count, v); }

// The inverse of erfc: a start from the logarithm of the tail, then steps of third order.
GM_DEVICE double gm_erfcinv(double x) {
  if (!(x >= 0 && x <= 2))
    return __builtin_nan("");
  if (x == 0 || x == 2)
    return x == 0 ? __builtin_inf() : -__builtin_inf();
  double tail = x > 1 ? 2 - x : x;
  double w = log(tail * (2 - tail));
  double t = 4.330746750799873 + 0.5 * w;
  double y = sqrt(sqrt(t * t - w / 0.147) - t);
  for (int i = 0; i < 4; ++i) {
    double off = (erfc(y) - tail) / (1.1283791670955126 * exp(-y * y));
    y += off / (1 - y * off);
  }
  return x > 1 ? -y : y;
}
GM_DEVICE double gm_erfinv(double x) {
  if (!(__builtin_fabs(x) < 0.5))
    return x > 0 ? gm_erfcinv(1 - x) : -gm_erfcinv(1 + x);
  double y = x * 0.8862269254527580;
  for (int i = 0; i < 4; ++i) {
    double off = (erf(y) - x) / (1.1283791670955126 * exp(-y * y));
    y -= off / (1 + y * off);
  }
  return y;
}
// exp(x^2) erfc(x): far out as a continued fraction, where both factors leave the range.
GM_DEVICE double gm_erfcx(double x) {
  if (x < 6)
    return exp(x * x) * erfc(x);
  double below = x;
  for (int i = 40; i > 0; --i)
    below = x + 0.5 * i / below;
  return 0.56418958354775629 / below;
}
GM_DEVICE double gm_normcdf(double x) { return 0.5 * erfc(x * -0.70710678118654752440); }
GM_DEVICE double gm_normcdfinv(double x) { return -1.4142135623730951 * gm_erfcinv(2 * x); }
GM_FROM_DOUBLE(erfcinv)
GM_FROM_DOUBLE(erfinv)
GM_FROM_DOUBLE(erfcx)
GM_FROM_DOUBLE(normcdfinv)
GM_DEVICE double normcdf(double x) { return gm_normcdf(x); }
GM_DEVICE float normcdf(float x) { return static_cast<float>(gm_normcdf(x)); }
// The logarithm of |gamma|: Stirling's series above 10, the recurrence up to there, reflection
// below 0.
GM_DEVICE double gm_lgamma_above_zero(double x) {
  double product = 1;
  for (; x < 10; x += 1)
    product *= x;
  double s = 1 / x, q = s * s;
  double series = s
    * (1.0 / 12
      + q
        * (-1.0 / 360
          + q * (1.0 / 1260 + q * (-1.0 / 1680 + q * (1.0 / 1188 + q * (-691.0 / 360360))))));
  return (x - 0.5) * log(x) - x + 0.91893853320467274178 + series - log(product);
}
GM_DEVICE double gm_lgamma(double x) {
  if (x != x)
    return x;
  if (__builtin_fabs(x) == __builtin_inf() || (x <= 0 && x == __builtin_floor(x)))
    return __builtin_inf();
  if (x > 0)
    return x == 1 || x == 2 ? 0 : gm_lgamma_above_zero(x);
  return 1.1447298858494002 - log(__builtin_fabs(gm_sinpi(x))) - gm_lgamma_above_zero(1 - x);
}
GM_FROM_DOUBLE(lgamma)
#undef GM_FROM_DOUBLE

// Rounding modes by name for the double operations.
#define GM_ROUNDED_DOUBLE(MODE, NVVM)                                                              \
  GM_DEVICE double __dsub_##MODE(double x, double y) { return __nvvm_add_##NVVM##_d(x, -y); }      \
  GM_DEVICE double __ddiv_##MODE(double x, double y) { return __nvvm_div_##NVVM##_d(x, y); }       \
  GM_DEVICE double __drcp_##MODE(double x) { return __nvvm_rcp_##NVVM##_d(x); }                    \
  GM_DEVICE double __dsqrt_##MODE(double x) { return __nvvm_sqrt_##NVVM##_d(x); }
GM_ROUNDED_DOUBLE(rn, rn)
GM_ROUNDED_DOUBLE(rz, rz)
GM_ROUNDED_DOUBLE(rd, rm)
GM_ROUNDED_DOUBLE(ru, rp)
#undef GM_ROUNDED_DOUBLE
