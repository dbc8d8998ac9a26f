#include "gpu/mock/ptx/watch/watcher.hpp"

#include "gpu/mock/ptx/bulk_ops.hpp"
#include "gpu/mock/ptx/lanes/lanes.hpp"
#include "gpu/mock/ptx/lanes/tables.hpp"
#include "gpu/mock/ptx/matrix_shapes.hpp"
#include "gpu/mock/ptx/report.hpp"
#include "gpu/mock/ptx/resident.hpp"
#include "gpu/mock/ptx/tcgen05.hpp"
#include "gpu/mock/ptx/tensor_copy.hpp"
#include "gpu/mock/ptx/wgmma.hpp"

#include <algorithm>

namespace gristmill::ptx {
namespace {

/// More pairs of instructions are counted, not kept.
constexpr size_t findings_max = 32;
/// Numbers of warps have to leave room for the lane in `actor`.
constexpr uint64_t grid_warps_max = 1ULL << 30;

} // namespace

watcher::watcher(const launch& what, const kernel& code)
  : what_(what), code_(code), warps_(warp_count(what)) {
  const uint64_t blocks = uint64_t{what.grid[0]} * what.grid[1] * what.grid[2];
  orders_ = (on(check::shared_races) || on(check::global_races) || on(check::fences)
              || on(check::mbarriers))
    && blocks * warps_ < grid_warps_max;
  values_ = on(check::uninitialised) || on(check::outputs);
  for (size_t i = 0; i < lanes().compare_size; ++i)
    comparisons_.insert(lanes().compare[i].run);
  doing_.assign(code.operations.size(), doing::nothing);
  address_registers_.assign(code.operations.size(), UINT32_MAX);
  for (size_t i = 0; i < code.operations.size(); ++i) {
    const operation& o = code.operations[i];
    if (o.run == copy_async)
      doing_[i] = doing::copy;
    else if (o.run == bulk_to_shared || o.run == bulk_to_global || o.run == bulk_in_cluster
      || o.run == bulk_reduce || o.run == tensor_load || o.run == tensor_store
      || o.run == tensor_reduce)
      doing_[i] = doing::bulk;
    else if (o.run == wgmma_multiply || o.run == tensor_multiply || o.run == tensor_copy_in)
      doing_[i] = doing::product;
    products_ = products_
      || ((o.run == wgmma_multiply || o.run == tensor_load_registers) && on(check::wgmma));
    const bool has_address = (o.traits & trait_access) != 0 || o.counted == category::async
      || o.kind == flow::indexed_branch || o.run == load_matrix || o.run == store_matrix
      || o.run == load_fragment || o.run == store_fragment;
    if (has_address && o.run != copy_commit && o.run != copy_wait)
      address_registers_[i] = number_of(o.a, i, false);
  }
}

/// The register that an operation has at that place of the register file; of those alive at once
/// no two share one.
uint32_t watcher::number_of(uint32_t offset, size_t at, bool written) const {
  const kernel::operands& range = code_.operand_ranges[at];
  const uint32_t first = range.first + (written ? range.reads : 0U);
  const uint32_t count = written ? range.writes : range.reads;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t reg = code_.touched[first + i];
    if ((reg & predicate_mark) == 0 && code_.registers[reg].offset == offset)
      return reg;
  }
  return UINT32_MAX;
}

void watcher::block_starts(block_state& block) {
  std::unique_ptr<block_shadow>& shadow = blocks_[&block];
  if (!shadow)
    shadow = std::make_unique<block_shadow>();
  block.shadow = shadow.get();
  shadow->barriers = {};
  shadow->published.clear();
  if (orders_)
    shadow->shared.assign((block.shared_bytes + 3) / 4, cell{});
  shadow->warps.assign(warps_, warp_shadow{});
  if (values_) {
    shadow->shared_undefined.assign(block.shared_bytes, 1);
    shadow->local_undefined.assign(block.local_bytes * warps_ * warp_lanes, 1);
  }
  for (warp_shadow& s : shadow->warps) {
    if (values_) {
      s.undefined.assign(code_.registers.size(), all_lanes);
      s.origin.assign(code_.registers.size(), UINT32_MAX);
      s.undefined_predicates.assign(code_.predicates, all_lanes);
      s.predicate_origin.assign(code_.predicates, UINT32_MAX);
      for (size_t r = 0; r < code_.registers.size(); ++r)
        if (code_.registers[r].fixed)
          s.undefined[r] = 0;
      s.undefined_predicates[0] = 0;
    }
    if (products_) {
      s.in_group.assign(code_.registers.size(), 0);
      s.written_at.assign(code_.registers.size(), 0);
      s.used_by.assign(code_.registers.size(), 0);
      s.loading.assign(code_.registers.size(), 0);
    }
  }
  if (block.rank == 0)
    clusters_[block.cluster] = {};
}

actor watcher::actor_of(const warp& w) const {
  return static_cast<actor>((w.block->number * warps_ + w.id + 1) * 2);
}

void watcher::run(warp& w, const operation& o) {
  at_ = index_of(o);
  places_.clear();
  ranges_.clear();
  candidates_.clear();
  written_.clear();
  tensor_unwritten_.clear();
  released_ = false;
  if (values_)
    before_values(w, o);
  if (products_)
    watch_products(w, o);
  if (orders_ && doing_[at_] != doing::nothing) {
    warp_shadow& s = shadow_of(w);
    copy_groups& groups = doing_[at_] == doing::copy ? s.copies
      : doing_[at_] == doing::bulk                   ? s.bulk_copies
                                                     : s.products;
    groups.current = ++s.copy_time;
  }
  o.run(w, o);
  if (values_)
    after_values(w, o);
  if (orders_) {
    settle_candidates(w, o);
    after_order(w, o);
  }
}

const region* watcher::region_at(const block_state& block, uint64_t address) {
  const auto holds = [&](const region& r) {
    return address >= r.device && address - r.device < r.bytes;
  };
  if (recent_ && holds(*recent_))
    return recent_;
  const std::vector<region>& all = *block.memory;
  auto after = std::upper_bound(
    all.begin(), all.end(), address, [](uint64_t a, const region& r) { return a < r.device; });
  if (after == all.begin() || !holds(*--after))
    return nullptr;
  return recent_ = &*after;
}

uint8_t* watcher::undefined_at(const region* r, uint64_t address) const {
  return r && r->undefined ? r->undefined + (address - r->device) : nullptr;
}

void watcher::lanes_access(warp& w, const operation& o, const uint64_t* addresses, uint32_t bytes,
  bool write, const uint8_t* const* host) {
  lane_places places;
  places.bytes = bytes;
  places.active = w.active;
  const bool strong = (o.traits & trait_strong) != 0;
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    places.undefined[l] = nullptr;
    if (!is_active(w, l))
      continue;
    space where =
      o.where == space::parameter || o.where == space::constant ? space::global : o.where;
    if (where == space::generic) {
      const uint64_t window = addresses[l] & window_mask;
      where = window == shared_window ? space::shared
        : window == local_window      ? space::local
                                      : space::global;
    }
    candidate values;
    values.lane = l;
    values.bytes = bytes;
    values.host = host[l];
    values.is_shared = where == space::shared;
    if (write && orders_)
      std::copy_n(host[l], std::min<size_t>(bytes, sizeof values.old), values.old);
    if (where == space::global) {
      const region* r = region_at(*w.block, addresses[l]);
      places.undefined[l] = undefined_at(r, addresses[l]);
      places.outputs |= static_cast<uint32_t>(r && r->is_output) << l;
      if (!orders_ || !r || !r->writable)
        continue;
      if (strong)
        exchange(w, o, nullptr, addresses[l]);
      if (on(check::global_races))
        touch_range(w, nullptr, addresses[l], bytes, write, strong, l, &values);
      continue;
    }
    const uint64_t address = addresses[l] & UINT32_MAX;
    if (where == space::local) {
      if (values_)
        places.undefined[l] = w.block->shadow->local_undefined.data()
          + (uint64_t{w.id} * warp_lanes + l) * w.block->local_bytes + address;
      continue;
    }
    block_state& owner = address > shared_offset_mask
      ? *w.block->cluster->blocks[(address >> rank_shift) - 1]
      : *w.block;
    const uint64_t offset = address & shared_offset_mask;
    if (values_)
      places.undefined[l] = owner.shadow->shared_undefined.data() + offset;
    if (!orders_)
      continue;
    if (strong)
      exchange(w, o, &owner, offset);
    touch_range(w, &owner, offset, bytes, write, strong, l, &values);
  }
  if (released_)
    ++shadow_of(w).time;
  released_ = false;
  if (values_)
    places_.push_back(places);
}

void watcher::global_range(warp& w, const operation& o, const region& r, uint64_t address,
  uint64_t bytes, bool write, uint32_t lane) {
  if (orders_ && r.writable && bytes > 0 && on(check::global_races)) {
    const bool adds = o.run == bulk_reduce || o.run == tensor_reduce;
    touch_range(w, nullptr, address, bytes, write, adds, lane, nullptr);
  }
  uint8_t* const undefined = values_ ? undefined_at(&r, address) : nullptr;
  if (!write || undefined == nullptr)
    return;
  // What a bulk copy takes from shared memory, where that is the range before this one.
  const bool from_nobody = !ranges_.empty() && ranges_.back().undefined != nullptr
    && (o.run == bulk_to_global || o.run == bulk_reduce)
    && std::find(ranges_.back().undefined, ranges_.back().undefined + ranges_.back().bytes, 1)
      != ranges_.back().undefined + ranges_.back().bytes;
  if (from_nobody && r.is_output && on(check::uninitialised))
    report_undefined(w, at_, lane, static_cast<uint32_t>(at_), "is stored as a result");
  std::fill_n(undefined, bytes, uint8_t{0});
}

void watcher::shared_range(
  warp& w, block_state& owner, uint64_t address, uint64_t bytes, bool write, uint32_t lane) {
  if (bytes == 0)
    return;
  if (orders_)
    touch_range(w, &owner, address, bytes, write, false, lane, nullptr);
  if (!values_)
    return;
  uint8_t* const undefined = owner.shadow->shared_undefined.data() + address;
  ranges_.push_back({undefined, bytes, lane});
  // Registers that stmatrix stores are looked at afterwards.
  if (write)
    std::fill_n(undefined, bytes, uint8_t{0});
}

void watcher::tensor_unwritten(uint32_t i, uint32_t lanes) {
  tensor_unwritten_.resize(i + 1);
  tensor_unwritten_[i] = lanes;
}

void watcher::tensor_fence_missing(warp& w, uint32_t written_by, uint32_t lane) {
  if (!is_new(fault_kind::missing_tensor_fence, at_, written_by))
    return;
  const executed_place other =
    place_of(code_, what_, w.block->number, written_by, w.id * warp_lanes + lane);
  add(w, at_, fault_kind::missing_tensor_fence, lane,
    "a wait has told that tensor memory is written, and no tcgen05.fence::after_thread_sync lies "
    "between the wait and this; it was written at "
      + place_text(other.ptx_line, other.source),
    &other);
}

bool watcher::is_new(fault_kind kind, size_t at, size_t other) {
  const auto line_of = [&](size_t operation) {
    return operation < code_.operations.size()
      ? code_.sources[code_.operations[operation].source].line
      : 0;
  };
  const auto [found, fresh] =
    seen_.try_emplace({kind, line_of(at), line_of(other)}, findings_.size());
  if (fresh && findings_.size() < findings_max)
    return true;
  if (fresh) {
    seen_.erase(found);
    ++left_out_;
  } else {
    ++findings_[found->second].times;
  }
  return false;
}

void watcher::add(warp& w, size_t at, fault_kind kind, uint32_t lane, const std::string& what,
  const executed_place* other) {
  findings_.push_back(describe_fault(w, at, kind, what, lane));
  if (other)
    findings_.back().other = *other;
}

executed_place watcher::place_of_access(const remembered& r) const {
  const uint64_t number = r.who / 2 - 1;
  return place_of(code_, what_, number / warps_, r.operation(),
    static_cast<uint32_t>(number % warps_) * warp_lanes + r.lane());
}

std::vector<fault> watcher::take_findings() {
  // A read that races with the write may come first, and then finds what nobody has written.
  const auto races_at = [&](int line) {
    return std::any_of(findings_.begin(), findings_.end(), [&](const fault& f) {
      return (f.kind == fault_kind::shared_race || f.kind == fault_kind::global_race)
        && (f.ptx_line == line || (f.other && f.other->ptx_line == line));
    });
  };
  std::vector<fault> kept;
  for (const fault& f : findings_)
    if (f.kind != fault_kind::uninitialised || !f.other || !races_at(f.other->ptx_line))
      kept.push_back(f);
  return kept;
}

} // namespace gristmill::ptx
