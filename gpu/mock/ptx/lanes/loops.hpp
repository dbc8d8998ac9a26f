#pragma once

#include "gpu/mock/ptx/operation.hpp"

#include <bit>
#include <cstdint>
#include <type_traits>

/// Loops over the lanes of a warp. Nothing here may be shared between the two builds of this
/// folder, hence the namespace from the build; nor may anything call an inline function of the
/// standard library that is not a compiler built-in.
namespace gristmill::ptx::GRISTMILL_PTX_LANES {

template <class T>
inline T* lane(lane_state& s, uint32_t offset) {
  return reinterpret_cast<T*>(s.registers + offset);
}

// The full warp gets a loop of its own, because then no old value has to be read. `ivdep`: source
// and destination are the same register or do not overlap.
template <class D, class A, class F>
void unary(lane_state& s, const operation& o) {
  D* d = lane<D>(s, o.d);
  const A* a = lane<A>(s, o.a);
  const uint32_t active = s.active;
  if (active == all_lanes) {
#pragma GCC ivdep
    for (uint32_t l = 0; l < warp_lanes; ++l)
      d[l] = F::of(a[l]);
    return;
  }
  for (uint32_t l = 0; l < warp_lanes; ++l)
    if (active >> l & 1)
      d[l] = F::of(a[l]);
}

template <class D, class A, class B, class F>
void binary(lane_state& s, const operation& o) {
  D* d = lane<D>(s, o.d);
  const A* a = lane<A>(s, o.a);
  const B* b = lane<B>(s, o.b);
  const uint32_t active = s.active;
  if (active == all_lanes) {
#pragma GCC ivdep
    for (uint32_t l = 0; l < warp_lanes; ++l)
      d[l] = F::of(a[l], b[l]);
    return;
  }
  for (uint32_t l = 0; l < warp_lanes; ++l)
    if (active >> l & 1)
      d[l] = F::of(a[l], b[l]);
}

template <class D, class A, class B, class C, class F>
void ternary(lane_state& s, const operation& o) {
  D* d = lane<D>(s, o.d);
  const A* a = lane<A>(s, o.a);
  const B* b = lane<B>(s, o.b);
  const C* c = lane<C>(s, o.c);
  const uint32_t active = s.active;
  if (active == all_lanes) {
#pragma GCC ivdep
    for (uint32_t l = 0; l < warp_lanes; ++l)
      d[l] = F::of(a[l], b[l], c[l]);
    return;
  }
  for (uint32_t l = 0; l < warp_lanes; ++l)
    if (active >> l & 1)
      d[l] = F::of(a[l], b[l], c[l]);
}

template <class D, class A, class B, class C, class E, class F>
void quaternary(lane_state& s, const operation& o) {
  D* d = lane<D>(s, o.d);
  const A* a = lane<A>(s, o.a);
  const B* b = lane<B>(s, o.b);
  const C* c = lane<C>(s, o.c);
  const E* e = lane<E>(s, o.e);
  const uint32_t active = s.active;
  for (uint32_t l = 0; l < warp_lanes; ++l)
    if (active >> l & 1)
      d[l] = F::of(a[l], b[l], c[l], e[l]);
}

} // namespace gristmill::ptx::GRISTMILL_PTX_LANES
