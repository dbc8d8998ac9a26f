// What the check of a kernel's parameters against the launch plan is made of.
#pragma once
#include "bfloat16.h"
#include "float8.h"
#include "types.h"

// Every name begins with gm_: the defines of a launch plan are in force where these are used.
namespace gm_signature {
template <int n, class... Rest>
struct gm_at {
  // Past the last one: the count is wrong, which another check says.
  typedef void type;
};
template <class First, class... Rest>
struct gm_at<0, First, Rest...> {
  typedef First type;
};
template <int n, class First, class... Rest>
struct gm_at<n, First, Rest...> {
  typedef typename gm_at<n - 1, Rest...>::type type;
};

template <class F>
struct gm_of {
  static constexpr int gm_count = -1;
  template <int n>
  using gm_parameter = void;
};
template <class... P>
struct gm_of<void (*)(P...)> {
  static constexpr int gm_count = sizeof...(P);
  template <int n>
  using gm_parameter = typename gm_at<n, P...>::type;
};

// A number for each type that an argument can have; 0 for any other one, -1 for none.
template <class T>
inline constexpr int gm_code = 0;
template <>
inline constexpr int gm_code<void> = -1;
template <>
inline constexpr int gm_code<bool> = 1;
template <>
inline constexpr int gm_code<signed char> = 2;
template <>
inline constexpr int gm_code<char> = 2;
template <>
inline constexpr int gm_code<unsigned char> = 3;
template <>
inline constexpr int gm_code<short> = 4;
template <>
inline constexpr int gm_code<unsigned short> = 5;
template <>
inline constexpr int gm_code<int> = 6;
template <>
inline constexpr int gm_code<unsigned> = 7;
template <>
inline constexpr int gm_code<long> = 8;
template <>
inline constexpr int gm_code<long long> = 8;
template <>
inline constexpr int gm_code<unsigned long> = 9;
template <>
inline constexpr int gm_code<unsigned long long> = 9;
template <>
inline constexpr int gm_code<__half> = 10;
template <>
inline constexpr int gm_code<__nv_bfloat16> = 11;
template <>
inline constexpr int gm_code<float> = 12;
template <>
inline constexpr int gm_code<double> = 13;
template <class T>
inline constexpr int gm_code<T*> = 14;
template <class T>
inline constexpr int gm_code<const T*> = 15;
} // namespace gm_signature
