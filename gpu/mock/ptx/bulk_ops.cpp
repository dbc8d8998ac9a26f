#include "gpu/mock/ptx/bulk_ops.hpp"

#include "gpu/mock/ptx/bulk_reduce.hpp"
#include "gpu/mock/ptx/memory.hpp"

#include <fmt/format.h>

namespace gristmill::ptx {
namespace {

/// Calls `f(lane, address in a, bytes)` for each active lane.
template <class F>
void each_bulk(warp& w, const operation& o, F&& f) {
  uint64_t addresses[warp_lanes];
  addresses_of(w, o, addresses);
  for (uint32_t l = 0; l < warp_lanes; ++l)
    if (is_active(w, l))
      f(l, addresses[l], lane_values<uint32_t>(w, o.c)[l]);
}

/// A shared address in b or e.
uint64_t shared_register(warp& w, const operation& o, uint32_t reg, uint32_t lane) {
  return register_value(w, reg, o.bytes, lane) & UINT32_MAX;
}

/// One end of a copy; `memory` is "shared " or nothing.
struct end {
  const char* memory;
  uint64_t address;
};

void need_multiples_of_16(
  const char* what, uint32_t bytes, const end& from, const end& to, uint32_t lane) {
  if (((from.address | to.address | bytes) & 15) != 0)
    raise(fault_kind::misaligned,
      fmt::format("{} of {} bytes from {}0x{:x} to {}0x{:x}: not multiples of 16", what, bytes,
        from.memory, from.address, to.memory, to.address),
      lane);
}

} // namespace

void bulk_to_shared(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  each_bulk(w, o, [&](uint32_t l, uint64_t to, uint32_t bytes) {
    const uint64_t from = lane_values<uint64_t>(w, o.b)[l];
    need_multiples_of_16("bulk copy", bytes, {"", from}, {"shared ", to & UINT32_MAX}, l);
    mbarrier& m = find_mbarrier(w, shared_register(w, o, o.e, l), l);
    if (bytes > 0) {
      const uint8_t* source = need_global(w, o, from, bytes, false, l, "bulk copy read");
      std::memcpy(need_cluster(w, to, bytes, true, l, "bulk copy write"), source, bytes);
      count_range(w, o, from, bytes, false);
    }
    complete_bytes(w, m, bytes);
  });
}

void bulk_to_global(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  each_bulk(w, o, [&](uint32_t l, uint64_t to, uint32_t bytes) {
    const uint64_t from = shared_register(w, o, o.b, l);
    need_multiples_of_16("bulk copy", bytes, {"shared ", from}, {"", to}, l);
    if (bytes == 0)
      return;
    const uint8_t* source = need_shared(w, from, bytes, false, l, "bulk copy read");
    std::memcpy(need_global(w, o, to, bytes, true, l, "bulk copy write"), source, bytes);
    count_range(w, o, to, bytes, true);
  });
}

void bulk_in_cluster(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  each_bulk(w, o, [&](uint32_t l, uint64_t to, uint32_t bytes) {
    const uint64_t from = shared_register(w, o, o.b, l);
    const uint64_t barrier = shared_register(w, o, o.e, l);
    need_multiples_of_16("bulk copy", bytes, {"shared ", from}, {"shared ", to & UINT32_MAX}, l);
    need_same_block(w, to, barrier, l, "bulk copy");
    mbarrier& m = find_mbarrier(w, barrier, l);
    if (bytes > 0) {
      const uint8_t* source = need_shared(w, from, bytes, false, l, "bulk copy read");
      std::memmove(need_cluster(w, to, bytes, true, l, "bulk copy write"), source, bytes);
    }
    counts_of(w, o).memory[as_counted].bytes += bytes;
    complete_bytes(w, m, bytes);
  });
}

void bulk_reduce(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  const auto how = static_cast<bulk_reduction>(o.mode);
  const auto type = static_cast<tensor_map_type>(o.target);
  const bool to_shared = o.elements == 2;
  each_bulk(w, o, [&](uint32_t l, uint64_t to, uint32_t bytes) {
    const uint64_t from = shared_register(w, o, o.b, l);
    need_multiples_of_16("bulk reduction", bytes, {"shared ", from}, {"", to}, l);
    if (bytes > 0) {
      const uint8_t* source = need_shared(w, from, bytes, false, l, "bulk reduction read");
      uint8_t* target = to_shared ? need_cluster(w, to, bytes, true, l, "bulk reduction")
                                  : need_global(w, o, to, bytes, true, l, "bulk reduction");
      reduce_bytes(how, type, target, source, bytes);
      if (to_shared)
        counts_of(w, o).memory[as_counted].bytes += bytes;
      else
        count_range(w, o, to, bytes, true);
    }
    if (!to_shared)
      return;
    const uint64_t barrier = shared_register(w, o, o.e, l);
    need_same_block(w, to, barrier, l, "bulk reduction");
    complete_bytes(w, find_mbarrier(w, barrier, l), bytes);
  });
}

void bulk_prefetch(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  each_bulk(w, o, [&](uint32_t l, uint64_t from, uint32_t bytes) {
    if ((from | bytes) & 15)
      raise(fault_kind::misaligned,
        fmt::format("bulk prefetch of {} bytes from 0x{:x}: not multiples of 16", bytes, from), l);
    if (bytes == 0)
      return;
    need_global(w, o, from, bytes, false, l, "bulk prefetch");
    count_range(w, o, from, bytes, false);
  });
}

} // namespace gristmill::ptx
