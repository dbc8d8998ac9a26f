#include "gpu/mock/ptx/waits.hpp"

#include "gpu/mock/ptx/executor.hpp"
#include "gpu/mock/ptx/memory.hpp"
#include "gpu/mock/ptx/tcgen05.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace gristmill::ptx {
namespace {

/// Operations of the longest loop that is recognised as one that only waits.
constexpr uint32_t spin_operations_max = 512;
/// Operations from where a loop looks at something to its end, when it is one that is understood.
constexpr uint32_t loop_tail_max = 16;
/// Kinds of waiting that a message lists.
constexpr size_t kinds_listed = 4;

class hash {
public:
  void add(uint64_t value) { state_ = (std::rotl(state_, 23) ^ value) * 0x9e37'79b9'7f4a'7c15; }
  void add(const void* bytes, size_t count) {
    const auto* from = static_cast<const uint8_t*>(bytes);
    for (; count >= 8; count -= 8, from += 8) {
      uint64_t word;
      std::memcpy(&word, from, 8);
      add(word);
    }
    for (; count > 0; --count, ++from)
      add(uint64_t{*from});
  }
  uint64_t value() const { return state_ ^ state_ >> 29; }

private:
  uint64_t state_ = 0x243f'6a88'85a3'08d3;
};

/// Of everything that decides what the warp does next, apart from memory.
uint64_t fingerprint(const warp& w) {
  hash h;
  const kernel& code = *w.block->code;
  h.add(uint64_t{w.pc} << 32 | w.running);
  h.add(uint64_t{w.live} << 32 | w.cluster_arrived);
  h.add(w.turn_over ? 1 : 0);
  h.add(w.clock_reads); // The next one will read another time.
  for (const warp::group& g : w.groups) {
    h.add(uint64_t{g.pc} << 32 | g.mask);
    h.add(g.parked ? 1 : 0);
  }
  h.add(w.predicates, size_t{code.predicates} * 4);
  h.add(w.registers, code.register_bytes);
  return h.value();
}

struct reason {
  std::string words;
  int line = 0;
  uint64_t warps = 0;
  std::array<uint32_t, 3> block{};
};

/// The operation at which a warp waits: one that let others run has been passed already.
uint32_t waits_at(const warp& w) {
  const std::vector<operation>& operations = w.block->code->operations;
  const uint32_t pc = std::min(w.pc, static_cast<uint32_t>(operations.size() - 1));
  if (pc == 0 || operations[pc].run == cluster_wait)
    return pc;
  const operation& before = operations[pc - 1];
  return w.status == warp_status::at_barrier || before.kind == flow::waiting ? pc - 1 : pc;
}

reason reason_of(const warp& w) {
  const kernel& code = *w.block->code;
  const operation& o = code.operations[waits_at(w)];
  reason r;
  r.warps = 1;
  r.block = w.block->index;
  r.line = code.sources[o.source].line;
  if (w.status == warp_status::at_barrier) {
    const block_barrier& b = w.block->barriers[w.barrier];
    r.words = fmt::format("barrier {} is never complete: {} threads have arrived, {} are expected",
      w.barrier, b.arrived,
      b.expected != 0 ? std::to_string(b.expected) : std::string("all that are alive"));
  } else if (o.run == cluster_wait) {
    r.words = "the barrier of the cluster is never complete";
  } else if (o.run == mbarrier_test) {
    r.words = "a phase of an mbarrier is never complete";
  } else if (o.run == tensor_allocate) {
    r.words = "tcgen05.alloc waits for columns that nobody frees";
  } else {
    r.words = "a loop waits for a change of memory that never comes";
  }
  return r;
}

} // namespace

void note_wait(warp& w) {
  const uint64_t changes = *w.block->changes;
  if (w.waited_changes != changes) {
    w.waited_changes = changes;
    w.waits = 0;
    return;
  }
  // Brent's way to find a cycle: compare with one state, and take a new one ever more rarely.
  const uint64_t now = fingerprint(w);
  if (w.waits > 0 && now == w.fingerprint)
    w.stuck_changes = changes;
  else if (std::has_single_bit(++w.waits))
    w.fingerprint = now;
}

void look_for_spin(warp& w) {
  const uint64_t changes = *w.block->changes;
  uint32_t at = UINT32_MAX;
  // Lanes that are not parked have not had their turn yet.
  const auto has_turn = [](const warp::group& g) { return !g.parked; };
  if (std::any_of(w.groups.begin(), w.groups.end(), has_turn)
    || !run_to_back_edge(w, at, spin_operations_max))
    return;
  const uint64_t before = fingerprint(w);
  if (run_to_back_edge(w, at, spin_operations_max) && before == fingerprint(w)
    && changes == *w.block->changes)
    w.stuck_changes = changes;
}

bool waits_inside(const warp& w) {
  const std::vector<operation>& operations = w.block->code->operations;
  const uint32_t at = waits_at(w);
  if (w.status == warp_status::at_barrier || operations[at].run == cluster_wait
    || operations[at].run == tensor_allocate)
    return true;
  if (std::any_of(w.groups.begin(), w.groups.end(), [](const warp::group& g) { return !g.parked; }))
    return false;
  for (uint32_t i = at; i < operations.size() && i < at + loop_tail_max; ++i) {
    if (operations[i].kind != flow::branch || operations[i].target > at)
      continue;
    return std::none_of(
      operations.begin() + operations[i].target, operations.begin() + i, [](const operation& o) {
        return o.counted == category::load_global || o.counted == category::atomic_global
          || o.kind == flow::indexed_branch || (o.kind == flow::branch && o.guard < 0);
      });
  }
  return false;
}

deadlock describe_deadlock(std::span<resident_cluster* const> waiting, uint64_t not_started) {
  deadlock result;
  std::vector<reason> reasons;
  uint64_t blocks = 0;
  for (resident_cluster* c : waiting) {
    blocks += c->blocks.size();
    for (warp* w : c->warps) {
      if (w->status == warp_status::done)
        continue;
      if (!result.first)
        result.first = w;
      reason r = reason_of(*w);
      const auto same = std::find_if(reasons.begin(), reasons.end(),
        [&](const reason& other) { return other.line == r.line && other.words == r.words; });
      if (same != reasons.end())
        ++same->warps;
      else if (reasons.size() <= kinds_listed)
        reasons.push_back(std::move(r));
    }
  }
  result.what = blocks == 1 && waits_inside(*result.first)
    ? "no warp of the block can go on"
    : fmt::format("none of the {} resident block{} can go on", blocks, blocks == 1 ? "" : "s");
  if (not_started > 0)
    result.what +=
      fmt::format(", and there is no room for the {} that have not started", not_started);
  for (size_t i = 0; i < reasons.size(); ++i) {
    const reason& r = reasons[i];
    if (i == kinds_listed) {
      result.what += "; and others";
      break;
    }
    result.what +=
      fmt::format("{} {} (PTX line {}; {} warp{}, first in block ({}, {}, {}))", i == 0 ? ":" : ";",
        r.words, r.line, r.warps, r.warps == 1 ? "" : "s", r.block[0], r.block[1], r.block[2]);
  }
  if (result.first)
    result.first->pc = waits_at(*result.first);
  return result;
}

wrong_phase find_wrong_phase(std::span<resident_cluster* const> waiting) {
  for (resident_cluster* c : waiting)
    for (warp* w : c->warps) {
      if (w->status != warp_status::running || w->live == 0)
        continue;
      const uint32_t at = waits_at(*w);
      const operation& o = w->block->code->operations[at];
      if (o.run != mbarrier_test || o.mode != 0)
        continue;
      uint64_t addresses[warp_lanes];
      addresses_of(*w, o, addresses);
      const uint32_t lane = first_lane(w->running != 0 ? w->running : w->live);
      const auto found = w->block->mbarriers.find(addresses[lane] & UINT32_MAX);
      if (found == w->block->mbarriers.end())
        continue;
      const mbarrier& m = found->second;
      const uint32_t parity = lane_values<uint32_t>(*w, o.b)[lane] & 1;
      if (m.phase == 0 || (m.phase & 1) != parity || m.pending != m.expected
        || m.pending_bytes != 0)
        continue;
      wrong_phase result;
      result.where = w;
      result.operation = at;
      result.lane = lane;
      result.what = fmt::format("waits for parity {}: phase {} of the mbarrier is complete, nobody "
                                "has arrived in phase {}, and nobody is left who will: is the "
                                "parity the wrong one?",
        parity, m.phase - 1, m.phase);
      return result;
    }
  return {};
}

} // namespace gristmill::ptx
