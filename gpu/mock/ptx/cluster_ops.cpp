#include "gpu/mock/ptx/memory.hpp"
#include "gpu/mock/ptx/warp.hpp"

#include <fmt/format.h>

#include <algorithm>

/// What the blocks of a cluster do with each other.
namespace gristmill::ptx {
namespace {

void need_shared_window(const operation& o, uint64_t address, uint32_t lane) {
  if (o.where == space::generic && (address & window_mask) != shared_window)
    raise(fault_kind::out_of_bounds,
      fmt::format("the generic address 0x{:x} is not one of shared memory", address), lane);
}

uint32_t rank_in(const warp& w, uint64_t address) {
  const auto mapped = static_cast<uint32_t>((address & UINT32_MAX) >> rank_shift);
  return mapped == 0 ? w.block->rank : mapped - 1;
}

} // namespace

/// mapa: the address a (of `address_bytes`, generic unless `where` says shared) in the block of
/// rank b.
void map_to_rank(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  const size_t blocks = w.block->cluster->blocks.size();
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    if (!is_active(s, l))
      continue;
    const uint64_t address = register_value(s, o.a, o.address_bytes, l);
    const uint32_t rank = lane_values<uint32_t>(s, o.b)[l];
    need_shared_window(o, address, l);
    if (rank >= blocks)
      raise(fault_kind::out_of_bounds,
        fmt::format("mapa to rank {} of a cluster of {} blocks", rank, blocks), l);
    const uint64_t mapped =
      (address & ~(UINT32_MAX & ~shared_offset_mask)) | uint64_t{rank + 1} << rank_shift;
    if (o.address_bytes == 8)
      lane_values<uint64_t>(s, o.d)[l] = mapped;
    else
      lane_values<uint32_t>(s, o.d)[l] = static_cast<uint32_t>(mapped);
  }
}

/// getctarank.
void rank_of_address(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    if (!is_active(s, l))
      continue;
    const uint64_t address = register_value(s, o.a, o.address_bytes, l);
    need_shared_window(o, address, l);
    lane_values<uint32_t>(s, o.d)[l] = rank_in(w, address);
  }
}

void cluster_arrive(lane_state& s, const operation&) {
  warp& w = as_warp(s);
  if ((w.cluster_arrived & s.active) != 0)
    raise(fault_kind::barrier_divergence,
      "a thread arrives at the cluster's barrier again before it has waited",
      first_lane(w.cluster_arrived & s.active));
  cluster_state& c = *w.block->cluster;
  w.cluster_arrived |= s.active;
  set_lanes(w.cluster_parity, s.active, (c.phase & 1) != 0 ? all_lanes : 0);
  c.arrivals = true;
  ++*w.block->changes;
}

void cluster_wait(lane_state& s, const operation&) {
  warp& w = as_warp(s);
  if ((s.active & ~w.cluster_arrived) != 0)
    raise(fault_kind::barrier_divergence,
      "a thread waits at the cluster's barrier without having arrived",
      first_lane(s.active & ~w.cluster_arrived));
  const cluster_state& c = *w.block->cluster;
  const uint32_t now = (c.phase & 1) != 0 ? all_lanes : 0;
  if ((~(now ^ w.cluster_parity) & s.active) != 0) {
    w.again = w.yields = true;
    return;
  }
  w.cluster_arrived &= ~s.active;
  if (w.block->what->timing) {
    w.timing.end_stretch();
    w.timing.now = w.timing.latest_start =
      std::max(w.timing.now, c.ready + w.block->what->hw.barrier_latency);
  }
}

void predicate_of_special(lane_state& s, const operation& o) {
  const uint32_t yes = lane_values<const uint32_t>(s, o.a)[0];
  set_lanes(s.predicates[o.p], s.active, yes != 0 ? all_lanes : 0);
}

/// After the store or reduction of st.async and red.async: tells the mbarrier at a of `imm` bytes.
/// `target` is the offset of the address.
void count_async_bytes(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    if (!is_active(s, l))
      continue;
    mbarrier& m = find_mbarrier(w, register_value(s, o.a, o.address_bytes, l) + o.target, l);
    complete_bytes(w, m, o.imm);
  }
}

} // namespace gristmill::ptx
