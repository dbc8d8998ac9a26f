#include "gpu/mock/ptx/timing.hpp"

#include "gpu/mock/ptx/bulk_ops.hpp"
#include "gpu/mock/ptx/expansion.hpp"
#include "gpu/mock/ptx/tensor_copy.hpp"
#include "gpu/mock/ptx/warp.hpp"

#include <algorithm>

namespace gristmill::ptx {
namespace {

/// How far ptxas unrolls a loop whose trips it does not know, and how large its body may be.
constexpr uint32_t unrolled_turns = 4;
constexpr size_t unrolled_operations_max = 64;
/// Over how many operations a branch becomes a predicate.
constexpr size_t predicated_operations_max = 8;

bool is_arithmetic(category of) {
  return of == category::integer || of == category::fp32 || of == category::fp16
    || of == category::fp64 || of == category::sfu || of == category::convert;
}

/// Machine instructions of an operation.
uint32_t machine_instructions(const operation& o) {
  return o.hidden ? 0 : o.expands == 0 ? 1 : expansions()[o.expands].issue / 8U;
}

uint32_t latency(const warp& w, const operation& o) {
  if (o.expands != 0) {
    const expansion& is = expansions()[o.expands];
    return is.issue == 0 ? 0 : std::max<uint32_t>(is.cycles, w.block->what->hw.alu_latency);
  }
  const hardware& hw = w.block->what->hw;
  const uint32_t memory = w.memory_level == 0 ? hw.l1_latency
    : w.memory_level == 1                     ? hw.l2_latency
                                              : hw.dram_latency;
  switch (o.counted) {
  case category::fp16:
  case category::fp64:
    return hw.half_latency;
  case category::sfu:
    return hw.sfu_latency;
  case category::convert:
    return hw.convert_latency;
  case category::load_shared:
  case category::atomic_shared:
  case category::shuffle:
    return hw.shared_latency;
  case category::load_global:
  case category::atomic_global:
  case category::async:
    return memory;
  case category::load_local:
    return hw.l1_latency;
  case category::mma:
    return hw.mma_latency;
  default:
    return hw.alu_latency;
  }
}

} // namespace

void warp_timing::prepare(const kernel& code) {
  registers.assign(code.registers.size(), 0);
  predicates.assign(code.predicates, 0);
}

void warp_timing::start_block() {
  std::fill(registers.begin(), registers.end(), 0);
  std::fill(predicates.begin(), predicates.end(), 0);
  results.fill(0);
  next_result = 0;
  now = latest_start = instructions = turns = copy_group = 0;
  copy_groups.clear();
}

std::vector<bool> find_smoothed(const kernel& code) {
  std::vector<bool> out(code.operations.size());
  for (size_t i = 0; i < code.operations.size(); ++i) {
    const operation& branch = code.operations[i];
    if (branch.kind != flow::branch)
      continue;
    const auto at = [&](size_t n) {
      return code.operations.begin() + static_cast<std::ptrdiff_t>(n);
    };
    if (branch.target > i) {
      out[i] = branch.target - i <= predicated_operations_max + 1
        && std::all_of(at(i + 1), at(branch.target),
          [](const operation& o) { return o.kind == flow::straight; });
      continue;
    }
    if (i - branch.target > unrolled_operations_max)
      continue;
    out[i] = std::all_of(at(branch.target), at(i), [](const operation& o) {
      return o.kind == flow::straight && o.counted != category::mma && o.counted != category::async
        && o.counted != category::store_global && o.counted != category::store_shared
        && o.counted != category::atomic_global && o.counted != category::atomic_shared;
    });
  }
  return out;
}

void warp_timing::end_stretch() {
  now = std::max(now + instructions, latest_start);
  latest_start = now;
  instructions = 0;
  turns = 0;
}

void account(warp& w, const operation& o) {
  warp_timing& t = w.timing;
  const kernel& code = *w.block->code;
  const auto& range = code.operand_ranges[static_cast<size_t>(&o - code.operations.data())];
  const uint32_t* const touched = code.touched.data() + range.first;
  const auto ready = [&](uint32_t number) -> uint32_t& {
    return number & predicate_mark ? t.predicates[number & ~predicate_mark] : t.registers[number];
  };
  uint32_t start = t.now;
  for (uint32_t i = 0; i < range.reads; ++i)
    start = std::max(start, ready(touched[i]));
  t.instructions += machine_instructions(o);
  if (o.kind == flow::branch || o.kind == flow::indexed_branch) {
    const auto number = static_cast<size_t>(&o - code.operations.data());
    const bool is_smoothed = (*w.block->smoothed)[number];
    if (is_smoothed && o.target > number)
      return;
    t.latest_start = std::max(t.latest_start, start);
    if (is_smoothed && ++t.turns < unrolled_turns)
      return;
    t.end_stretch();
    t.now += w.block->what->hw.alu_latency;
    return;
  }
  const bool in_window = !o.hidden && is_arithmetic(o.counted);
  if (in_window)
    start = std::max(start, t.results[t.next_result % reorder_window]);
  const uint32_t arrival = start + latency(w, o);
  if (in_window)
    for (uint32_t i = std::min<uint32_t>(machine_instructions(o), reorder_window); i > 0; --i)
      t.results[t.next_result++ % reorder_window] = arrival;
  bool waits = false;
  if (o.run == copy_async) {
    t.copy_group = std::max(t.copy_group, arrival);
  } else if (o.run == bulk_to_shared || o.run == tensor_load) {
    w.block->bulk_ready = std::max(w.block->bulk_ready, arrival);
  } else if (o.run == mbarrier_test) {
    start = std::max(start, w.block->bulk_ready);
    waits = true;
  } else if (o.run == copy_commit) {
    t.copy_groups.push_back(t.copy_group);
    t.copy_group = 0;
  } else if (o.run == copy_wait) {
    // `imm` of the newest groups may still be under way.
    while (static_cast<int64_t>(t.copy_groups.size()) > o.imm) {
      start = std::max(start, t.copy_groups.front());
      t.copy_groups.erase(t.copy_groups.begin());
    }
    waits = true;
  }
  for (uint32_t i = 0; i < range.writes; ++i)
    ready(touched[range.reads + i]) = arrival;
  t.latest_start = std::max(t.latest_start, start);
  if (waits)
    t.end_stretch();
}

} // namespace gristmill::ptx
