#include "gpu/lease/table.hpp"

#include "gpu/lease/table_lines.hpp"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <set>
#include <utility>

namespace gristmill {

using std::chrono::nanoseconds;

namespace {

/// The latest waits that the alarm for starvation compares with.
constexpr size_t waits_remembered = 256;

/// A SHA-256 in hexadecimal digits has 64.
constexpr size_t candidate_text_max = 128;

} // namespace

result<void> lease_table::check_request(holder_id holder, const lease_request& request) const {
  if (!draining_.empty())
    return fail(errc::shutting_down, "no lease is granted any more: " + draining_);
  if (holder == 0)
    return fail(errc::invalid_input, "lease request: holder 0 is nobody");
  if (request.weight == 0)
    return fail(errc::invalid_input, "lease request: weight must be at least 1");
  if (static_cast<size_t>(request.what) >= config_.caps.size())
    return fail(errc::invalid_input,
      fmt::format("lease request: {} is not a class", static_cast<unsigned>(request.what)));
  if (request.candidate.size() > candidate_text_max)
    return fail(errc::invalid_input,
      fmt::format("lease request: the hash of a candidate has at most {} bytes, not {}",
        candidate_text_max, request.candidate.size()));
  if (request.estimated_hold < nanoseconds{0} || request.patience < nanoseconds{0}
    || request.patience > config_.patience_max)
    return fail(errc::invalid_input,
      fmt::format("lease request: the estimate must not be negative and the patience must lie in "
                  "0..{} s; they are {} s and {} s",
        in_seconds(config_.patience_max), in_seconds(request.estimated_hold),
        in_seconds(request.patience)));
  if (request.term < nanoseconds{0} || request.term > cap(request.what))
    return fail(errc::invalid_input,
      fmt::format("lease request: a term of {} s is not within 0..{} s, the cap of class {}",
        in_seconds(request.term), in_seconds(cap(request.what)), to_string(request.what)));
  return {};
}

result<need_id> lease_table::place_need(const std::string& text, const std::string& candidate) {
  bool clean = candidate.empty() || blame_.of(candidate) == blame_matrix::standing::clean;
  if (clean && text.empty())
    return any_need;
  // The same few texts come over and over again.
  auto& known = known_needs_[std::hash<std::string>{}(text) % known_needs_.size()];
  if (clean && known.text == text && needs_.acquire_again(known.id, known.stamp))
    return known.id;
  auto need = parse_need(text);
  if (!need)
    return pass(need);
  auto excluded = need_index::nothing_excluded;
  std::string history;
  if (!clean) {
    history = failures_text(candidate);
    if (blame_.of(candidate) == blame_matrix::standing::poison)
      return fail(errc::refused, "lease request: " + history + "; it is not run again");
    excluded = blame_.failures(candidate).front().gpu;
  }
  if (*need != gpu_need{} || excluded != need_index::nothing_excluded) {
    const auto& can = gpus_for(*need, need_index::nothing_excluded);
    if (can.empty() && !config_.gpus_may_come) {
      std::set<std::string> there;
      for (const auto& s : gpus_)
        there.insert(to_string(s.attributes));
      return fail(errc::not_found,
        fmt::format("lease request: no GPU here satisfies '{}'; there are: {}", text,
          there.empty() ? "none" : fmt::format("{}", fmt::join(there, ", "))));
    }
    if (can.size() == 1 && can.contains(excluded))
      return fail(errc::refused,
        "lease request: " + history
          + "; it may be tried again on another GPU only, and there is no other that fits");
  }
  auto id = needs_.acquire(*need, excluded);
  if (!id)
    return pass(id);
  if (id->fresh) {
    fitting_[id->id] = gpus_for(*need, excluded);
    numbers_used_ |= need_set{1} << id->id;
  }
  if (clean)
    known = {text, id->id, needs_.stamp(id->id)};
  return id->id;
}

// --- slots -----------------------------------------------------------------------------------

uint32_t lease_table::find_request(holder_id holder, uint64_t request) const {
  return by_request_.find(hash_of(holder, request), [&](uint32_t at) {
    if ((at & held_bit) != 0) {
      const auto& s = gpus_[at & ~held_bit];
      return s.holder == holder && s.request == request;
    }
    return waiters_[at].holder == holder && waiters_[at].request == request;
  });
}

uint32_t lease_table::new_waiter() {
  if (vacant_waiters_.empty()) {
    waiters_.emplace_back();
    return static_cast<uint32_t>(waiters_.size() - 1);
  }
  auto waiter = vacant_waiters_.back();
  vacant_waiters_.pop_back();
  return waiter;
}

uint32_t& lease_table::alike(const std::string& candidate) {
  return alike_[std::hash<std::string>{}(candidate) % alike_.size()];
}

void lease_table::add_waiter(uint32_t waiter) {
  auto& w = waiters_[waiter];
  by_ticket_.insert(mixed(w.who.ticket), waiter);
  by_request_.insert(hash_of(w.holder, w.request), waiter);
  // Tickets grow.
  w.older = newest_waiter_;
  w.newer = nobody;
  (newest_waiter_ == nobody ? oldest_waiter_ : waiters_[newest_waiter_].newer) = waiter;
  newest_waiter_ = waiter;
  ++waiting_by_need_[w.who.need];
  if (config_.estimate_places)
    ++waiting_by_flow_[w.who.flow];
  wait_deadlines_.push({{w.who.deadline, w.who.ticket}, waiter, w.version});
  if (w.candidate.empty())
    return;
  ++with_candidate_;
  auto& first = alike(w.candidate);
  w.before_alike = nobody;
  w.after_alike = first;
  if (first != nobody)
    waiters_[first].before_alike = waiter;
  first = waiter;
}

// What every way out of the queue does, but for the policy. The slot's content stays until the
// next request comes.
void lease_table::forget_waiter(uint32_t waiter) {
  auto& w = waiters_[waiter];
  ++w.version;
  by_ticket_.erase(mixed(w.who.ticket), waiter);
  by_request_.erase(hash_of(w.holder, w.request), waiter);
  (w.older == nobody ? oldest_waiter_ : waiters_[w.older].newer) = w.newer;
  (w.newer == nobody ? newest_waiter_ : waiters_[w.newer].older) = w.older;
  wait_deadlines_.removed([&](const auto& e) { return waiters_[e.slot].version == e.version; });
  if (!w.candidate.empty()) {
    --with_candidate_;
    (w.before_alike == nobody ? alike(w.candidate) : waiters_[w.before_alike].after_alike) =
      w.after_alike;
    if (w.after_alike != nobody)
      waiters_[w.after_alike].before_alike = w.before_alike;
  }
  --waiting_by_need_[w.who.need];
  if (config_.estimate_places)
    if (auto flow = waiting_by_flow_.find(w.who.flow); --flow->second == 0)
      waiting_by_flow_.erase(flow);
  needs_.release(w.who.need);
  vacant_waiters_.push_back(waiter);
  ++changes_;
}

// --- requests --------------------------------------------------------------------------------

result<lease_ticket> lease_table::on_request(
  holder_id holder, const lease_request& request, nanoseconds now, lease_actions& out) {
  saw(now);
  if (find_request(holder, request.request) != nobody)
    return position(holder, request.request, now);
  if (auto good = check_request(holder, request); !good)
    return pass(good);
  if (waiting() >= config_.waiting_max)
    return fail(errc::queue_full,
      fmt::format("{} requests wait for a GPU already; ask again later", waiting()));
  auto need = place_need(request.need, request.candidate);
  if (!need)
    return pass(need);

  auto waiter = new_waiter();
  auto& w = waiters_[waiter];
  w.holder = holder;
  w.request = request.request;
  w.attempt = request.attempt;
  w.candidate = request.candidate;
  w.need = request.need;
  w.who.ticket = next_ticket_++;
  w.who.what = request.what;
  w.who.flow = request.flow;
  w.who.weight = request.weight;
  w.who.need = *need;
  w.who.cap = request.term == nanoseconds{0} ? cap(request.what) : request.term;
  w.who.est_hold = request.estimated_hold;
  if (w.who.est_hold == nanoseconds{0})
    w.who.est_hold = ledger_.expected_hold(request.flow, request.what, cap(request.what) / 4);
  w.who.arrived = now;
  auto patience = request.patience == nanoseconds{0} ? config_.patience_max : request.patience;
  w.who.deadline = now + patience;
  auto ticket = w.who.ticket;

  auto line = [&] {
    event e;
    e.kind = "lease_request";
    e.t = now;
    e.problem = request.flow.problem;
    e.attempt = request.attempt;
    e.candidate = request.candidate;
    auto data = describe(w.who, w.request);
    data.add("estimate_ns", w.who.est_hold).add_if("need", request.need);
    if (request.weight != 1)
      data.add("weight", uint64_t{request.weight});
    e.data = data.text();
    return e;
  };
  log(line, out);
  policy_->on_request(w.who);
  ++changes_;
  add_waiter(waiter);
  serve(now, out);
  // Nobody asks within this call, so the slot is still this request's.
  if (find_waiter(ticket) == nobody)
    return lease_ticket{request.request, ticket, 0, nanoseconds{0}};
  if (!alarm_due_ && config_.log_events)
    alarm_due_ = now + std::max(config_.alarm_every, nanoseconds{1});
  auto [ahead, wait] = place_of(waiters_[waiter], now);
  return lease_ticket{request.request, ticket, ahead, wait};
}

result<lease_ticket> lease_table::position(
  holder_id holder, uint64_t request, nanoseconds now) const {
  auto at = find_request(holder, request);
  if (at == nobody)
    return fail(errc::not_found, fmt::format("request {} neither waits nor holds a GPU", request));
  if ((at & held_bit) != 0)
    return lease_ticket{request, gpus_[at & ~held_bit].who.ticket, 0, nanoseconds{0}};
  auto [ahead, wait] = place_of(waiters_[at], now);
  return lease_ticket{request, waiters_[at].who.ticket, ahead, wait};
}

void lease_table::end_wait(uint32_t waiter, const std::string& reason, bool tell_holder,
  nanoseconds now, lease_actions& out) {
  const auto& w = waiters_[waiter];
  policy_->on_cancel(w.who.ticket);
  forget_waiter(waiter);
  auto line = [&] {
    event e;
    e.kind = "lease_wait_end";
    e.t = now;
    e.problem = w.who.flow.problem;
    e.attempt = w.attempt;
    e.candidate = w.candidate;
    e.reason = reason;
    e.data = describe(w.who, w.request).add("queue_ns", now - w.who.arrived).text();
    return e;
  };
  log(line, out);
  if (!tell_holder)
    return;
  lease_action a;
  a.kind = lease_action_kind::notify_holder;
  a.holder = w.holder;
  a.ended = {w.request, 0, reason};
  out.push_back(std::move(a));
}

lease_ack lease_table::on_cancel(
  holder_id holder, uint64_t request, nanoseconds now, lease_actions& out) {
  saw(now);
  auto at = find_request(holder, request);
  if (at == nobody)
    return {false, fmt::format("request {} neither waits nor holds a GPU", request)};
  if ((at & held_bit) != 0) {
    // The grant and the cancellation have crossed.
    end_lease(at & ~held_bit, "lease_release", "cancelled", false, now, out);
    return {true, "the lease is over"};
  }
  end_wait(at, "cancelled", false, now, out);
  return {true, "no longer waiting"};
}

// A candidate that has failed meanwhile: who waits with it goes elsewhere, or not at all.
void lease_table::place_anew(const std::string& candidate, nanoseconds now, lease_actions& out) {
  std::vector<uint32_t> same;
  for (auto waiter = alike(candidate); waiter != nobody; waiter = waiters_[waiter].after_alike)
    if (waiters_[waiter].candidate == candidate)
      same.push_back(waiter);
  std::sort(same.begin(), same.end(),
    [this](uint32_t a, uint32_t b) { return waiters_[a].who.ticket < waiters_[b].who.ticket; });
  for (auto waiter : same) {
    auto& w = waiters_[waiter];
    auto need = place_need(w.need, candidate);
    if (!need) {
      end_wait(waiter, "refused: " + need.error().what, true, now, out);
      continue;
    }
    policy_->on_cancel(w.who.ticket);
    --waiting_by_need_[w.who.need];
    needs_.release(w.who.need);
    w.who.need = *need;
    ++waiting_by_need_[*need];
    policy_->on_request(w.who);
    ++changes_;
  }
}

// --- grants ----------------------------------------------------------------------------------

uint32_t lease_table::pick(uint32_t gpu, need_set group, nanoseconds now, lease_actions& out) {
  auto ticket = policy_->pick({gpu, group}, now);
  if (!ticket)
    return nobody;
  auto waiter = find_waiter(*ticket);
  if (waiter != nobody && (group >> waiters_[waiter].who.need & 1) != 0)
    return waiter;
  // A policy from outside may be wrong; nobody must wait for that.
  auto line = [&] {
    auto e = gpu_event("policy_failed", gpu, now);
    e.reason = fmt::format(
      "the lease policy named ticket {}, which does not wait for such a GPU; the oldest is served",
      *ticket);
    return e;
  };
  log(line, out);
  for (auto oldest = oldest_waiter_; oldest != nobody; oldest = waiters_[oldest].newer)
    if ((group >> waiters_[oldest].who.need & 1) != 0)
      return oldest;
  return nobody;
}

void lease_table::serve(nanoseconds now, lease_actions& out) {
  if (!draining_.empty() || waiting() == 0 || free_.empty())
    return;
  // One question to the policy for all GPUs that satisfy the same needs, the smallest set of needs
  // (read as a number) first.
  for (unserved_ = free_; !unserved_.empty(); unserved_ -= group_) {
    group_ = unserved_;
    need_set fits = 1;
    for (auto left = numbers_used_; left != 0;) {
      auto need = static_cast<need_id>(std::bit_width(left) - 1);
      left &= ~(need_set{1} << need);
      if (group_.exceeds(fitting_[need]))
        group_ -= fitting_[need];
      else
        fits |= need_set{1} << need;
    }
    auto rest = group_.size();
    for (auto gpu = group_.first(); rest-- > 0; gpu = group_.next(gpu)) {
      auto waiter = pick(gpu, fits, now, out);
      if (waiter == nobody)
        break;
      grant(gpu, waiter, now, out);
    }
  }
}

void lease_table::grant(uint32_t gpu, uint32_t waiter, nanoseconds now, lease_actions& out) {
  auto& w = waiters_[waiter];
  auto& s = gpus_[gpu];
  policy_->on_grant(w.who.ticket, gpu, now);
  forget_waiter(waiter);
  auto waited = now - w.who.arrived;
  if (recent_waits_.size() < waits_remembered)
    recent_waits_.push_back(waited);
  else
    recent_waits_[next_wait_++ % waits_remembered] = waited;
  s.ledger_hint = ledger_.on_grant(w.who.flow, w.who.weight, now);
  s.token = ++s.newest;
  s.verified = false;
  s.charge_due = true;
  s.leased = true;
  s.started = false;
  s.judged = false;
  s.idle_alarm = false;
  s.holder = w.holder;
  s.request = w.request;
  // Changed, not moved: so the texts of both keep their memory.
  std::swap(s.who, w.who);
  std::swap(s.attempt, w.attempt);
  std::swap(s.candidate, w.candidate);
  s.granted_at = now;
  s.renewed_at = now;
  s.term = s.who.cap;
  by_request_.insert(hash_of(s.holder, s.request), gpu | held_bit);
  ++held_;
  ++granted_total_;
  enter(gpu, gpu_phase::granted, now + config_.grant_answer_limit, now);
  ask_for_tokens(gpu, now, out);

  auto line = [&] {
    auto data = describe(s.who, s.request)
                  .add_if("boot", s.boot)
                  .add("epoch", config_.epoch)
                  .add("holder", s.holder)
                  .add("queue_ns", waited)
                  .add("term_ns", s.term)
                  .text();
    return lease_event("lease_grant", gpu, now, std::move(data));
  };
  log(line, out);
  auto& a = out.emplace_back();
  a.kind = lease_action_kind::grant;
  a.holder = s.holder;
  a.granted = {s.request, lease{gpu, s.token, s.who.what, s.term}};
}

} // namespace gristmill
