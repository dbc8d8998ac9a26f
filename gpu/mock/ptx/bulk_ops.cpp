#include "gpu/mock/ptx/bulk_reduce.hpp"
#include "gpu/mock/ptx/memory.hpp"
#include "gpu/mock/ptx/tensor_copy.hpp"
#include "gpu/mock/ptx/tensor_map.hpp"

#include <fmt/format.h>

namespace gristmill::ptx {
namespace {

uint64_t shared_register(warp& w, uint32_t reg, uint8_t bytes, uint32_t lane) {
  return (bytes == 8 ? lane_values<uint64_t>(w, reg)[lane] : lane_values<uint32_t>(w, reg)[lane])
    & UINT32_MAX;
}

void count_bytes(warp& w, const operation& o, uint64_t address, uint64_t bytes, bool write) {
  auto& n = counts_of(w, o).memory[as_counted];
  n.bytes += bytes;
  const uint64_t last = (address + bytes - 1) >> 5;
  n.sectors += last - (address >> 5) + 1;
  for (uint64_t sector = address >> 5; sector <= last; ++sector)
    touch_sector(w, sector, write, false);
}

/// Host memory of a tensor map that may be changed.
uint8_t* map_memory(warp& w, const operation& o, uint64_t address, uint32_t lane) {
  const uint64_t window = address & window_mask;
  const bool shared =
    o.where == space::shared || (o.where == space::generic && window == shared_window);
  if (address % 64 != 0)
    raise(fault_kind::misaligned,
      fmt::format("the tensor map at 0x{:x} is not at a multiple of 64", address), lane);
  if (shared)
    return need_shared(w, address, tensor_map_bytes, lane, "write of a tensor map");
  return need_global(w, o, address, tensor_map_bytes, true, lane, "write of a tensor map");
}

} // namespace

void bulk_reduce(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  const auto how = static_cast<bulk_reduction>(o.mode);
  const auto type = static_cast<tensor_map_type>(o.target);
  const bool to_shared = o.elements == 2;
  uint64_t to[warp_lanes];
  addresses_of(w, o, to);
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    if (!is_active(w, l))
      continue;
    const uint64_t from = shared_register(w, o.b, o.bytes, l);
    const uint32_t bytes = lane_values<uint32_t>(w, o.c)[l];
    if ((from | to[l] | bytes) & 15)
      raise(fault_kind::misaligned,
        fmt::format("bulk reduction of {} bytes from shared 0x{:x} to 0x{:x}: not multiples of 16",
          bytes, from, to[l]),
        l);
    if (bytes > 0) {
      uint8_t* target = to_shared ? need_cluster(w, to[l], bytes, l, "bulk reduction")
                                  : need_global(w, o, to[l], bytes, true, l, "bulk reduction");
      reduce_bytes(how, type, target, need_shared(w, from, bytes, l, "bulk reduction read"), bytes);
      if (to_shared)
        counts_of(w, o).memory[as_counted].bytes += bytes;
      else
        count_bytes(w, o, to[l], bytes, true);
    }
    if (!to_shared)
      continue;
    const uint64_t barrier = shared_register(w, o.e, o.bytes, l);
    if (&block_of(w, to[l], l) != &block_of(w, barrier, l))
      raise(fault_kind::trap,
        "the mbarrier of a bulk reduction is in another block than its target", l);
    mbarrier& m = find_mbarrier(w, barrier, l);
    m.pending_bytes -= bytes;
    advance(w, m);
  }
}

void bulk_prefetch(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  uint64_t from[warp_lanes];
  addresses_of(w, o, from);
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    if (!is_active(w, l))
      continue;
    const uint32_t bytes = lane_values<uint32_t>(w, o.c)[l];
    if ((from[l] | bytes) & 15)
      raise(fault_kind::misaligned,
        fmt::format("bulk prefetch of {} bytes from 0x{:x}: not multiples of 16", bytes, from[l]),
        l);
    if (bytes == 0)
      continue;
    need_global(w, o, from[l], bytes, false, l, "bulk prefetch");
    count_bytes(w, o, from[l], bytes, false);
  }
}

void replace_in_tensor_map(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  uint64_t address[warp_lanes];
  addresses_of(w, o, address);
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    if (!is_active(w, l))
      continue;
    const uint64_t value =
      o.bytes == 8 ? lane_values<uint64_t>(w, o.b)[l] : lane_values<uint32_t>(w, o.b)[l];
    const std::string wrong = replace_field(
      map_memory(w, o, address[l], l), static_cast<tensor_map_field>(o.mode), o.target, value);
    if (!wrong.empty())
      raise(fault_kind::trap, "tensormap.replace: " + wrong, l);
  }
}

void copy_tensor_map(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  const uint32_t lane = first_lane(w.active);
  uint64_t to[warp_lanes];
  addresses_of(w, o, to);
  const uint64_t from = shared_register(w, o.b, o.bytes, lane);
  if (from % 64 != 0)
    raise(fault_kind::misaligned,
      fmt::format("the tensor map at shared 0x{:x} is not at a multiple of 64", from), lane);
  std::memcpy(map_memory(w, o, to[lane], lane),
    need_shared(w, from, tensor_map_bytes, lane, "read of a tensor map"), tensor_map_bytes);
}

} // namespace gristmill::ptx
