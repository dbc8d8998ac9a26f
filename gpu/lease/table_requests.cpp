#include "gpu/lease/table.hpp"

#include "gpu/lease/table_lines.hpp"

#include <algorithm>
#include <cassert>
#include <fmt/format.h>
#include <fmt/ranges.h>

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
  auto need = parse_need(text);
  if (!need)
    return pass(need);
  auto excluded = need_index::nothing_excluded;
  std::string history;
  if (!candidate.empty() && blame_.of(candidate) != blame_matrix::standing::clean) {
    history = failures_text(candidate);
    if (blame_.of(candidate) == blame_matrix::standing::poison)
      return fail(errc::refused, "lease request: " + history + "; it is not run again");
    excluded = blame_.failures(candidate).front().gpu;
  }
  if (*need != gpu_need{} || excluded != need_index::nothing_excluded) {
    bool any = false;
    bool elsewhere = false;
    for (uint32_t gpu = 0; gpu < gpus_.size() && !elsewhere; ++gpu) {
      bool can = fits(*need, gpus_[gpu].attributes);
      any = any || can;
      elsewhere = can && gpu != excluded;
    }
    if (!any) {
      std::set<std::string> there;
      for (const auto& s : gpus_)
        there.insert(to_string(s.attributes));
      return fail(errc::not_found,
        fmt::format("lease request: no GPU here satisfies '{}'; there are: {}", text,
          there.empty() ? "none" : fmt::format("{}", fmt::join(there, ", "))));
    }
    if (!elsewhere)
      return fail(errc::refused,
        "lease request: " + history
          + "; it may be tried again on another GPU only, and there is no other that fits");
  }
  auto id = needs_.acquire(*need, excluded);
  if (!id)
    return pass(id);
  if (id->fresh)
    refit(id->id);
  return id->id;
}

result<lease_ticket> lease_table::on_request(
  holder_id holder, const lease_request& request, nanoseconds now, lease_actions& out) {
  saw(now);
  request_key key{holder, request.request};
  if (tickets_.contains(key) || held_.contains(key))
    return position(holder, request.request, now);
  if (auto good = check_request(holder, request); !good)
    return pass(good);
  if (waiting_.size() >= config_.waiting_max)
    return fail(errc::queue_full,
      fmt::format("{} requests wait for a GPU already; ask again later", waiting_.size()));
  auto need = place_need(request.need, request.candidate);
  if (!need)
    return pass(need);

  waiting_entry w;
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

  event e;
  e.kind = "lease_request";
  e.t = now;
  e.problem = request.flow.problem;
  e.attempt = request.attempt;
  e.candidate = request.candidate;
  e.data = describe(w.who, w.request)
             .add("estimate_ns", w.who.est_hold)
             .add_if("need", request.need)
             .text();
  log(std::move(e), out);
  policy_->on_request(w.who);
  ++changes_;
  tickets_[key] = ticket;
  ++waiting_by_need_[*need];
  ++waiting_by_flow_[w.who.flow];
  wait_deadlines_.insert({w.who.deadline, ticket});
  if (!w.candidate.empty())
    by_candidate_.insert({w.candidate, ticket});
  waiting_.emplace(ticket, std::move(w));
  serve(now, out);
  if (!waiting_.contains(ticket))
    return lease_ticket{request.request, ticket, 0, nanoseconds{0}};
  if (!alarm_due_)
    alarm_due_ = now + std::max(config_.alarm_every, nanoseconds{1});
  return position(holder, request.request, now);
}

result<lease_ticket> lease_table::position(
  holder_id holder, uint64_t request, nanoseconds now) const {
  if (auto it = held_.find({holder, request}); it != held_.end())
    return lease_ticket{request, gpus_[it->second].who.ticket, 0, nanoseconds{0}};
  auto it = tickets_.find({holder, request});
  if (it == tickets_.end())
    return fail(errc::not_found, fmt::format("request {} neither waits nor holds a GPU", request));
  auto [ahead, wait] = place_of(waiting_.at(it->second), now);
  return lease_ticket{request, it->second, ahead, wait};
}

// What every way out of the queue does, but for the policy.
void lease_table::forget_waiter(const waiting_entry& w) {
  tickets_.erase({w.holder, w.request});
  wait_deadlines_.erase({w.who.deadline, w.who.ticket});
  by_candidate_.erase({w.candidate, w.who.ticket});
  --waiting_by_need_[w.who.need];
  if (auto flow = waiting_by_flow_.find(w.who.flow); --flow->second == 0)
    waiting_by_flow_.erase(flow);
  needs_.release(w.who.need);
  ++changes_;
}

void lease_table::end_wait(uint64_t ticket, const std::string& reason, bool tell_holder,
  nanoseconds now, lease_actions& out) {
  auto node = waiting_.extract(ticket);
  const auto& w = node.mapped();
  policy_->on_cancel(ticket);
  forget_waiter(w);
  event e;
  e.kind = "lease_wait_end";
  e.t = now;
  e.problem = w.who.flow.problem;
  e.attempt = w.attempt;
  e.candidate = w.candidate;
  e.reason = reason;
  e.data = describe(w.who, w.request).add("queue_ns", now - w.who.arrived).text();
  log(std::move(e), out);
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
  if (auto it = tickets_.find({holder, request}); it != tickets_.end()) {
    end_wait(it->second, "cancelled", false, now, out);
    return {true, "no longer waiting"};
  }
  if (auto it = held_.find({holder, request}); it != held_.end()) {
    // The grant and the cancellation have crossed.
    end_lease(it->second, "lease_release", "cancelled", false, now, out);
    return {true, "the lease is over"};
  }
  return {false, fmt::format("request {} neither waits nor holds a GPU", request)};
}

// A candidate that has failed meanwhile: who waits with it goes elsewhere, or not at all.
void lease_table::place_anew(const std::string& candidate, nanoseconds now, lease_actions& out) {
  std::vector<uint64_t> tickets;
  for (auto it = by_candidate_.lower_bound({candidate, 0}); it != by_candidate_.end(); ++it) {
    if (it->first != candidate)
      break;
    tickets.push_back(it->second);
  }
  for (auto ticket : tickets) {
    auto& w = waiting_.at(ticket);
    auto need = place_need(w.need, candidate);
    if (!need) {
      end_wait(ticket, "refused: " + need.error().what, true, now, out);
      continue;
    }
    policy_->on_cancel(ticket);
    --waiting_by_need_[w.who.need];
    needs_.release(w.who.need);
    w.who.need = *need;
    ++waiting_by_need_[*need];
    policy_->on_request(w.who);
    ++changes_;
  }
}

// --- grants ----------------------------------------------------------------------------------

std::optional<uint64_t> lease_table::pick(
  uint32_t gpu, need_set group, nanoseconds now, lease_actions& out) {
  auto ticket = policy_->pick({gpu, group}, now);
  if (!ticket)
    return std::nullopt;
  auto it = waiting_.find(*ticket);
  if (it != waiting_.end() && (group >> it->second.who.need & 1) != 0)
    return ticket;
  // A policy from outside may be wrong; nobody must wait for that.
  auto e = gpu_event("policy_failed", gpu, now);
  e.reason = fmt::format(
    "the lease policy named ticket {}, which does not wait for such a GPU; the oldest is served",
    *ticket);
  log(std::move(e), out);
  for (const auto& [oldest, w] : waiting_)
    if ((group >> w.who.need & 1) != 0)
      return oldest;
  return std::nullopt;
}

void lease_table::serve(nanoseconds now, lease_actions& out) {
  if (!draining_.empty() || waiting_.empty())
    return;
  for (auto group = free_.begin(); group != free_.end();) {
    // A grant takes its GPU out of the group, and the group away with the last.
    auto key = group->first;
    while (group != free_.end()) {
      auto gpu = *group->second.begin();
      auto ticket = pick(gpu, key, now, out);
      if (!ticket)
        break;
      grant(gpu, *ticket, now, out);
      group = free_.find(key);
    }
    group = free_.upper_bound(key);
  }
}

void lease_table::grant(uint32_t gpu, uint64_t ticket, nanoseconds now, lease_actions& out) {
  auto node = waiting_.extract(ticket);
  assert(!node.empty());
  auto& w = node.mapped();
  auto& s = gpus_[gpu];
  policy_->on_grant(ticket, gpu, now);
  forget_waiter(w);
  auto waited = now - w.who.arrived;
  if (recent_waits_.size() < waits_remembered)
    recent_waits_.push_back(waited);
  else
    recent_waits_[next_wait_++ % waits_remembered] = waited;
  ledger_.on_grant(w.who.flow, w.who.weight, now);
  s.token = ++s.newest;
  s.verified = false;
  s.charge_due = true;
  s.leased = true;
  s.started = false;
  s.judged = false;
  s.idle_alarm = false;
  s.holder = w.holder;
  s.request = w.request;
  s.who = std::move(w.who);
  s.attempt = std::move(w.attempt);
  s.candidate = std::move(w.candidate);
  s.granted_at = now;
  s.renewed_at = now;
  s.term = s.who.cap;
  held_[{s.holder, s.request}] = gpu;
  ++granted_total_;
  enter(gpu, gpu_phase::granted, now + config_.grant_answer_limit, now);
  ask_for_tokens(gpu, now, out);

  auto e = lease_event("lease_grant", gpu, now);
  e.data = describe(s.who, s.request)
             .add_if("boot", s.boot)
             .add("epoch", config_.epoch)
             .add("holder", s.holder)
             .add("queue_ns", waited)
             .add("term_ns", s.term)
             .text();
  log(std::move(e), out);
  lease_action a;
  a.kind = lease_action_kind::grant;
  a.holder = s.holder;
  a.granted = {s.request, lease{gpu, s.token, s.who.what, s.term}};
  out.push_back(std::move(a));
}

} // namespace gristmill
