#include "gpu/mock/ptx/resident.hpp"

#include <algorithm>

namespace gristmill::ptx {

namespace {

uint32_t thread_count(const launch& what) {
  return what.block[0] * what.block[1] * what.block[2];
}

size_t register_bytes(const kernel& code) {
  return size_t{code.register_bytes + 63} / 64 * 64;
}

bool depends_on_block(special which) {
  return (which >= special::ctaid_x && which <= special::ctaid_z) || which == special::smid
    || (which >= special::clusterid_x && which <= special::clusterid_z);
}

} // namespace

uint32_t warp_count(const launch& what) {
  return (thread_count(what) + warp_lanes - 1) / warp_lanes;
}

size_t shared_size(const launch& what, const kernel& code) {
  return code.uses_dynamic_shared || what.dynamic_shared > 0
    ? size_t{code.dynamic_shared_offset()} + what.dynamic_shared
    : code.info.static_shared;
}

uint64_t resident_bytes(const launch& what, const kernel& code) {
  const uint64_t timing = what.timing ? 4 * (uint64_t{code.predicates} + code.registers.size()) : 0;
  return warp_count(what)
    * (register_bytes(code) + 4ULL * code.predicates + timing + sizeof(warp)
      + uint64_t{warp_lanes} * code.local_bytes)
    + shared_size(what, code) + (code.uses_tensor_memory ? tensor_memory::bytes() : 0);
}

std::array<uint32_t, 3> cluster_extent(const launch& what, const kernel& code) {
  const bool given = what.cluster != std::array<uint32_t, 3>{1, 1, 1};
  return given || code.info.cluster[0] == 0 ? what.cluster : code.info.cluster;
}

resident_block::resident_block(const block_state& common, cluster_state& cluster, uint32_t rank)
  : state(common), warps(warp_count(*common.what)), what_(*common.what), code_(*common.code),
    registers_(register_bytes(code_) * warps.size()),
    predicates_(size_t{code_.predicates} * warps.size()), shared_(shared_size(what_, code_)),
    local_(size_t{code_.local_bytes} * warps.size() * warp_lanes) {
  state.cluster = &cluster;
  state.rank = rank;
  state.shared = shared_.data();
  state.shared_bytes = shared_size(what_, code_);
  state.local = local_.data();
  state.local_bytes = code_.local_bytes;
  std::fill_n(state.local, size_t{code_.local_bytes} * warps.size() * warp_lanes, 0xff);
  for (uint32_t i = 0; i < warps.size(); ++i) {
    warp& w = warps[i];
    w.id = i;
    w.block = &state;
    w.registers = registers_.data() + register_bytes(code_) * i;
    w.predicates = predicates_.data() + size_t{code_.predicates} * i;
    w.accesses = state.accesses;
    w.shared = state.shared;
    w.local = state.local + size_t{i} * warp_lanes * code_.local_bytes;
    w.changes = state.changes;
    prepare_registers(w);
    if (what_.timing)
      w.timing.prepare(code_);
  }
}

void resident_block::fill(warp& w, const kernel::register_slot& slot, uint64_t value) {
  if (slot.bytes == 4)
    std::fill_n(lane_values<uint32_t>(w, slot.offset), warp_lanes, static_cast<uint32_t>(value));
  else if (slot.bytes == 8)
    std::fill_n(lane_values<uint64_t>(w, slot.offset), warp_lanes, value);
  else
    for (uint32_t l = 0; l < warp_lanes; ++l)
      std::memcpy(w.registers + slot.offset + l * slot.bytes, &value, slot.bytes);
}

void resident_block::prepare_registers(warp& w) {
  for (const kernel::constant& c : code_.constants)
    fill(w, code_.registers[c.reg], c.value);
  for (const kernel::special_slot& s : code_.specials)
    set_special(w, s);
  for (const kernel::parameter_slot& p : code_.parameter_slots) {
    uint64_t value = 0;
    std::memcpy(&value, what_.parameters.data() + p.offset, p.bytes);
    if (p.sign_extend && p.bytes < 8) {
      const uint32_t unused = 64 - 8U * p.bytes;
      value = static_cast<uint64_t>(static_cast<int64_t>(value << unused) >> unused);
    }
    fill(w, code_.registers[p.reg], value);
  }
}

void resident_block::set_special(warp& w, const kernel::special_slot& slot) {
  const kernel::register_slot& reg = code_.registers[slot.reg];
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    const uint64_t v = special_value(w, slot.which, l);
    std::memcpy(w.registers + reg.offset + l * reg.bytes, &v, reg.bytes);
  }
}

uint64_t resident_block::special_value(const warp& w, special which, uint32_t lane) const {
  const uint32_t thread = w.id * warp_lanes + lane;
  const uint32_t bit = 1U << lane;
  const std::array<uint32_t, 3>& extent = state.cluster->extent;
  const auto place = [&](special first) {
    return static_cast<size_t>(which) - static_cast<size_t>(first);
  };
  switch (which) {
  case special::tid_x:
    return thread % what_.block[0];
  case special::tid_y:
    return thread / what_.block[0] % what_.block[1];
  case special::tid_z:
    return thread / what_.block[0] / what_.block[1];
  case special::ntid_x:
  case special::ntid_y:
  case special::ntid_z:
    return what_.block[place(special::ntid_x)];
  case special::ctaid_x:
  case special::ctaid_y:
  case special::ctaid_z:
    return state.index[place(special::ctaid_x)];
  case special::nctaid_x:
  case special::nctaid_y:
  case special::nctaid_z:
    return what_.grid[place(special::nctaid_x)];
  case special::laneid:
    return lane;
  case special::warpid:
    return w.id;
  case special::nwarpid:
    return warps.size();
  case special::lanemask_eq:
    return bit;
  case special::lanemask_lt:
    return bit - 1;
  case special::lanemask_le:
    return bit | (bit - 1);
  case special::lanemask_gt:
    return ~(bit | (bit - 1));
  case special::lanemask_ge:
    return ~(bit - 1);
  case special::smid:
    return state.number % what_.hw.sms;
  case special::nsmid:
    return what_.hw.sms;
  case special::zero:
    return 0;
  case special::one:
    return 1;
  case special::dynamic_shared_base:
    return code_.dynamic_shared_offset();
  case special::dynamic_shared_size:
    return what_.dynamic_shared;
  case special::total_shared_size:
    return state.shared_bytes;
  case special::clusterid_x:
  case special::clusterid_y:
  case special::clusterid_z:
    return state.index[place(special::clusterid_x)] / extent[place(special::clusterid_x)];
  case special::nclusterid_x:
  case special::nclusterid_y:
  case special::nclusterid_z:
    return what_.grid[place(special::nclusterid_x)] / extent[place(special::nclusterid_x)];
  case special::cluster_ctaid_x:
    return state.rank % extent[0];
  case special::cluster_ctaid_y:
    return state.rank / extent[0] % extent[1];
  case special::cluster_ctaid_z:
    return state.rank / extent[0] / extent[1];
  case special::cluster_nctaid_x:
  case special::cluster_nctaid_y:
  case special::cluster_nctaid_z:
    return extent[place(special::cluster_nctaid_x)];
  case special::cluster_ctarank:
    return state.rank;
  case special::cluster_nctarank:
    return uint64_t{extent[0]} * extent[1] * extent[2];
  case special::explicit_cluster:
    return code_.info.cluster[0] != 0 || what_.cluster != std::array<uint32_t, 3>{1, 1, 1} ? 1 : 0;
  }
  return 0;
}

void resident_block::start(uint64_t number, const std::array<uint32_t, 3>& index) {
  state.number = number;
  state.index = index;
  // Whoever reads what nobody wrote shall notice: all ones is NaN and -1.
  std::fill_n(state.shared, state.shared_bytes, 0xff);
  state.barriers = {};
  state.mbarriers.clear();
  state.wgmma_groups = {};
  state.tensor.reset();
  state.bulk_ready = 0;
  state.warps_left = static_cast<uint32_t>(warps.size());
  const uint32_t threads = thread_count(what_);
  for (warp& w : warps) {
    for (const kernel::special_slot& s : code_.specials)
      if (depends_on_block(s.which))
        fill(w, code_.registers[s.reg], special_value(w, s.which, 0));
    const uint32_t lanes = threads - w.id * warp_lanes;
    w.full = lanes >= warp_lanes ? all_lanes : (1U << lanes) - 1;
    w.live = w.running = w.full;
    w.pc = 0;
    w.groups.clear();
    w.lowest = UINT32_MAX;
    w.status = warp_status::running;
    w.turn_over = w.again = false;
    w.polls = 0;
    w.poll_pc = UINT32_MAX;
    w.waits = 0;
    w.waited_changes = w.stuck_changes = w.polled_changes = UINT64_MAX;
    w.clock_reads = 0;
    w.tensor_unfenced = false;
    w.cluster_arrived = 0;
    if (what_.timing)
      w.timing.start_block();
  }
}

resident_cluster::resident_cluster(const block_state& common, const std::array<uint32_t, 3>& extent)
  : what_(*common.what) {
  state.extent = extent;
  state.arrives_late = what_.order_seed.has_value();
  const uint32_t size = extent[0] * extent[1] * extent[2];
  for (uint32_t rank = 0; rank < size; ++rank) {
    blocks.push_back(std::make_unique<resident_block>(common, state, rank));
    state.blocks.push_back(&blocks.back()->state);
    for (warp& w : blocks.back()->warps)
      warps.push_back(&w);
  }
}

void resident_cluster::start(uint64_t number) {
  state.phase = 0;
  state.arrivals = false;
  state.ready = 0;
  state.tensor = {};
  state.late.clear();
  stuck_changes = UINT64_MAX;
  const std::array<uint32_t, 3>& extent = state.extent;
  const uint64_t columns = what_.grid[0] / extent[0];
  const uint64_t rows = what_.grid[1] / extent[1];
  const std::array<uint64_t, 3> at{
    number % columns, number / columns % rows, number / columns / rows};
  for (uint32_t rank = 0; rank < blocks.size(); ++rank) {
    const std::array<uint32_t, 3> index{static_cast<uint32_t>(at[0] * extent[0] + rank % extent[0]),
      static_cast<uint32_t>(at[1] * extent[1] + rank / extent[0] % extent[1]),
      static_cast<uint32_t>(at[2] * extent[2] + rank / extent[0] / extent[1])};
    blocks[rank]->start(
      index[0] + uint64_t{what_.grid[0]} * (index[1] + uint64_t{what_.grid[1]} * index[2]), index);
  }
}

} // namespace gristmill::ptx
