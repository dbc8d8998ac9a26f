#include "gpu/lease/table.hpp"

#include "gpu/lease/table_lines.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <set>

namespace gristmill {

using std::chrono::nanoseconds;

// --- estimates -------------------------------------------------------------------------------

nanoseconds lease_table::hold_of(const waiter& who) const {
  return std::min(ledger_.expected_hold(who.flow, who.what, who.est_hold), who.cap);
}

// Looking ahead costs some microseconds a waiter, so it is done anew only when enough has changed
// for it to matter, and with a long queue not too often; `exact` does it anew after any change.
const lease_table::look& lease_table::forecast(nanoseconds now, bool exact) const {
  constexpr uint64_t always_up_to = 16;
  constexpr size_t long_queue = 256;
  auto waiting = this->waiting();
  nanoseconds pause_per_waiter{waiting > long_queue ? 800'000 : 100'000};
  auto changed = changes_ - look_.changes;
  bool pause_over = now - look_.at >= pause_per_waiter * static_cast<int64_t>(waiting);
  bool due = !look_.valid
    || (changed > 0
      && (exact || waiting <= always_up_to || (pause_over && changed >= waiting / 16)));
  if (!due)
    return look_;

  std::vector<forecast_gpu> gpus;
  for (uint32_t gpu = 0; gpu < gpus_.size(); ++gpu) {
    const auto& s = gpus_[gpu];
    if (s.drained || !s.suspicion.empty())
      continue;
    if (s.phase == gpu_phase::free) {
      gpus.push_back({gpu, fits_of(gpu), now, 0, now});
    } else if (live(s) || ending(s)) {
      auto expected = hold_of(s.who);
      auto end = s.granted_at + expected;
      // Over its time already: nobody knows, so a part of the usual time more.
      if (end <= now)
        end = live(s) ? now + expected / 4 : now;
      gpus.push_back({gpu, fits_of(gpu), end, s.charge_due ? s.who.ticket : 0, s.granted_at});
    }
  }
  std::vector<forecast_waiter> waiters;
  waiters.reserve(waiting);
  for (auto at = oldest_waiter_; at != nobody; at = waiters_[at].newer) {
    const auto& who = waiters_[at].who;
    waiters.push_back({who.ticket, who.need, hold_of(who), who.deadline - now});
  }
  look_.places = look_ahead(*policy_, std::move(gpus), waiters, now);
  look_.by_ticket.clear();
  look_.by_flow.clear();
  for (size_t i = 0; i < look_.places.size(); ++i) {
    const auto& place = look_.places[i];
    look_.by_ticket[place.ticket] = i;
    auto& [last, count] = look_.by_flow[waiters_[find_waiter(place.ticket)].who.flow];
    last = place;
    ++count;
  }
  look_.at = now;
  look_.changes = changes_;
  look_.valid = true;
  return look_;
}

std::pair<uint32_t, nanoseconds> lease_table::place_of(
  const waiting_entry& w, nanoseconds now) const {
  if (!config_.estimate_places)
    return {0, nanoseconds{0}};
  const auto& f = forecast(now, false);
  auto last_place = static_cast<uint32_t>(waiting() - 1);
  auto passed = now - f.at;
  auto left = [&](nanoseconds wait) { return std::max(wait - passed, nanoseconds{0}); };
  if (auto it = f.by_ticket.find(w.who.ticket); it != f.by_ticket.end()) {
    const auto& place = f.places[it->second];
    // Those that were served since were in front, as far as the forecast holds.
    auto gone = f.places.size() > waiting() ? f.places.size() - waiting() : 0;
    auto ahead = place.ahead > gone ? place.ahead - static_cast<uint32_t>(gone) : 0;
    return {std::min(ahead, last_place), left(place.wait)};
  }
  if (f.places.empty())
    return {last_place, nanoseconds{0}};
  // It came after the look ahead. Behind all others it would wait as long as the queue has grown
  // since; a flow that has some waits as long as its own part has grown, if that is less.
  auto step = f.places.back().wait / static_cast<int64_t>(f.places.size());
  auto wait = step * static_cast<int64_t>(waiting());
  auto ahead = last_place;
  if (auto it = f.by_flow.find(w.who.flow); it != f.by_flow.end()) {
    const auto& [last, count] = it->second;
    auto now_waiting = waiting_by_flow_.at(w.who.flow);
    wait = std::min(wait, last.wait / int64_t{count} * int64_t{now_waiting});
    ahead = static_cast<uint32_t>(
      std::min<uint64_t>(ahead, (uint64_t{last.ahead} + 1) * now_waiting / count));
  }
  return {ahead, left(wait)};
}

// --- alarms ----------------------------------------------------------------------------------

nanoseconds lease_table::median_wait() const {
  if (recent_waits_.empty())
    return nanoseconds{0};
  auto waits = recent_waits_;
  auto middle = waits.begin() + static_cast<ptrdiff_t>(waits.size() / 2);
  std::nth_element(waits.begin(), middle, waits.end());
  return *middle;
}

std::vector<broker_alarm> lease_table::alarms_now(nanoseconds now) const {
  std::vector<broker_alarm> out;
  size_t free_for_long = 0;
  for (const auto& s : gpus_) {
    const auto& name = s.entry.name;
    if (s.phase == gpu_phase::suspect) {
      out.push_back({"gpu_suspect", name, 0, s.suspicion});
      if (s.probes_without != 0)
        out.push_back({"no_probe", name, 0,
          fmt::format("{} probes in a row gave no answer to go by", s.probes_without)});
    } else if (s.phase == gpu_phase::quarantined) {
      out.push_back({"gpu_quarantined", name, 0, s.why});
    } else if (s.idle_alarm && (live(s) || ending(s))) {
      out.push_back({"idle_while_leased", name, s.who.ticket,
        fmt::format("{} of {} holds it without using it, while others wait", s.who.flow.agent,
          s.who.flow.problem)});
    }
    if (s.phase == gpu_phase::free && now - s.since >= config_.alarm_every)
      ++free_for_long;
  }
  auto limit = config_.starvation_after;
  if (auto median = median_wait(); median > nanoseconds{0} && config_.starvation_factor != 0) {
    auto factor = int64_t{config_.starvation_factor};
    auto many = median > limit / factor ? limit : median * factor;
    limit = std::min(limit, std::max<nanoseconds>(many, std::chrono::minutes{1}));
  }
  std::set<lease_flow> seen;
  std::map<std::string, uint32_t> blocked;
  for (auto at = oldest_waiter_; at != nobody; at = waiters_[at].newer) {
    const auto& w = waiters_[at];
    auto waited = now - w.who.arrived;
    if (free_for_long != 0 && waited >= config_.alarm_every)
      ++blocked[w.need];
    if (waited < limit || !seen.insert(w.who.flow).second)
      continue;
    auto without = now - std::max(w.who.arrived, ledger_.last_grant(w.who.flow));
    if (without >= limit)
      out.push_back({"starvation", {}, w.who.ticket,
        fmt::format("{} of {} has waited {:.0f} s without any lease (others: median {:.0f} s)",
          w.who.flow.agent, w.who.flow.problem, in_seconds(without), in_seconds(median_wait()))});
  }
  if (!blocked.empty() && draining_.empty()) {
    std::vector<std::string> parts;
    for (const auto& [need, count] : blocked)
      parts.push_back(fmt::format("{} for '{}'", count, need));
    out.push_back({"head_of_line", {}, 0,
      fmt::format("{} GPUs are free, and none of them fits those that wait: {}", free_for_long,
        fmt::join(parts, ", "))});
  }
  return out;
}

void lease_table::look_for_alarms(nanoseconds now, lease_actions& out) {
  // Alarms are told in events only; a snapshot looks for itself.
  if (!config_.log_events)
    return;
  auto changes = alarms_.update(alarms_now(now));
  auto tell = [&](const char* kind, const broker_alarm& alarm) {
    auto line = [&] {
      event e;
      e.kind = kind;
      e.t = now;
      e.gpu = alarm.gpu;
      e.reason = alarm.kind;
      e.data = lease_line{}.add("detail", alarm.detail).add("ticket", alarm.ticket).text();
      return e;
    };
    log(line, out);
  };
  for (const auto& alarm : changes.raised)
    tell("alarm", alarm);
  for (const auto& alarm : changes.over)
    tell("alarm_over", alarm);
}

// --- looking ---------------------------------------------------------------------------------

broker_snapshot lease_table::snapshot(const broker_query& query, nanoseconds now) const {
  broker_snapshot out;
  for (uint32_t gpu = 0; gpu < gpus_.size(); ++gpu) {
    const auto& s = gpus_[gpu];
    gpu_snapshot g;
    g.gpu = gpu;
    g.model = s.entry.model;
    g.phase = s.phase;
    g.token = s.token;
    g.name = s.entry.name;
    g.age = now - s.since;
    if (s.phase == gpu_phase::suspect)
      g.reason = s.suspicion;
    else if (s.phase == gpu_phase::quarantined || s.phase == gpu_phase::lost)
      g.reason = s.why;
    else if (s.drained)
      g.reason = s.drain_reason;
    if (s.charge_due && (live(s) || ending(s))) {
      g.attempt = s.attempt;
      g.what = s.who.what;
      g.flow = s.who.flow;
      g.held = now - s.granted_at;
      g.term = s.term;
    }
    out.gpus.push_back(std::move(g));
  }
  out.waiting = static_cast<uint32_t>(waiting());
  out.granted_total = granted_total_;
  out.alarms = alarms_now(now);
  out.usage = ledger_.usage();
  out.policy = policy_->name();
  out.epoch = config_.epoch;
  if (query.waiters_max == 0 || waiting() == 0)
    return out;
  const auto& f = forecast(now, true);
  for (const auto& place : f.places) {
    if (out.waiters.size() >= query.waiters_max)
      break;
    auto at = find_waiter(place.ticket);
    if (at == nobody)
      continue;
    const auto& w = waiters_[at];
    out.waiters.push_back({place.ticket, w.who.what, w.who.flow, w.need, w.attempt,
      now - w.who.arrived, static_cast<uint32_t>(out.waiters.size()),
      std::max(place.wait - (now - f.at), nanoseconds{0})});
  }
  return out;
}

// --- the rules, for tests --------------------------------------------------------------------

std::optional<std::string> lease_table::broken_slot(uint32_t gpu) const {
  const auto& s = gpus_[gpu];
  auto says = [&](const char* what) {
    return fmt::format("GPU {} ({}): {}", gpu, to_string(s.phase), what);
  };
  if (s.newest > s.reserved_last || s.newest < s.entry.token_floor || s.token > s.newest)
    return says("its token lies outside the reserved blocks");
  bool idle =
    s.phase == gpu_phase::free || s.phase == gpu_phase::draining || s.phase == gpu_phase::suspect;
  if (idle && !s.verified)
    return says("idle, although its last lease was not verified");
  if (s.phase == gpu_phase::free && (s.drained || !s.suspicion.empty() || !s.condemned.empty()))
    return says("free, although drained or under suspicion");
  if (s.phase == gpu_phase::draining && !s.drained)
    return says("draining, although nobody has drained it");
  if (s.phase == gpu_phase::suspect && s.suspicion.empty())
    return says("suspect without a suspicion");
  if (s.probing && s.phase != gpu_phase::suspect)
    return says("being probed, although it is not suspect");
  if (s.charge_due && !live(s) && !ending(s))
    return says("a lease that is over has not been charged");
  if (live(s)) {
    if (s.holder != 0 && find_request(s.holder, s.request) != (gpu | held_bit))
      return says("its live lease has no holder");
    if (s.holder == 0 && s.token > s.entry.token_floor)
      return says("nobody holds a lease of this start");
    if (s.verified || !s.charge_due)
      return says("its live lease counts as over");
    if (s.term > cap(s.who.what)
      || *s.deadline > s.granted_at + s.term + config_.expiry_grace + config_.grant_answer_limit)
      return says("its lease may outlast the cap of its class");
  }
  bool has_time = live(s) || ending(s) || s.phase == gpu_phase::suspect
    || (s.phase == gpu_phase::absent && s.entry.may_hold_lease_of_before);
  if (has_time != s.deadline.has_value())
    return says("a phase that must end has no deadline, or one that need not has one");
  if (auto key = gpu_deadlines_.key_of(gpu);
      (key == nullptr) != !s.deadline || (key != nullptr && *key != *s.deadline))
    return says("its deadline is in no timer");
  bool can_grant = s.phase == gpu_phase::free && s.newest < s.reserved_last;
  if (free_.contains(gpu) != can_grant)
    return says("the set of free GPUs does not fit its phase");
  if (can_grant && draining_.empty() && policy_->pick({gpu, fits_of(gpu)}, newest_now_))
    return says("free, although somebody waits for it");
  return std::nullopt;
}

std::optional<std::string> lease_table::broken_invariant() const {
  size_t live_count = 0;
  size_t deadline_count = 0;
  size_t free_count = 0;
  for (uint32_t gpu = 0; gpu < gpus_.size(); ++gpu) {
    if (auto rule = broken_slot(gpu))
      return rule;
    const auto& s = gpus_[gpu];
    live_count += live(s) && s.holder != 0 ? 1 : 0;
    deadline_count += s.deadline ? 1 : 0;
    free_count += s.phase == gpu_phase::free && s.newest < s.reserved_last ? 1 : 0;
  }
  if (live_count != held_ || deadline_count != gpu_deadlines_.size() || free_count != free_.size())
    return "a lease, a deadline or a free GPU is left over";
  std::array<uint32_t, needs_max> by_need{};
  size_t with_candidate = 0;
  size_t in_row = 0;
  for (auto at = oldest_waiter_; at != nobody; at = waiters_[at].newer) {
    const auto& w = waiters_[at];
    ++in_row;
    if (find_waiter(w.who.ticket) != at || find_request(w.holder, w.request) != at
      || (w.newer == nobody ? at != newest_waiter_ : waiters_[w.newer].who.ticket <= w.who.ticket))
      return "a request that waits is not found, or not in the order of tickets";
    ++by_need[w.who.need];
    with_candidate += w.candidate.empty() ? 0 : 1;
    if (w.who.need != any_need && needs_.users(w.who.need) == 0)
      return "a request waits with a need that nobody has";
    if (!w.candidate.empty() && blame_.of(w.candidate) == blame_matrix::standing::poison)
      return "a poison candidate waits for a GPU";
  }
  uint32_t in_flows = 0;
  for (const auto& [flow, count] : waiting_by_flow_)
    in_flows += count;
  if (config_.estimate_places && in_flows != waiting())
    return "the counts of the flows differ from those that wait";
  if (by_need != waiting_by_need_)
    return "the counts of the needs differ from those that wait";
  size_t in_chains = 0;
  for (auto first : alike_)
    for (auto at = first; at != nobody; at = waiters_[at].after_alike)
      ++in_chains;
  if (waiting() != in_row || waiting() != wait_deadlines_.size()
    || waiting() + held_ != by_request_.size() || with_candidate != with_candidate_
    || with_candidate != in_chains)
    return "the indices of the waiting requests differ";
  if (waiting() > config_.waiting_max)
    return "more requests wait than allowed";
  if (waiting() != 0 && !alarm_due_ && config_.log_events)
    return "somebody waits, and nobody looks for alarms";
  return std::nullopt;
}

} // namespace gristmill
