#pragma once

#include <type_traits>

namespace gristmill {

/// Whether two pointers to functions take parameters of the same sizes, one by one, pointers where
/// the other takes pointers: what a caller and a library must agree on.
template <class Ours, class Theirs>
struct same_shape : std::false_type {};
template <class R, class... A, class S, class... B>
struct same_shape<R (*)(A...), S (*)(B...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(A) != sizeof...(B))
      return false;
    else
      return ((sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>)&&...)
        && std::is_void_v<R> == std::is_void_v<S>;
  }();
};

} // namespace gristmill
