// What the check of a kernel's parameters against the launch plan is made of.
#pragma once

// After the headers of the types below; toolchains have them in files of different names.
//
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
  enum { gm_count = -1 };
  template <int n>
  using gm_parameter = void;
};
template <class... P>
struct gm_of<void (*)(P...)> {
  enum { gm_count = sizeof...(P) };
  template <int n>
  using gm_parameter = typename gm_at<n, P...>::type;
};

// A number for each type that an argument can have; 0 for any other one, -1 for none. Enumerators,
// because a compiler may put a constant into the module.
template <int n>
struct gm_number {
  enum { gm_value = n };
};
template <class T>
struct gm_code : gm_number<0> {};
template <>
struct gm_code<void> : gm_number<-1> {};
template <>
struct gm_code<bool> : gm_number<1> {};
template <>
struct gm_code<signed char> : gm_number<2> {};
template <>
struct gm_code<char> : gm_number<2> {};
template <>
struct gm_code<unsigned char> : gm_number<3> {};
template <>
struct gm_code<short> : gm_number<4> {};
template <>
struct gm_code<unsigned short> : gm_number<5> {};
template <>
struct gm_code<int> : gm_number<6> {};
template <>
struct gm_code<unsigned> : gm_number<7> {};
template <>
struct gm_code<long> : gm_number<8> {};
template <>
struct gm_code<long long> : gm_number<8> {};
template <>
struct gm_code<unsigned long> : gm_number<9> {};
template <>
struct gm_code<unsigned long long> : gm_number<9> {};
template <>
struct gm_code<__half> : gm_number<10> {};
template <>
struct gm_code<__nv_bfloat16> : gm_number<11> {};
template <>
struct gm_code<float> : gm_number<12> {};
template <>
struct gm_code<double> : gm_number<13> {};
template <class T>
struct gm_code<T*> : gm_number<14> {};
template <class T>
struct gm_code<const T*> : gm_number<15> {};
} // namespace gm_signature
