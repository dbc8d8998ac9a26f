#include "gpu/mock/ptx/tensor_memory.hpp"

#include "gpu/mock/ptx/report.hpp"
#include "gpu/mock/ptx/warp.hpp"
#include "gpu/mock/ptx/watch/watcher.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gristmill::ptx {
namespace {

std::string line_of(const kernel& code, uint32_t operation) {
  const source_line& source = code.sources[code.operations[operation].source];
  return place_text(source.line, source_of(code, source));
}

/// Whether whoever executes `use` in lane `lane` of `w` comes after that write by itself.
bool is_own(const warp& w, const tensor_stream& stream, tensor_use use, uint32_t lane) {
  if (stream.rank != w.block->rank)
    return false;
  if (stream.stores)
    return use == tensor_use::store && stream.thread == w.id * warp_lanes;
  return use == tensor_use::core && stream.thread == w.id * warp_lanes + lane;
}

void look_for_fence(
  warp& w, const tensor_stream& stream, const tensor_memory::mark& m, uint32_t lane) {
  const bool own = stream.rank == w.block->rank && stream.thread / warp_lanes == w.id;
  if (w.tensor_unfenced && !own && w.block->watch && has(w.block->what->checks, check::fences))
    w.block->watch->tensor_fence_missing(w, m.operation, lane);
}

} // namespace

uint32_t number_of(const warp& w, const operation& o) {
  return static_cast<uint32_t>(&o - w.block->code->operations.data());
}

uint32_t tensor_orders::number_of(uint32_t rank, uint32_t thread, bool stores) {
  const auto [found, is_new] =
    numbers.try_emplace({rank, thread, stores}, static_cast<uint32_t>(streams.size()));
  if (is_new)
    streams.push_back({rank, thread, stores, 0, 0});
  return found->second;
}

void tensor_orders::learn(uint32_t stream, uint64_t serial) {
  streams[stream].complete = std::max(streams[stream].complete, serial);
}

void learn_commits(tensor_orders& orders, std::vector<tensor_commit>& commits, uint64_t phase) {
  for (const tensor_commit& c : commits)
    if (c.phase < phase)
      orders.learn(c.stream, c.serial);
  std::erase_if(commits, [&](const tensor_commit& c) { return c.phase < phase; });
}

tensor_memory::tensor_memory()
  : cells_(size_t{tensor_lanes} * tensor_columns, UINT32_MAX),
    marks_(size_t{tensor_lanes} / lanes_of_mark * tensor_columns) {}

uint64_t tensor_memory::bytes() {
  return uint64_t{tensor_lanes} * tensor_columns * (4 + sizeof(mark) / lanes_of_mark);
}

uint32_t tensor_memory::find_free(uint32_t columns) const {
  uint32_t at = 0;
  for (const range& r : allocated) {
    if (r.column - at >= columns)
      return at;
    at = r.column + r.columns;
  }
  return tensor_columns - at >= columns ? at : tensor_columns;
}

void tensor_memory::allocate(uint32_t column, uint32_t columns) {
  const auto after = std::find_if(
    allocated.begin(), allocated.end(), [&](const range& r) { return r.column > column; });
  allocated.insert(after, {column, columns});
  for (uint32_t c = column; c < column + columns; ++c)
    for (uint32_t lane = 0; lane < tensor_lanes; ++lane) {
      cell(lane, c) = UINT32_MAX;
      mark_of(lane, c) = {};
    }
}

bool tensor_memory::is_allocated(uint32_t column, uint32_t columns) const {
  // Two allocations side by side may be used as one.
  const uint32_t end = column + columns;
  for (const range& r : allocated)
    if (r.column <= column && column < r.column + r.columns)
      column = r.column + r.columns;
  return column >= end;
}

void need_group(const tensor_memory& t, uint32_t group, uint32_t lane) {
  if (group != 0 && t.group != 0 && t.group != group)
    raise(fault_kind::tensor_memory,
      fmt::format("cta_group::{} after cta_group::{}: all tcgen05 of a kernel have to say the same",
        group, t.group),
      lane);
}

tensor_memory& need_tensor(block_state& owner, uint32_t group, uint32_t lane) {
  if (!owner.tensor || owner.tensor->allocated.empty())
    raise(fault_kind::tensor_memory, "tensor memory is used and none is allocated (tcgen05.alloc)",
      lane);
  need_group(*owner.tensor, group, lane);
  return *owner.tensor;
}

void need_allocated(const tensor_place& place, uint32_t lane, const char* doing) {
  if (place.lane + place.lanes > tensor_lanes)
    raise(fault_kind::tensor_memory,
      fmt::format("{} of lanes {} to {} of tensor memory, which has {}", doing, place.lane,
        place.lane + place.lanes - 1, tensor_lanes),
      lane);
  if (!place.owner->tensor || !place.owner->tensor->is_allocated(place.column, place.columns))
    raise(fault_kind::tensor_memory,
      fmt::format("{} of columns {} to {} of tensor memory, which are not all allocated", doing,
        place.column, place.column + place.columns - 1),
      lane);
}

bool note_read(warp& w, const tensor_place& place, tensor_use use, uint32_t lane,
  bool must_be_written, const char* doing) {
  tensor_memory& t = *place.owner->tensor;
  const tensor_orders& orders = w.block->cluster->tensor;
  bool written = true;
  for (uint32_t c = place.column; c < place.column + place.columns; ++c)
    for (uint32_t l = place.lane; l < place.lane + place.lanes;
         l += tensor_memory::lanes_of_mark - l % tensor_memory::lanes_of_mark) {
      const tensor_memory::mark& m = t.mark_of(l, c);
      if (m.serial == 0) {
        written = false;
        if (must_be_written)
          raise(fault_kind::uninitialised,
            fmt::format("{} of column {} of tensor memory, which nobody has written", doing, c),
            lane);
        continue;
      }
      const tensor_stream& stream = orders.streams[m.stream];
      if (is_own(w, stream, use, lane))
        continue;
      if (m.serial > stream.complete)
        raise(fault_kind::missing_tensor_wait,
          fmt::format("{} of column {} of tensor memory before {} the {} that writes it, at {}",
            doing, c,
            stream.stores ? "tcgen05.wait::st has waited for"
                          : "anybody has waited for a tcgen05.commit of",
            stream.stores ? "store" : "operation", line_of(*w.block->code, m.operation)),
          lane);
      look_for_fence(w, stream, m, lane);
    }
  return written;
}

void note_write(warp& w, const operation& o, const tensor_place& place, tensor_use use,
  uint32_t lane, uint32_t number, uint64_t serial, const char* doing) {
  tensor_memory& t = *place.owner->tensor;
  const tensor_orders& orders = w.block->cluster->tensor;
  for (const tensor_memory::pending_load& p : t.loads)
    if (p.lane < place.lane + place.lanes && place.lane < p.lane + p.lanes
      && p.column < place.column + place.columns && place.column < p.column + p.columns)
      raise(fault_kind::missing_tensor_wait,
        fmt::format("{} of columns of tensor memory that a tcgen05.ld reads (warp {}, {}), before "
                    "its tcgen05.wait::ld",
          doing, p.warp, line_of(*w.block->code, p.operation)),
        lane);
  for (uint32_t c = place.column; c < place.column + place.columns; ++c)
    for (uint32_t l = place.lane; l < place.lane + place.lanes;
         l += tensor_memory::lanes_of_mark - l % tensor_memory::lanes_of_mark) {
      tensor_memory::mark& m = t.mark_of(l, c);
      if (m.serial != 0) {
        const tensor_stream& stream = orders.streams[m.stream];
        if (!is_own(w, stream, use, lane) && m.serial > stream.complete)
          raise(fault_kind::missing_tensor_wait,
            fmt::format("{} of column {} of tensor memory while the write at {} may still be under "
                        "way: nobody has waited for it",
              doing, c, line_of(*w.block->code, m.operation)),
            lane);
      }
      m = {number, number_of(w, o), serial};
    }
}

} // namespace gristmill::ptx
