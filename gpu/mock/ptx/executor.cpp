#include "gpu/mock/ptx/executor.hpp"

#include "gpu/mock/ptx/report.hpp"
#include "gpu/mock/ptx/watch/watcher.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gristmill::ptx {
namespace {

void find_lowest(warp& w) {
  w.lowest = UINT32_MAX;
  for (const warp::group& g : w.groups)
    if (!g.parked)
      w.lowest = std::min(w.lowest, g.pc);
}

/// Lanes that wait at this very operation join those that arrive.
void absorb(warp& w) {
  bool any = false;
  std::erase_if(w.groups, [&](const warp::group& g) {
    if (g.pc != w.pc)
      return false;
    w.running |= g.mask;
    return any = true;
  });
  if (any)
    find_lowest(w);
}

void run_group(warp& w, uint32_t pc) {
  w.pc = pc;
  w.running = 0;
  absorb(w);
  find_lowest(w);
}

/// Goes on with the group of the lowest pc. False when all are parked, or there is none.
bool choose(warp& w) {
  find_lowest(w);
  if (w.lowest == UINT32_MAX)
    return false;
  run_group(w, w.lowest);
  return true;
}

void set_aside(warp& w, uint32_t pc, uint32_t mask, bool parked) {
  w.groups.push_back({pc, mask, parked});
  if (!parked)
    w.lowest = std::min(w.lowest, pc);
}

/// The group that has waited longest gets a turn.
void rotate(warp& w) {
  const auto next =
    std::find_if(w.groups.begin(), w.groups.end(), [](const warp::group& g) { return !g.parked; });
  if (next == w.groups.end())
    return;
  const uint32_t pc = next->pc;
  if (w.running != 0)
    set_aside(w, w.pc, w.running, false);
  run_group(w, pc);
  w.lowest = UINT32_MAX; // Nobody interrupts this turn.
}

/// Lanes have exited: whoever waited for them has to look again.
void wake_all(warp& w) {
  for (warp::group& g : w.groups)
    g.parked = false;
  find_lowest(w);
}

void leave(warp& w, uint32_t exiting) {
  w.live &= ~exiting;
  w.running &= ~exiting;
  wake_all(w);
  if (w.running != 0)
    ++w.pc;
  else if (!choose(w))
    w.status = warp_status::done;
}

void note_divergence(warp& w) {
  if (w.block->diverged)
    ++(*w.block->diverged)[w.pc];
}

void branch(warp& w, uint32_t taken, uint32_t target) {
  if (taken == w.running) {
    w.pc = target;
  } else if (taken == 0) {
    ++w.pc;
  } else {
    ++w.block->done->divergent_branches;
    note_divergence(w);
    set_aside(w, target, taken, false);
    set_aside(w, w.pc + 1, w.running & ~taken, false);
    choose(w);
  }
}

void indexed_branch(warp& w, const operation& o, uint32_t taken) {
  const auto* index = lane_values<const uint32_t>(w, o.a);
  const uint32_t rest = w.running & ~taken;
  uint32_t ways = rest != 0 ? 1 : 0;
  for (uint32_t left = taken; left != 0;) {
    const uint32_t lane = first_lane(left);
    if (index[lane] >= o.list_size)
      raise(fault_kind::trap, fmt::format("index {} of {} labels", index[lane], o.list_size), lane);
    uint32_t same = 0;
    for (uint32_t l = 0; l < warp_lanes; ++l)
      same |= static_cast<uint32_t>(index[l] == index[lane]) << l;
    same &= left;
    set_aside(w, o.list[index[lane]], same, false);
    left &= ~same;
    ++ways;
  }
  if (rest != 0)
    set_aside(w, w.pc + 1, rest, false);
  w.block->done->divergent_branches += ways > 1 ? 1 : 0;
  if (ways > 1)
    note_divergence(w);
  choose(w);
}

void warn(warp& w, const operation& o, const char* what) {
  const source_line& source = w.block->code->sources[o.source];
  w.block->warnings->insert(fmt::format("{} ({}: `{}`)", what,
    place_text(source.line, source_of(*w.block->code, source)), one_line(source.text)));
}

/// All lanes of a warp wait for others of it: to blame is the mask that waits longest.
[[noreturn]] void nobody_comes(warp& w) {
  const std::vector<operation>& code = w.block->code->operations;
  const auto first = std::find_if(w.groups.begin(), w.groups.end(),
    [&](const warp::group& g) { return code[g.pc].kind == flow::warp_sync; });
  const warp::group& blamed = first != w.groups.end() ? *first : w.groups.front();
  const uint32_t lane = first_lane(blamed.mask);
  w.pc = blamed.pc;
  const uint32_t named = lane_values<const uint32_t>(w, code[blamed.pc].e)[lane];
  raise(fault_kind::bad_mask,
    fmt::format("the mask 0x{:08x} names lanes that never arrive: 0x{:08x}", named,
      named & w.live & ~blamed.mask),
    lane);
}

/// Executes the operation for each set of lanes whose mask is complete; the others wait here.
/// Returns those lanes that wait.
uint32_t synchronise(warp& w, const operation& o, uint32_t active) {
  const auto* masks = lane_values<const uint32_t>(w, o.e);
  uint32_t waiting = 0;
  for (uint32_t left = active; left != 0;) {
    const uint32_t lane = first_lane(left);
    const uint32_t named = masks[lane];
    uint32_t same = 0;
    for (uint32_t l = 0; l < warp_lanes; ++l)
      same |= static_cast<uint32_t>(masks[l] == named) << l;
    same &= left;
    left &= ~same;
    if ((same & ~named) != 0)
      raise(fault_kind::bad_mask,
        fmt::format("the mask 0x{:08x} does not name a lane that executes the instruction", named),
        first_lane(same & ~named));
    const uint32_t missing = named & w.live & ~same;
    if (missing == 0) {
      if ((named & w.full & ~w.live) != 0 && o.counted != category::barrier)
        warn(w, o, "the mask names lanes that have exited");
      w.active = same;
      if (w.block->watch)
        w.block->watch->run(w, o);
      else
        o.run(w, o);
      continue;
    }
    if ((missing & ~w.running) == 0)
      raise(fault_kind::bad_mask,
        fmt::format("the mask 0x{:08x} names lanes that are at this instruction but do not execute "
                    "it with this mask",
          named),
        first_lane(missing));
    waiting |= same;
  }
  const uint32_t going_on = w.running & ~waiting;
  if (waiting != 0)
    set_aside(w, w.pc, waiting, true);
  if (going_on != 0) {
    w.running = going_on;
    ++w.pc;
    return waiting;
  }
  w.running = 0;
  if (!choose(w))
    nobody_comes(w);
  return waiting;
}

/// Looks in a row at memory that nobody changed: the first ones may be chance, and the later ones
/// end turns at one place in the code, so that the state of the warp can be compared.
constexpr uint32_t polls_max = 32;
constexpr uint32_t polls_at_one_place = 8;

void poll(warp& w) {
  if (w.polled_changes != *w.block->changes) {
    w.polled_changes = *w.block->changes;
    w.polls = 0;
  }
  if (++w.polls < (w.pc == w.poll_pc ? polls_at_one_place : polls_max))
    return;
  w.poll_pc = w.pc;
  w.polls = 0;
  w.yields = true;
}

enum class arrival { waits_for_lanes, goes_on, stops };

arrival arrive_at_barrier(warp& w, const operation& o, uint32_t active) {
  if (active != w.running)
    raise(fault_kind::barrier_divergence,
      "a barrier that only part of the lanes execute, by their predicate",
      first_lane(w.running & ~active));
  if (w.running != w.live) {
    const uint32_t pc = w.pc;
    const uint32_t here = w.running;
    set_aside(w, w.pc, w.running, true);
    w.running = 0;
    if (!choose(w)) {
      w.pc = pc;
      raise(fault_kind::barrier_divergence,
        fmt::format(
          "lanes 0x{:08x} of a warp are at this barrier while the others wait elsewhere", here),
        first_lane(here));
    }
    return arrival::waits_for_lanes;
  }
  if (w.live != w.full)
    warn(w, o, "a barrier after some lanes of a warp have exited");
  const uint32_t lane = first_lane(w.live);
  const uint64_t number =
    o.imm >= 0 ? static_cast<uint64_t>(o.imm) : lane_values<const uint32_t>(w, o.a)[lane];
  if (o.imm < 0 && number >= 16)
    raise(fault_kind::trap, fmt::format("barrier number {}; there are 16", number), lane);
  block_barrier& b = w.block->barriers[number];
  const uint32_t expected = o.elements == 2 ? lane_values<const uint32_t>(w, o.b)[lane] : 0;
  if (o.elements == 2 && (expected == 0 || expected % warp_lanes != 0))
    raise(fault_kind::trap,
      fmt::format("a barrier of {} threads; it has to be a multiple of 32", expected), lane);
  ++*w.block->changes;
  if (w.block->watch)
    w.block->watch->arrives_at_barrier(w, number);
  b.arrived += warp_lanes;
  b.expected = expected;
  if (o.mode >= 2) {
    const uint32_t yes = (w.predicates[o.r] ^ (o.bytes == 1 ? all_lanes : 0)) & w.live;
    b.trues += lanes_in(yes);
    b.all = b.all && yes == w.live;
    b.any = b.any || yes != 0;
  }
  ++w.pc;
  if (o.mode == 1)
    return arrival::goes_on;
  w.barrier = static_cast<uint32_t>(number);
  w.barrier_reduction = o.mode >= 2 ? &o : nullptr;
  w.status = warp_status::at_barrier;
  return arrival::stops;
}

/// Executes [w.pc, end), all straight, in which no lanes join. Counted as a whole.
void run_straight(warp& w, const operation* code, uint32_t end) {
  straight_counts* const counted = w.block->straight->data();
  const uint32_t first = w.pc;
  const uint32_t running = w.running;
  const auto count = [&](uint32_t behind) {
    const uint64_t lanes = lanes_in(running);
    ++counted[first].instructions;
    --counted[behind].instructions;
    counted[first].lanes += lanes;
    counted[behind].lanes -= lanes;
    const std::vector<uint32_t>& visible = w.block->code->visible_before;
    w.steps += visible[behind] - visible[first];
  };
  const uint32_t* const predicates = w.predicates;
  try {
    for (uint32_t i = first; i != end; ++i) {
      const operation& o = code[i];
      w.pc = i;
      if (o.guard < 0) {
        w.active = running;
        o.run(w, o);
        continue;
      }
      const uint32_t active =
        running & (o.guard_negated ? ~predicates[o.guard] : predicates[o.guard]);
      if (const uint32_t idle = running & ~active; idle != 0) {
        const uint64_t lanes = lanes_in(idle);
        counted[i].lanes -= lanes;
        counted[i + 1].lanes += lanes;
        if (active == 0)
          continue;
      }
      w.active = active;
      o.run(w, o);
    }
  } catch (const fault_signal&) {
    count(w.pc + 1);
    throw;
  }
  count(end);
  w.pc = end;
}

/// What a loop over operations does besides executing them.
enum class beside : uint8_t { nothing, timing, watching };

template <beside Beside>
void run(warp& w, uint64_t budget) {
  constexpr bool Timing = Beside == beside::timing;
  constexpr bool Watching = Beside == beside::watching;
  const operation* const code = w.block->code->operations.data();
  operation_counts* const counted = w.block->operations->data();
  const uint32_t* const straight_ends = w.block->code->straight_ends.data();
  while (budget-- > 0) {
    if (w.pc >= w.lowest) {
      set_aside(w, w.pc, w.running, false);
      choose(w);
    }
    if constexpr (Beside == beside::nothing) {
      const uint32_t ahead = std::min(straight_ends[w.pc], w.lowest) - w.pc;
      const auto end = w.pc + static_cast<uint32_t>(std::min<uint64_t>(ahead, budget + 1));
      if (end > w.pc) {
        budget -= end - w.pc - 1;
        run_straight(w, code, end);
        continue;
      }
    }
    const operation& o = code[w.pc];
    if (o.kind >= flow::warp_sync && !w.groups.empty())
      absorb(w);
    uint32_t active = w.running;
    if (o.guard >= 0)
      active &= o.guard_negated ? ~w.predicates[o.guard] : w.predicates[o.guard];
    operation_counts& n = counted[w.pc];
    ++n.instructions;
    n.lanes += lanes_in(active);
    w.steps += o.hidden ? 0 : 1;
    if constexpr (Timing)
      w.memory_level = 0;
    if constexpr (Watching)
      if (o.guard >= 0 || o.kind == flow::indexed_branch)
        w.block->watch->decides(w, o);
    switch (o.kind) {
    case flow::straight:
      if (active != 0) {
        w.active = active;
        if constexpr (Watching)
          w.block->watch->run(w, o);
        else
          o.run(w, o);
      }
      if constexpr (Timing)
        account(w, o);
      ++w.pc;
      break;
    case flow::branch:
      if constexpr (Timing)
        account(w, o);
      branch(w, active, o.target);
      break;
    case flow::indexed_branch:
      if constexpr (Timing)
        account(w, o);
      indexed_branch(w, o, active);
      break;
    case flow::exit:
      if (active == 0)
        ++w.pc;
      else
        leave(w, active);
      if (w.status == warp_status::done)
        return;
      break;
    case flow::warp_sync:
      if (active == 0)
        ++w.pc;
      else if (const uint32_t waiting = synchronise(w, o, active); waiting != 0) {
        // They will be here again, and be counted then.
        n.lanes -= lanes_in(waiting);
        if (waiting == active) {
          --n.instructions;
          --w.steps;
        }
      }
      if constexpr (Timing)
        account(w, o);
      break;
    case flow::block_barrier:
      if (active == 0) {
        ++w.pc;
        break;
      }
      if constexpr (Timing)
        w.timing.end_stretch();
      switch (arrive_at_barrier(w, o, active)) {
      case arrival::stops:
        return;
      case arrival::waits_for_lanes:
        --n.instructions; // They will be here again, and be counted then.
        --w.steps;
        n.lanes -= lanes_in(active);
        break;
      case arrival::goes_on:
        break;
      }
      break;
    case flow::waiting:
      if (active != 0) {
        w.active = active;
        if constexpr (Watching)
          w.block->watch->run(w, o);
        else
          o.run(w, o);
      }
      if constexpr (Timing)
        account(w, o);
      if (o.polls)
        poll(w);
      if (w.again) {
        // They will be here again, and be counted then.
        w.again = false;
        --n.instructions;
        n.lanes -= lanes_in(active);
      } else {
        ++w.pc;
      }
      if (w.yields) {
        w.turn_over = !w.groups.empty();
        return;
      }
      break;
    }
  }
  w.turn_over = !w.groups.empty();
}

constexpr uint64_t turn = 1024;

void run_beside(warp& w, uint64_t budget) {
  if (w.block->watch)
    run<beside::watching>(w, budget);
  else if (w.block->what->timing)
    run<beside::timing>(w, budget);
  else
    run<beside::nothing>(w, budget);
}

} // namespace

void execute(warp& w, uint64_t budget) {
  w.yields = false;
  if (w.turn_over) {
    w.turn_over = false;
    rotate(w);
    budget = std::min(budget, turn);
  } else {
    find_lowest(w);
  }
  run_beside(w, budget);
}

bool run_to_back_edge(warp& w, uint32_t& at, uint32_t most) {
  while (most-- > 0) {
    const uint32_t before = w.pc;
    run_beside(w, 1);
    if (w.status != warp_status::running || w.yields)
      return false;
    if (w.pc <= before && (at == UINT32_MAX || at == w.pc)) {
      at = w.pc;
      return true;
    }
  }
  return false;
}

} // namespace gristmill::ptx
