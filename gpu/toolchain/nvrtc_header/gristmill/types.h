// What traits.h asks of a compiler. NVRTC knows the keywords, the vector types, the geometry and the
// intrinsics by itself.
#pragma once

#include "integer_types.h"

// Questions about types that clang answers itself. Enumerators, because NVRTC would put constants
// into every module.
namespace gm_type {
template <bool b>
struct answer {
  enum : bool { yes = b };
};
template <class T>
struct constant : answer<false> {};
template <class T>
struct constant<const T> : answer<true> {};
template <class T>
struct pointer : answer<false> {};
template <class T>
struct pointer<T*> : answer<true> {};
template <class T>
struct floating : answer<false> {};
template <>
struct floating<float> : answer<true> {};
template <>
struct floating<double> : answer<true> {};
template <class T>
struct signed_integer : answer<false> {};
template <class T>
struct unsigned_integer : answer<false> {};
template <>
struct signed_integer<char> : answer<true> {};
template <>
struct signed_integer<signed char> : answer<true> {};
template <>
struct signed_integer<short> : answer<true> {};
template <>
struct signed_integer<int> : answer<true> {};
template <>
struct signed_integer<long> : answer<true> {};
template <>
struct signed_integer<long long> : answer<true> {};
template <>
struct unsigned_integer<bool> : answer<true> {};
template <>
struct unsigned_integer<unsigned char> : answer<true> {};
template <>
struct unsigned_integer<unsigned short> : answer<true> {};
template <>
struct unsigned_integer<unsigned> : answer<true> {};
template <>
struct unsigned_integer<unsigned long> : answer<true> {};
template <>
struct unsigned_integer<unsigned long long> : answer<true> {};
} // namespace gm_type

#define __is_const(T) bool(gm_type::constant<T>::yes)
#define __is_pointer(T) bool(gm_type::pointer<__remove_cv(T)>::yes)
#define __is_floating_point(T) bool(gm_type::floating<__remove_cv(T)>::yes)
#define __is_integral(T)                                                                           \
  (bool(gm_type::signed_integer<__remove_cv(T)>::yes)                                              \
    || bool(gm_type::unsigned_integer<__remove_cv(T)>::yes))
#define __is_signed(T)                                                                             \
  (bool(gm_type::signed_integer<__remove_cv(T)>::yes) || __is_floating_point(T))
#define __is_unsigned(T) bool(gm_type::unsigned_integer<__remove_cv(T)>::yes)
#define __builtin_inff() __builtin_bit_cast(float, 0x7f800000)
#define __builtin_nanf(text) __builtin_bit_cast(float, 0x7fc00000)
