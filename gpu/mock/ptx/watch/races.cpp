#include "gpu/mock/ptx/report.hpp"
#include "gpu/mock/ptx/watch/watcher.hpp"
#include "gpu/mock/ptx/wgmma.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

/// The order of accesses. A warp knows what happened before by its own program, by barriers, by
/// mbarriers, and by strong accesses behind a fence of whoever wrote. Between the lanes of a warp
/// every warp-synchronous instruction counts as an order.
namespace gristmill::ptx {
namespace {

constexpr uint32_t strong_bit = 1;

std::string thread_text(const executed_place& p) {
  return fmt::format("block ({}, {}, {}), thread ({}, {}, {})", p.block[0], p.block[1], p.block[2],
    p.thread[0], p.thread[1], p.thread[2]);
}

} // namespace

bool watcher::ordered(const warp& w, const remembered& r, uint32_t lane) {
  const actor own = actor_of(w);
  const warp_shadow& me = shadow_of(w);
  if (r.who == 0)
    return true;
  if (r.who == own)
    return r.lane() == lane || r.time < me.time;
  return me.known.happened.knows(r.who, r.time);
}

void watcher::report_race(
  warp& w, const remembered& before, bool wrote, bool write, uint32_t lane, bool is_shared) {
  const fault_kind kind = is_shared ? fault_kind::shared_race : fault_kind::global_race;
  if (!is_new(kind, at_, before.operation()))
    return;
  const executed_place other = place_of_access(before);
  const bool copies = doing_[at_] != doing::nothing;
  const bool same_warp = before.who == actor_of(w);
  add(w, at_, kind, lane,
    fmt::format("{} of {} memory that {} at {} ({}) {}, and no {} lies between",
      copies ? (write ? "a copy's write" : "a copy's read") : (write ? "write" : "read"),
      is_shared ? "shared" : "global", before.is_copy() ? "a copy issued" : "a thread",
      place_text(other.ptx_line, other.source), thread_text(other), wrote ? "wrote" : "read",
      before.is_copy() ? "wait for that copy"
        : same_warp    ? "synchronisation of the warp's lanes"
        : is_shared    ? "barrier"
                       : "barrier or fence with a flag"),
    &other);
}

void watcher::touch(warp& w, cell& c, uint32_t mask, bool write, bool strong, uint32_t lane,
  bool is_shared, const candidate* values) {
  const bool copies = doing_[at_] != doing::nothing;
  warp_shadow& me = shadow_of(w);
  const remembered now{actor_of(w) + (copies ? 1U : 0U), copies ? me.copy_time : me.time,
    static_cast<uint32_t>(at_) << 13 | lane << 8 | mask << 4 | (strong ? strong_bit : 0U)};
  const auto meets = [&](const remembered& r) {
    if (r.who == 0 || (r.bytes() & mask) == 0 || (r.strong() && strong))
      return false;
    // One copy or product touches a place more than once, for several warps or lines.
    if (r.who == now.who && copies && r.time == now.time)
      return false;
    return !ordered(w, r, lane);
  };
  const bool races = is_shared ? on(check::shared_races) : on(check::global_races);
  if (races && meets(c.write)) {
    if (write && values && !c.write.is_copy()) {
      candidates_.push_back(*values);
      candidates_.back().before = c.write;
      candidates_.back().at_once =
        std::find(written_.begin(), written_.end(), &c) != written_.end();
    } else {
      report_race(w, c.write, true, write, lane, is_shared);
    }
  } else if (copies && !write && is_shared && on(check::fences) && doing_[at_] != doing::copy
    && c.write.who != 0 && !c.write.is_copy() && (c.write.bytes() & mask) != 0
    && !me.known.fenced.knows(c.write.who, c.write.time)
    && is_new(fault_kind::missing_proxy_fence, at_, c.write.operation())) {
    const executed_place other = place_of_access(c.write);
    add(w, at_, fault_kind::missing_proxy_fence, lane,
      fmt::format("{} shared memory that a thread wrote at {} ({}), and no fence.proxy.async lies "
                  "between: it may see what was there before",
        doing_[at_] == doing::product ? "wgmma reads" : "a bulk copy reads",
        place_text(other.ptx_line, other.source), thread_text(other)),
      &other);
  }
  if (write) {
    if (races)
      for (const remembered& r : c.read)
        if (meets(r)) {
          report_race(w, r, false, true, lane, is_shared);
          break;
        }
    c.write = now;
    written_.push_back(&c);
    c.read[0] = c.read[1] = {};
    return;
  }
  remembered& place = c.read[0].who == 0 || c.read[0].who == now.who ? c.read[0]
    : c.read[1].who == 0 || c.read[1].who == now.who                 ? c.read[1]
                                                                     : c.read[0];
  if (&place == &c.read[0] && place.who != 0 && place.who != now.who) {
    c.read[0] = c.read[1];
    c.read[1] = now;
    return;
  }
  place = now;
}

void watcher::touch_range(warp& w, block_state* owner, uint64_t address, uint64_t bytes, bool write,
  bool strong, uint32_t lane, const candidate* values) {
  const uint64_t end = address + bytes;
  for (uint64_t at = address & ~uint64_t{3}; at < end; at += 4) {
    uint32_t mask = 15;
    if (at < address)
      mask &= 15U << (address - at);
    if (at + 4 > end)
      mask &= 15U >> (at + 4 - end);
    cell* const c = owner ? &owner->shadow->shared[at / 4] : global_.at(at);
    if (c == nullptr) {
      ++unwatched_;
      return;
    }
    const size_t found = candidates_.size();
    touch(w, *c, mask, write, strong, lane, owner != nullptr, values);
    // One word of an access is enough to tell.
    values = candidates_.size() > found ? nullptr : values;
  }
}

/// Of writes without an order only those are races that leave another value.
void watcher::settle_candidates(warp& w, const operation& o) {
  for (const candidate& c : candidates_) {
    bool differs = false;
    if (!c.at_once)
      differs = std::memcmp(c.old, c.host, std::min<size_t>(c.bytes, sizeof c.old)) != 0;
    else if ((o.traits & trait_access) == trait_store)
      for (uint32_t k = 0; k < o.elements && !differs; ++k) {
        const uint32_t reg = number_of(o.list[k], at_, false);
        const uint32_t width = reg == UINT32_MAX ? 0 : code_.registers[reg].bytes;
        const uint8_t* values = w.registers + o.list[k];
        differs = std::memcmp(values + c.lane * width, values + c.before.lane() * width,
                    std::min<uint32_t>(width, o.bytes))
          != 0;
      }
    if (differs)
      report_race(w, c.before, true, true, c.lane, c.is_shared);
  }
}

both_orders watcher::with_own(const warp& w) {
  both_orders all = shadow_of(w).known;
  all.happened.learn(actor_of(w), shadow_of(w).time);
  return all;
}

/// A strong access makes known, or learns.
void watcher::exchange(warp& w, const operation& o, block_state* owner, uint64_t address) {
  warp_shadow& me = shadow_of(w);
  auto& all = owner ? owner->shadow->published : published_;
  if ((o.traits & trait_load) != 0)
    if (const auto found = all.find(address); found != all.end())
      me.known.join(found->second);
  if ((o.traits & trait_store) == 0)
    return;
  const both_orders* given = owner ? &me.released_to_block : &me.released;
  both_orders own;
  if ((o.traits & trait_release) != 0) {
    own = with_own(w);
    given = &own;
    released_ = true;
  }
  const bool update = (o.traits & trait_access) == trait_update;
  if (given->happened.empty()) {
    if (!update)
      all.erase(address);
    return;
  }
  if (update)
    all[address].join(*given);
  else
    all[address] = *given;
}

void watcher::wait_for(warp& w, copy_groups& groups, int64_t left) {
  warp_shadow& me = shadow_of(w);
  while (static_cast<int64_t>(groups.committed.size()) > left) {
    me.known.happened.learn(actor_of(w) + 1, groups.committed.front());
    groups.committed.erase(groups.committed.begin());
  }
}

/// A warpgroup multiplies as one: what one of its warps has waited for is complete for all four.
void watcher::wait_for_products(warp& w, int64_t left) {
  const int64_t done = static_cast<int64_t>(shadow_of(w).products.committed.size()) - left;
  if (done <= 0)
    return;
  const auto count = static_cast<size_t>(done);
  for (uint32_t i = 0; i < 4 && (w.id & ~3U) + i < warps_; ++i) {
    const uint32_t id = (w.id & ~3U) + i;
    const std::vector<uint32_t>& times = w.block->shadow->warps[id].products.committed;
    if (times.size() >= count)
      shadow_of(w).known.happened.learn(actor_of(w) + 2 * id - 2 * w.id + 1, times[count - 1]);
  }
}

void watcher::after_order(warp& w, const operation& o) {
  warp_shadow& me = shadow_of(w);
  const auto commit = [](copy_groups& groups) {
    const uint32_t before = groups.committed.empty() ? 0 : groups.committed.back();
    groups.committed.push_back(std::max(before, groups.current));
  };
  if (o.kind == flow::warp_sync)
    ++me.time;
  if (o.run == memory_fence) {
    me.released_to_block = with_own(w);
    if ((o.traits & trait_block_scope) == 0)
      me.released = me.released_to_block;
    ++me.time;
  } else if (o.run == proxy_fence) {
    me.known.fenced.join(with_own(w).happened);
    ++me.time;
  } else if (o.run == copy_commit) {
    commit((o.mode & 1) != 0 ? me.bulk_copies : me.copies);
  } else if (o.run == copy_wait) {
    wait_for(w, (o.mode & 1) != 0 ? me.bulk_copies : me.copies, o.imm);
  } else if (o.run == wgmma_commit) {
    commit(me.products);
  } else if (o.run == wgmma_wait && !w.again) {
    wait_for_products(w, o.imm);
  } else if (o.run == cluster_arrive) {
    clusters_[w.block->cluster].join(with_own(w));
    ++me.time;
  } else if (o.run == cluster_wait && !w.again) {
    me.known.join(clusters_[w.block->cluster]);
  }
}

void watcher::arrives_at_barrier(warp& w, size_t number) {
  if (!orders_)
    return;
  barrier_shadow& b = w.block->shadow->barriers[number];
  b.known.join(with_own(w));
  b.released.join(shadow_of(w).released);
  ++shadow_of(w).time;
}

void watcher::leaves_barrier(warp& w, size_t number) {
  if (!orders_)
    return;
  const barrier_shadow& b = w.block->shadow->barriers[number];
  shadow_of(w).known.join(b.known);
  shadow_of(w).released.join(b.released);
}

void watcher::barrier_over(block_state& block, size_t number) {
  block.shadow->barriers[number] = {};
}

void watcher::mbarrier_begins(mbarrier& m) {
  mbarriers_.emplace_back();
  m.watched = static_cast<uint32_t>(mbarriers_.size());
}

void watcher::arrives(warp& w, const operation& o, mbarrier& m) {
  if (!orders_ || m.watched == 0)
    return;
  warp_shadow& me = shadow_of(w);
  both_orders known = with_own(w);
  if ((o.traits & trait_acquire) != 0)
    known.happened.learn(actor_of(w) + 1, me.copies.current);
  mbarriers_[m.watched - 1].arriving.join(known);
  ++me.time;
}

void watcher::bytes_arrive(warp& w, mbarrier& m) {
  if (!orders_ || m.watched == 0)
    return;
  both_orders known = with_own(w);
  known.happened.learn(actor_of(w) + 1, shadow_of(w).copy_time);
  mbarriers_[m.watched - 1].arriving.join(known);
}

void watcher::phase_complete(mbarrier& m) {
  if (m.watched == 0)
    return;
  mbarrier_shadow& s = mbarriers_[m.watched - 1];
  s.complete.join(s.arriving);
  s.arriving = {};
}

void watcher::waited(warp& w, const operation& o, mbarrier& m, uint32_t lane) {
  if (!orders_ || m.watched == 0)
    return;
  mbarrier_shadow& s = mbarriers_[m.watched - 1];
  shadow_of(w).known.join(s.complete);
  if (!on(check::mbarriers) || o.mode == 1 || m.phase == 0)
    return;
  auto& [phase, lanes] = s.waited[actor_of(w)];
  if (phase != m.phase)
    lanes = 0;
  phase = m.phase;
  const uint32_t bit = 1U << lane;
  if ((lanes & bit) != 0 && is_new(fault_kind::mbarrier_phase, at_, at_))
    add(w, at_, fault_kind::mbarrier_phase, lane,
      fmt::format("the wait for parity {} ends at once, for phase {} of the mbarrier was complete "
                  "long ago and this thread has waited for it before: is the parity flipped?",
        (m.phase - 1) & 1, m.phase - 1),
      nullptr);
  lanes |= bit;
}

} // namespace gristmill::ptx
