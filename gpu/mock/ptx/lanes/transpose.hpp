#pragma once

#include <cstdint>

/// A 4x4 block of words, turned. In the namespace of the build: see loops.hpp.
namespace gristmill::ptx::GRISTMILL_PTX_LANES {

typedef uint32_t four __attribute__((vector_size(16), aligned(4), may_alias));

inline four four_at(const void* from) {
  return *static_cast<const four*>(from);
}

inline void put_four(void* to, four value) {
  *static_cast<four*>(to) = value;
}

/// Word i of vector k goes to word k of vector i.
inline void transpose_four(four& a, four& b, four& c, four& d) {
  typedef int32_t places __attribute__((vector_size(16)));
  const four ab_low = __builtin_shuffle(a, b, places{0, 4, 1, 5});
  const four ab_high = __builtin_shuffle(a, b, places{2, 6, 3, 7});
  const four cd_low = __builtin_shuffle(c, d, places{0, 4, 1, 5});
  const four cd_high = __builtin_shuffle(c, d, places{2, 6, 3, 7});
  a = __builtin_shuffle(ab_low, cd_low, places{0, 1, 4, 5});
  b = __builtin_shuffle(ab_low, cd_low, places{2, 3, 6, 7});
  c = __builtin_shuffle(ab_high, cd_high, places{0, 1, 4, 5});
  d = __builtin_shuffle(ab_high, cd_high, places{2, 3, 6, 7});
}

} // namespace gristmill::ptx::GRISTMILL_PTX_LANES
