#include "gpu/mock/ptx/lanes/lanes.hpp"
#include "gpu/mock/ptx/warp.hpp"

#include <algorithm>

/// Operations in which the lanes of a warp exchange values. The executor calls them once for each
/// mask, with exactly its lanes active.
namespace gristmill::ptx {

/// `mode`: 0 up, 1 down, 2 bfly, 3 idx. a: value, b: lane, c: clamp and segment; p: in range.
void shuffle(lane_state& s, const operation& o) {
  if (s.active == all_lanes) {
    lanes().shuffle_all[o.mode](s, o);
    return;
  }
  uint32_t values[warp_lanes];
  std::copy_n(lane_values<uint32_t>(s, o.a), warp_lanes, values);
  const uint32_t* b = lane_values<uint32_t>(s, o.b);
  const uint32_t* c = lane_values<uint32_t>(s, o.c);
  uint32_t* d = lane_values<uint32_t>(s, o.d);
  uint32_t in_range = 0;
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    if (!is_active(s, l))
      continue;
    const uint32_t segment = c[l] >> 8 & 31;
    const uint32_t clamp = c[l] & 31;
    const auto last = static_cast<int32_t>((l & segment) | (clamp & ~segment & 31));
    const auto lane = static_cast<int32_t>(l);
    const auto by = static_cast<int32_t>(b[l] & 31);
    int32_t from = 0;
    bool inside = false;
    switch (o.mode) {
    case 0:
      from = lane - by;
      inside = from >= last;
      break;
    case 1:
      from = lane + by;
      inside = from <= last;
      break;
    case 2:
      from = lane ^ by;
      inside = from <= last;
      break;
    default:
      from = static_cast<int32_t>((l & segment) | (b[l] & ~segment & 31));
      inside = from <= last;
      break;
    }
    const uint32_t source = inside ? static_cast<uint32_t>(from) & 31 : l;
    if (!is_active(s, source) && (as_warp(s).live >> source & 1))
      raise(fault_kind::bad_mask,
        "shuffle reads from lane " + std::to_string(source) + ", which the mask does not name", l);
    d[l] = values[source];
    in_range |= static_cast<uint32_t>(inside) << l;
  }
  set_lanes(s.predicates[o.p], s.active, in_range);
}

/// `mode`: 0 all, 1 any, 2 uni (result p), 3 ballot (result d); r with `imm` = negated.
void vote(lane_state& s, const operation& o) {
  const uint32_t yes = (s.predicates[o.r] ^ (o.imm ? all_lanes : 0)) & s.active;
  if (o.mode == 3) {
    uint32_t* d = lane_values<uint32_t>(s, o.d);
    for (uint32_t l = 0; l < warp_lanes; ++l)
      d[l] = is_active(s, l) ? yes : d[l];
    return;
  }
  const bool result = o.mode == 0 ? yes == s.active
    : o.mode == 1                 ? yes != 0
                                  : yes == 0 || yes == s.active;
  set_lanes(s.predicates[o.p], s.active, result ? all_lanes : 0);
}

/// `mode`: 0 add, 1 min.u32, 2 max.u32, 3 and, 4 or, 5 xor, 6 min.s32, 7 max.s32.
void reduce_lanes(lane_state& s, const operation& o) {
  const uint32_t* a = lane_values<uint32_t>(s, o.a);
  uint32_t result = a[first_lane(s.active)];
  for (uint32_t l = first_lane(s.active) + 1; l < warp_lanes; ++l) {
    if (!is_active(s, l))
      continue;
    const auto x = static_cast<int32_t>(a[l]);
    const auto y = static_cast<int32_t>(result);
    switch (o.mode) {
    case 0:
      result += a[l];
      break;
    case 1:
      result = std::min(result, a[l]);
      break;
    case 2:
      result = std::max(result, a[l]);
      break;
    case 3:
      result &= a[l];
      break;
    case 4:
      result |= a[l];
      break;
    case 5:
      result ^= a[l];
      break;
    case 6:
      result = static_cast<uint32_t>(std::min(x, y));
      break;
    default:
      result = static_cast<uint32_t>(std::max(x, y));
      break;
    }
  }
  uint32_t* d = lane_values<uint32_t>(s, o.d);
  for (uint32_t l = 0; l < warp_lanes; ++l)
    d[l] = is_active(s, l) ? result : d[l];
}

namespace {

template <class T>
void match(lane_state& s, const operation& o, bool all) {
  const T* a = lane_values<T>(s, o.a);
  uint32_t masks[warp_lanes] = {};
  for (uint32_t l = 0; l < warp_lanes; ++l)
    for (uint32_t k = 0; k < warp_lanes; ++k)
      masks[l] |= static_cast<uint32_t>(is_active(s, k) && a[k] == a[l]) << k;
  const bool same = masks[first_lane(s.active)] == s.active;
  uint32_t* d = lane_values<uint32_t>(s, o.d);
  for (uint32_t l = 0; l < warp_lanes; ++l)
    if (is_active(s, l))
      d[l] = !all ? masks[l] : same ? s.active : 0;
  if (all)
    set_lanes(s.predicates[o.p], s.active, same ? all_lanes : 0);
}

} // namespace

void match_any(lane_state& s, const operation& o) {
  if (o.bytes == 8)
    match<uint64_t>(s, o, false);
  else
    match<uint32_t>(s, o, false);
}

void match_all(lane_state& s, const operation& o) {
  if (o.bytes == 8)
    match<uint64_t>(s, o, true);
  else
    match<uint32_t>(s, o, true);
}

void active_mask(lane_state& s, const operation& o) {
  uint32_t* d = lane_values<uint32_t>(s, o.d);
  for (uint32_t l = 0; l < warp_lanes; ++l)
    d[l] = is_active(s, l) ? s.active : d[l];
}

/// p is true in the first lane only; d is the number of that lane.
void elect(lane_state& s, const operation& o) {
  set_lanes(s.predicates[o.p], s.active, s.active & (~s.active + 1));
  uint32_t* d = lane_values<uint32_t>(s, o.d);
  for (uint32_t l = 0; l < warp_lanes; ++l)
    d[l] = is_active(s, l) ? first_lane(s.active) : d[l];
}

} // namespace gristmill::ptx
