// The few parts of <type_traits>, <limits> and <utility> that device templates use.
#pragma once
#include "types.h"

#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define FLT_DIG 6
#define FLT_MANT_DIG 24
#define DBL_MAX 1.7976931348623157e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
#define CHAR_BIT 8
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define SHRT_MIN (-32768)
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MIN (-2147483647 - 1)
#define INT_MAX 2147483647
#define UINT_MAX 4294967295u
#define LONG_MIN (-9223372036854775807L - 1)
#define LONG_MAX 9223372036854775807L
#define ULONG_MAX 18446744073709551615UL
#define LLONG_MIN (-9223372036854775807LL - 1)
#define LLONG_MAX 9223372036854775807LL
#define ULLONG_MAX 18446744073709551615ULL
#define INT8_MIN SCHAR_MIN
#define INT8_MAX SCHAR_MAX
#define UINT8_MAX UCHAR_MAX
#define INT16_MIN SHRT_MIN
#define INT16_MAX SHRT_MAX
#define UINT16_MAX USHRT_MAX
#define INT32_MIN INT_MIN
#define INT32_MAX INT_MAX
#define UINT32_MAX UINT_MAX
#define INT64_MIN LONG_MIN
#define INT64_MAX LONG_MAX
#define UINT64_MAX ULONG_MAX
#define SIZE_MAX ULONG_MAX

namespace std {
using ::int16_t;
using ::int32_t;
using ::int64_t;
using ::int8_t;
using ::intptr_t;
using ::ptrdiff_t;
using ::size_t;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::uint8_t;
using ::uintptr_t;

template <class T, T v>
struct integral_constant {
  static constexpr T value = v;
  typedef T value_type;
  __device__ constexpr operator T() const { return v; }
};
template <bool b>
using bool_constant = integral_constant<bool, b>;
typedef bool_constant<true> true_type;
typedef bool_constant<false> false_type;
template <class A, class B>
struct is_same : false_type {};
template <class A>
struct is_same<A, A> : true_type {};
template <class A, class B>
inline constexpr bool is_same_v = is_same<A, B>::value;
template <bool b, class A, class B>
struct conditional {
  typedef A type;
};
template <class A, class B>
struct conditional<false, A, B> {
  typedef B type;
};
template <bool b, class A, class B>
using conditional_t = typename conditional<b, A, B>::type;
template <bool b, class T = void>
struct enable_if {};
template <class T>
struct enable_if<true, T> {
  typedef T type;
};
template <bool b, class T = void>
using enable_if_t = typename enable_if<b, T>::type;
template <class T>
struct remove_const {
  typedef T type;
};
template <class T>
struct remove_const<const T> {
  typedef T type;
};
template <class T>
struct remove_reference {
  typedef T type;
};
template <class T>
struct remove_reference<T&> {
  typedef T type;
};
template <class T>
struct remove_reference<T&&> {
  typedef T type;
};
template <class T>
using remove_const_t = typename remove_const<T>::type;
template <class T>
using remove_reference_t = typename remove_reference<T>::type;
template <class T>
using remove_cv_t = __remove_cv(T);
template <class T>
using decay_t = __decay(T);
template <class T>
inline constexpr bool is_integral_v = __is_integral(T);
template <class T>
inline constexpr bool is_floating_point_v = __is_floating_point(T);
template <class T>
inline constexpr bool is_signed_v = __is_signed(T);
template <class T>
inline constexpr bool is_unsigned_v = __is_unsigned(T);
template <class T>
inline constexpr bool is_pointer_v = __is_pointer(T);
template <class T>
inline constexpr bool is_const_v = __is_const(T);
template <class T>
struct is_integral : bool_constant<__is_integral(T)> {};
template <class T>
struct is_floating_point : bool_constant<__is_floating_point(T)> {};
template <class...>
using void_t = void;
template <class T>
__device__ constexpr remove_reference_t<T>&& move(T&& x) {
  return static_cast<remove_reference_t<T>&&>(x);
}
template <class T>
__device__ constexpr T&& forward(remove_reference_t<T>& x) {
  return static_cast<T&&>(x);
}
template <class T>
__device__ void swap(T& a, T& b) {
  T c = a;
  a = b;
  b = c;
}

template <class T>
struct numeric_limits;
#define GM_LIMITS(T, LOWEST, SMALLEST, LARGEST)                                                    \
  template <>                                                                                      \
  struct numeric_limits<T> {                                                                       \
    enum { is_specialized = true };                                                                \
    __device__ static constexpr T lowest() { return LOWEST; }                                      \
    __device__ static constexpr T min() { return SMALLEST; }                                       \
    __device__ static constexpr T max() { return LARGEST; }                                        \
    __device__ static constexpr T infinity() { return static_cast<T>(__builtin_inff()); }          \
    __device__ static constexpr T quiet_NaN() { return static_cast<T>(__builtin_nanf("")); }       \
    __device__ static constexpr T epsilon() {                                                      \
      return static_cast<T>(sizeof(T) == 4 ? FLT_EPSILON : DBL_EPSILON);                           \
    }                                                                                              \
  };
#define GM_INTEGER_LIMITS(T, LOWEST, LARGEST)                                                      \
  template <>                                                                                      \
  struct numeric_limits<T> {                                                                       \
    enum { is_specialized = true };                                                                \
    __device__ static constexpr T lowest() { return LOWEST; }                                      \
    __device__ static constexpr T min() { return LOWEST; }                                         \
    __device__ static constexpr T max() { return LARGEST; }                                        \
  };
GM_LIMITS(float, -FLT_MAX, FLT_MIN, FLT_MAX)
GM_LIMITS(double, -DBL_MAX, DBL_MIN, DBL_MAX)
GM_INTEGER_LIMITS(signed char, SCHAR_MIN, SCHAR_MAX)
GM_INTEGER_LIMITS(unsigned char, 0, UCHAR_MAX)
GM_INTEGER_LIMITS(short, SHRT_MIN, SHRT_MAX)
GM_INTEGER_LIMITS(unsigned short, 0, USHRT_MAX)
GM_INTEGER_LIMITS(int, INT_MIN, INT_MAX)
GM_INTEGER_LIMITS(unsigned, 0, UINT_MAX)
GM_INTEGER_LIMITS(long, LONG_MIN, LONG_MAX)
GM_INTEGER_LIMITS(unsigned long, 0, ULONG_MAX)
GM_INTEGER_LIMITS(long long, LLONG_MIN, LLONG_MAX)
GM_INTEGER_LIMITS(unsigned long long, 0, ULLONG_MAX)
#undef GM_LIMITS
#undef GM_INTEGER_LIMITS
} // namespace std
