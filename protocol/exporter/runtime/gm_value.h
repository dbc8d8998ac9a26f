// Part of a solution that gristmill exported: the numbers of a launch plan, as the plan's own
// rules compute them. 64-bit integers are checked, and nothing is rounded or cut silently.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <stdexcept>
#include <string>

namespace gm {

[[noreturn]] inline void refuse(const std::string& why) {
  throw std::runtime_error("launch plan: " + why);
}

enum class kind : uint8_t { integer, real, flag, type };

struct value {
  kind what = kind::integer;
  int64_t i = 0;
  double d = 0;
  bool b = false;
  const char* t = "";
};

inline value integer(int64_t x) {
  value out;
  out.i = x;
  return out;
}

inline value real(double x) {
  value out;
  out.what = kind::real;
  out.d = x;
  return out;
}

inline value flag(bool x) {
  value out;
  out.what = kind::flag;
  out.b = x;
  return out;
}

inline value type(const char* x) {
  value out;
  out.what = kind::type;
  out.t = x;
  return out;
}

inline int64_t to_int(const value& x) {
  if (x.what != kind::integer)
    refuse("an integer is needed here");
  return x.i;
}

inline bool to_flag(const value& x) {
  if (x.what != kind::flag)
    refuse("a bool is needed here");
  return x.b;
}

inline double to_real(const value& x) {
  if (x.what == kind::integer)
    return static_cast<double>(x.i);
  if (x.what != kind::real)
    refuse("a number is needed here");
  return x.d;
}

inline value finite(double x, const char* operation) {
  if (!std::isfinite(x))
    refuse(std::string("`") + operation + "` does not give a finite number");
  return real(x);
}

[[noreturn]] inline void overflowed(const char* operation) {
  refuse(std::string("`") + operation + "` overflows 64-bit integers");
}

inline bool both_integers(const value& a, const value& b) {
  return a.what == kind::integer && b.what == kind::integer;
}

inline value add(const value& a, const value& b) {
  int64_t out = 0;
  if (!both_integers(a, b))
    return finite(to_real(a) + to_real(b), "+");
  if (__builtin_add_overflow(a.i, b.i, &out))
    overflowed("+");
  return integer(out);
}

inline value subtract(const value& a, const value& b) {
  int64_t out = 0;
  if (!both_integers(a, b))
    return finite(to_real(a) - to_real(b), "-");
  if (__builtin_sub_overflow(a.i, b.i, &out))
    overflowed("-");
  return integer(out);
}

inline value multiply(const value& a, const value& b) {
  int64_t out = 0;
  if (!both_integers(a, b))
    return finite(to_real(a) * to_real(b), "*");
  if (__builtin_mul_overflow(a.i, b.i, &out))
    overflowed("*");
  return integer(out);
}

inline int64_t floor_quotient(int64_t a, int64_t b) {
  if (b == 0)
    refuse("division by zero");
  if (b == -1) {
    if (a == std::numeric_limits<int64_t>::min())
      overflowed("//");
    return -a;
  }
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

inline double floor_rest(double a, double b) {
  if (b == 0)
    refuse("division by zero");
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/// `/`: of integers it must come out even.
inline value divide(const value& a, const value& b) {
  if (!both_integers(a, b)) {
    if (to_real(b) == 0)
      refuse("division by zero");
    return finite(to_real(a) / to_real(b), "/");
  }
  if (b.i == 0)
    refuse("division by zero");
  if (b.i == -1)
    return integer(floor_quotient(a.i, b.i));
  if (a.i % b.i != 0)
    refuse(std::to_string(a.i) + " / " + std::to_string(b.i) + " is not an integer");
  return integer(a.i / b.i);
}

/// `/` of an expression axis: a float, as in Python.
inline value axis_divide(const value& a, const value& b) {
  if (to_real(b) == 0)
    refuse("division by zero");
  return finite(to_real(a) / to_real(b), "/");
}

inline value floor_divide(const value& a, const value& b) {
  if (both_integers(a, b))
    return integer(floor_quotient(a.i, b.i));
  const double x = to_real(a);
  const double y = to_real(b);
  return finite(std::round((x - floor_rest(x, y)) / y), "//");
}

inline value modulo(const value& a, const value& b) {
  if (!both_integers(a, b))
    return finite(floor_rest(to_real(a), to_real(b)), "%");
  if (b.i == 0)
    refuse("division by zero");
  if (b.i == -1)
    return integer(0);
  const int64_t rest = a.i % b.i; // The quotient times b.i may be beyond 64 bits.
  return integer(rest != 0 && (rest < 0) != (b.i < 0) ? rest + b.i : rest);
}

inline value whole_power(int64_t base, int64_t exponent) {
  if (base == 0 || base == 1)
    return integer(exponent == 0 ? 1 : base);
  if (base == -1)
    return integer(exponent % 2 == 0 ? 1 : -1);
  int64_t out = 1;
  for (int64_t n = 0; n < exponent; ++n)
    if (__builtin_mul_overflow(out, base, &out))
      overflowed("**");
  return integer(out);
}

inline value power(const value& a, const value& b) {
  if (!both_integers(a, b))
    return finite(std::pow(to_real(a), to_real(b)), "**");
  if (b.i < 0)
    refuse("an integer to a negative power");
  return whole_power(a.i, b.i);
}

/// `**` of an expression axis: a negative exponent gives a float.
inline value axis_power(const value& a, const value& b) {
  if (!both_integers(a, b) || b.i >= 0)
    return power(a, b);
  if (a.i == 0)
    refuse("zero to a negative power");
  return finite(std::pow(to_real(a), to_real(b)), "**");
}

/// An axis takes a float only if it is whole.
inline int64_t to_axis(const value& x) {
  if (x.what != kind::real)
    return to_int(x);
  if (std::trunc(x.d) != x.d || !(x.d >= -0x1p63 && x.d < 0x1p63))
    refuse("an expression axis does not give an integer");
  return static_cast<int64_t>(x.d);
}

inline value negate(const value& a) {
  if (a.what != kind::integer)
    return real(-to_real(a));
  if (a.i == std::numeric_limits<int64_t>::min())
    overflowed("-");
  return integer(-a.i);
}

inline value plus(const value& a) {
  if (a.what != kind::integer && a.what != kind::real)
    refuse("`+` takes a number");
  return a;
}

inline bool is_number(const value& a) {
  return a.what == kind::integer || a.what == kind::real;
}

inline bool equal(const value& a, const value& b) {
  if (is_number(a) && is_number(b))
    return both_integers(a, b) ? a.i == b.i : to_real(a) == to_real(b);
  if (a.what != b.what)
    refuse("values of two kinds are compared");
  return a.what == kind::flag ? a.b == b.b : std::strcmp(a.t, b.t) == 0;
}

inline bool less(const value& a, const value& b) {
  return both_integers(a, b) ? a.i < b.i : to_real(a) < to_real(b);
}

inline bool less_equal(const value& a, const value& b) {
  return both_integers(a, b) ? a.i <= b.i : to_real(a) <= to_real(b);
}

inline bool all_integers(std::initializer_list<value> list) {
  for (const value& x : list)
    if (x.what != kind::integer)
      return false;
  return true;
}

inline value minimum(std::initializer_list<value> list) {
  value out = *list.begin();
  for (const value& x : list)
    if (less(x, out))
      out = x;
  return all_integers(list) ? out : real(to_real(out));
}

inline value maximum(std::initializer_list<value> list) {
  value out = *list.begin();
  for (const value& x : list)
    if (less(out, x))
      out = x;
  return all_integers(list) ? out : real(to_real(out));
}

inline value clamp(const value& x, const value& low, const value& high) {
  if (less(high, low))
    refuse("`clamp` with a lower limit above the upper one");
  const value out = less(x, low) ? low : less(high, x) ? high : x;
  return all_integers({x, low, high}) ? out : real(to_real(out));
}

inline value absolute(const value& a) {
  if (a.what != kind::integer)
    return real(std::fabs(to_real(a)));
  return a.i < 0 ? negate(a) : a;
}

inline value ceil_div(const value& a, const value& b) {
  const int64_t by = to_int(b);
  if (by <= 0)
    refuse("`ceil_div` takes a positive divisor");
  const int64_t below = floor_quotient(to_int(a), by);
  return integer(to_int(a) % by == 0 ? below : below + 1);
}

inline value align_up(const value& a, const value& b) {
  return multiply(ceil_div(a, b), b);
}

inline value next_pow2(const value& a) {
  const int64_t x = to_int(a);
  if (x > int64_t{1} << 62)
    overflowed("next_pow2");
  int64_t out = 1;
  while (out < x)
    out *= 2;
  return integer(out);
}

inline value ilog2(const value& a) {
  int64_t x = to_int(a);
  if (x < 1)
    refuse("`ilog2` of a number below 1");
  int64_t out = 0;
  while (x > 1) {
    x /= 2;
    ++out;
  }
  return integer(out);
}

inline value as_int(const value& a) {
  if (a.what == kind::flag)
    return integer(a.b ? 1 : 0);
  if (a.what == kind::integer)
    return a;
  const double whole = std::trunc(to_real(a));
  if (!(whole >= -0x1p63 && whole < 0x1p63))
    overflowed("int");
  return integer(static_cast<int64_t>(whole));
}

inline value as_real(const value& a) {
  return real(to_real(a));
}

inline value square_root(const value& a) {
  return finite(std::sqrt(to_real(a)), "sqrt");
}

inline value reciprocal_root(const value& a) {
  return finite(1 / std::sqrt(to_real(a)), "rsqrt");
}

inline value exp2_of(const value& a) {
  return finite(std::exp2(to_real(a)), "exp2");
}

inline value log2_of(const value& a) {
  return finite(std::log2(to_real(a)), "log2");
}

/// Whether a define has the value that a unit was compiled with; floats as the compiler saw them.
inline bool same_define(const value& now, const value& compiled) {
  if (now.what != compiled.what)
    return false;
  if (now.what == kind::real)
    return static_cast<float>(now.d) == static_cast<float>(compiled.d);
  return equal(now, compiled);
}

inline std::string text_of(const value& x) {
  switch (x.what) {
  case kind::integer:
    return std::to_string(x.i);
  case kind::real:
    return std::to_string(x.d);
  case kind::flag:
    return x.b ? "true" : "false";
  case kind::type:
    break;
  }
  return x.t;
}

// ---- parameters of kernels: the bytes of a number, checked against the type's range

/// Bits of the nearest IEEE half; ties to even, beyond the range infinity.
inline uint16_t half_bits(float x) {
  uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u)
    return static_cast<uint16_t>(sign | 0x7e00u);
  if (rest >= 0x477ff000u) // 65520 and more
    return static_cast<uint16_t>(sign | 0x7c00u);
  if (rest >= 0x38800000u) { // normal
    const uint32_t odd = (rest >> 13) & 1u;
    return static_cast<uint16_t>(sign | ((rest - 0x38000000u + 0xfffu + odd) >> 13));
  }
  float magnitude = 0;
  std::memcpy(&magnitude, &rest, sizeof magnitude);
  // Below 2^-14 halves are whole multiples of 2^-24, and nearbyint rounds ties to even.
  return static_cast<uint16_t>(
    sign | static_cast<uint32_t>(std::nearbyint(static_cast<double>(magnitude) * 0x1p24)));
}

/// Bits of the nearest bfloat16; ties to even.
inline uint16_t bfloat16_bits(float x) {
  uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

template <class T>
T checked_integer(const value& x, const char* name) {
  const int64_t whole = to_int(x);
  const bool fits = std::numeric_limits<T>::is_signed
    ? whole >= static_cast<int64_t>(std::numeric_limits<T>::min())
      && whole <= static_cast<int64_t>(std::numeric_limits<T>::max())
    : whole >= 0 && static_cast<uint64_t>(whole) <= static_cast<uint64_t>(std::numeric_limits<T>::max());
  if (!fits)
    refuse(std::to_string(whole) + " does not fit into " + name);
  return static_cast<T>(whole);
}

inline float checked_float(const value& x) {
  const double wide = to_real(x);
  const float out = static_cast<float>(wide);
  if (std::isfinite(wide) && !std::isfinite(out))
    refuse(std::to_string(wide) + " is out of the range of float");
  return out;
}

inline uint16_t checked_half(const value& x) {
  const uint16_t bits = half_bits(checked_float(x));
  if (std::isfinite(to_real(x)) && (bits & 0x7c00u) == 0x7c00u)
    refuse(std::to_string(to_real(x)) + " is out of the range of __half");
  return bits;
}

inline uint16_t checked_bfloat16(const value& x) {
  const uint16_t bits = bfloat16_bits(checked_float(x));
  if (std::isfinite(to_real(x)) && (bits & 0x7f80u) == 0x7f80u)
    refuse(std::to_string(to_real(x)) + " is out of the range of __nv_bfloat16");
  return bits;
}

} // namespace gm
