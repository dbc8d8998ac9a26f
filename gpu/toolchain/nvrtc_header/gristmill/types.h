// The names of <cstdint> and <cstddef>, and what traits.h asks of a compiler. NVRTC knows the
// keywords, the vector types, the geometry and the intrinsics by itself.
#pragma once

// How every function of these headers is declared.
#define GM_DEVICE static __device__ __forceinline__

typedef decltype(static_cast<char*>(nullptr) - static_cast<char*>(nullptr)) ptrdiff_t;
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
typedef long intptr_t;
typedef unsigned long uintptr_t;
typedef long intmax_t;
typedef unsigned long uintmax_t;
typedef int8_t int_least8_t;
typedef int16_t int_least16_t;
typedef int32_t int_least32_t;
typedef int64_t int_least64_t;
typedef uint8_t uint_least8_t;
typedef uint16_t uint_least16_t;
typedef uint32_t uint_least32_t;
typedef uint64_t uint_least64_t;
typedef int32_t int_fast32_t;
typedef uint32_t uint_fast32_t;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

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
