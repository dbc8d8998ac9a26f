#include "gpu/mock/ptx/lanes/lanes.hpp"
#include "gpu/mock/ptx/report.hpp"
#include "gpu/mock/ptx/tcgen05.hpp"
#include "gpu/mock/ptx/watch/watcher.hpp"
#include "gpu/mock/ptx/wgmma.hpp"

#include <fmt/format.h>

/// Registers of wgmma and of tcgen05.ld. A product uses its accumulators and its left operand until
/// `wait_group`, and what other instructions wrote to them before has to be followed by
/// `wgmma.fence`. Moves from register to register carry the state along: front ends emit them
/// between products, and the assembler takes them out.
namespace gristmill::ptx {

void watcher::watch_products(warp& w, const operation& o) {
  warp_shadow& s = shadow_of(w);
  const kernel::operands& range = code_.operand_ranges[at_];
  const uint32_t* const touched = code_.touched.data() + range.first;
  const auto busy = [&](uint32_t reg) { return s.in_group[reg] > s.completed; };
  const auto numbered = [](uint32_t entry) { return (entry & predicate_mark) == 0; };
  if (o.run == wgmma_fence) {
    ++s.fences;
    return;
  }
  if (o.run == wgmma_commit) {
    ++s.committed;
    return;
  }
  if (o.run == wgmma_wait) {
    const int64_t done = int64_t{s.committed} - o.imm;
    if (done > int64_t{s.completed})
      s.completed = static_cast<uint32_t>(done);
    return;
  }
  if (o.run == tensor_wait_loads) {
    ++s.load_waits;
    return;
  }
  const auto report = [&](fault_kind kind, uint32_t reg, const char* what) {
    const uint32_t by = s.used_by[reg];
    if (!is_new(kind, at_, by))
      return;
    const executed_place other =
      place_of(code_, what_, w.block->number, by, w.id * warp_lanes + first_lane(w.active));
    add(w, at_, kind, first_lane(w.active),
      fmt::format("{} {}", what, place_text(other.ptx_line, other.source)), &other);
  };
  if (o.run == wgmma_multiply) {
    const uint32_t group = s.committed + 1;
    if (s.fences == 0 && is_new(fault_kind::missing_wgmma_fence, at_, code_.operations.size()))
      add(w, at_, fault_kind::missing_wgmma_fence, first_lane(w.active),
        "no wgmma.fence was executed before the first wgmma", nullptr);
    for (uint32_t i = 0; i < static_cast<uint32_t>(range.reads) + range.writes; ++i) {
      const uint32_t reg = touched[i];
      // Descriptors have 8 bytes, accumulators and left operands 4.
      if (!numbered(reg) || code_.registers[reg].bytes != 4 || code_.registers[reg].fixed)
        continue;
      if (s.written_at[reg] == s.fences + 1)
        report(fault_kind::missing_wgmma_fence, reg,
          "a register of this wgmma was written, and no wgmma.fence lies between, at");
      s.in_group[reg] = group;
      s.used_by[reg] = static_cast<uint32_t>(at_);
    }
    return;
  }
  const bool is_move = o.run == lanes().move[1];
  if (is_move && range.reads >= 1 && range.writes == 1 && numbered(touched[0])
    && numbered(touched[range.reads])) {
    const uint32_t from = touched[0];
    const uint32_t to = touched[range.reads];
    s.in_group[to] = s.in_group[from];
    s.used_by[to] = s.used_by[from];
    s.written_at[to] = code_.registers[from].fixed ? 0 : s.written_at[from];
    s.loading[to] = s.loading[from];
    return;
  }
  for (uint32_t i = 0; i < range.reads; ++i)
    if (numbered(touched[i]) && s.loading[touched[i]] == s.load_waits)
      report(fault_kind::missing_tensor_wait, touched[i],
        "reads a register before tcgen05.wait::ld has waited for the load that fills it, at");
    else if (numbered(touched[i]) && busy(touched[i]))
      report(fault_kind::missing_wgmma_wait, touched[i],
        "reads a register before wgmma.wait_group has waited for the wgmma that uses it, at");
  for (uint32_t i = range.reads; i < static_cast<uint32_t>(range.reads) + range.writes; ++i) {
    const uint32_t reg = touched[i];
    if (!numbered(reg))
      continue;
    if (busy(reg))
      report(fault_kind::missing_wgmma_wait, reg,
        "writes a register before wgmma.wait_group has waited for the wgmma that uses it, at");
    s.in_group[reg] = 0;
    s.loading[reg] = o.run == tensor_load_registers ? s.load_waits : 0;
    s.written_at[reg] = s.fences + 1;
    s.used_by[reg] = static_cast<uint32_t>(at_);
  }
}

} // namespace gristmill::ptx
