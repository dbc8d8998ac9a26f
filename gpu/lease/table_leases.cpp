#include "gpu/lease/table.hpp"

#include "gpu/lease/table_lines.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

using std::chrono::nanoseconds;

namespace {

lease_ack no_such_gpu(uint32_t gpu) {
  return {false, fmt::format("there is no GPU {} here", gpu)};
}

} // namespace

bool lease_table::others_wait_for(uint32_t gpu) const {
  auto fits = fits_of(gpu);
  for (need_id need = 0; need < needs_max; ++need)
    if (waiting_by_need_[need] != 0 && (fits >> need & 1) != 0)
      return true;
  return false;
}

std::optional<nanoseconds> lease_table::active_deadline(const slot& s) const {
  auto expiry = s.granted_at + s.term + config_.expiry_grace;
  return config_.ttl == nanoseconds{0} ? expiry : std::min(expiry, s.renewed_at + config_.ttl);
}

void lease_table::revoke(
  uint32_t gpu, uint64_t token, const std::string& reason, lease_actions& out) const {
  auto& a = out.emplace_back();
  a.kind = lease_action_kind::revoke;
  a.revoke.gpu = gpu;
  a.revoke.token = token;
  a.revoke.reason = reason;
}

void lease_table::tell_holder_of(
  uint32_t gpu, const std::string& reason, lease_actions& out) const {
  const auto& s = gpus_[gpu];
  if (s.holder == 0)
    return;
  auto& a = out.emplace_back();
  a.kind = lease_action_kind::notify_holder;
  a.holder = s.holder;
  a.ended = {s.request, s.token, reason};
}

void lease_table::end_lease(uint32_t gpu, const char* kind, const std::string& reason,
  bool tell_holder, nanoseconds now, lease_actions& out) {
  auto& s = gpus_[gpu];
  if (s.holder != 0) {
    by_request_.erase(hash_of(s.holder, s.request), gpu | held_bit);
    --held_;
  }
  auto line = [&] {
    auto data = describe(s.who, s.request)
                  .add_if("boot", s.boot)
                  .add("held_ns", now - s.granted_at)
                  .add("holder", s.holder)
                  .text();
    auto e = lease_event(kind, gpu, now, std::move(data));
    e.reason = reason;
    return e;
  };
  log(line, out);
  enter(gpu, gpu_phase::releasing, now + config_.verify_limit, now);
  revoke(gpu, s.token, reason, out);
  if (tell_holder)
    tell_holder_of(gpu, reason, out);
}

void lease_table::charge(uint32_t gpu, std::string_view reason, nanoseconds now) {
  auto& s = gpus_[gpu];
  if (!s.charge_due)
    return;
  s.charge_due = false;
  auto held = now - s.granted_at;
  ledger_.on_charge(s.who.flow, held, s.ledger_hint);
  if (s.started)
    ledger_.on_held(s.who.flow, s.who.what, held, s.ledger_hint);
  policy_->on_release({s.who.ticket, gpu, held}, reason, now);
}

// --- what the executor says ------------------------------------------------------------------

// The executor says that it runs a token that must not run.
lease_ack lease_table::refuse_token(
  uint32_t gpu, uint64_t token, nanoseconds now, lease_actions& out) {
  auto& s = gpus_[gpu];
  lease_ack no{false,
    fmt::format("token {} of {} must not run (the newest lease has token {}, the GPU is {})", token,
      s.entry.name, s.token, to_string(s.phase))};
  if (token == 0 || token > s.newest)
    return no; // Never granted, so there is nothing to take back.
  if (token > s.token) {
    // Of an earlier start and newer than what was adopted: that one cannot be all that runs.
    if (live(s))
      end_lease(
        gpu, "lease_revoke", "its executor runs a newer token of an earlier start", true, now, out);
    s.token = token;
    s.verified = false;
    // It is idle by the table's books, so it has to be looked at once more.
    if (s.phase == gpu_phase::free || s.phase == gpu_phase::draining
      || s.phase == gpu_phase::suspect) {
      fence(gpu, "its executor runs a token of an earlier start", now, out);
      return no;
    }
  }
  revoke(gpu, token, "this lease is over", out);
  return no;
}

lease_ack lease_table::on_activated(
  uint32_t gpu, uint64_t token, nanoseconds now, lease_actions& out) {
  saw(now);
  if (gpu >= gpus_.size())
    return no_such_gpu(gpu);
  auto& s = gpus_[gpu];
  if (!live(s) || s.token != token)
    return refuse_token(gpu, token, now, out);
  if (s.phase == gpu_phase::active)
    return {true, "it is active already"};
  s.started = true;
  s.renewed_at = now;
  enter(gpu, gpu_phase::active, active_deadline(s), now);
  log([&] { return lease_event("lease_active", gpu, now); }, out);
  return {true, {}};
}

lease_ack lease_table::on_ended(uint32_t gpu, uint64_t token, nanoseconds now, lease_actions& out) {
  saw(now);
  if (gpu >= gpus_.size())
    return no_such_gpu(gpu);
  auto& s = gpus_[gpu];
  if (s.token != token || (s.phase != gpu_phase::active && s.phase != gpu_phase::releasing))
    return {false, fmt::format("token {} of {} does not run", token, s.entry.name)};
  if (s.phase == gpu_phase::active)
    end_lease(gpu, "lease_release", "the device ended without a release", true, now, out);
  enter(gpu, gpu_phase::verifying, now + config_.verify_limit, now);
  log([&] { return lease_event("gpu_verifying", gpu, now); }, out);
  return {true, {}};
}

lease_ack lease_table::on_release(uint32_t gpu, uint64_t token, const std::string& reason,
  lease_outcome outcome, nanoseconds now, lease_actions& out) {
  saw(now);
  if (gpu >= gpus_.size())
    return no_such_gpu(gpu);
  auto& s = gpus_[gpu];
  bool current = s.token == token;
  // The holder may have gone while its candidate hung: the blame is not gone with it.
  if (current && (live(s) || ending(s)))
    judge(gpu, outcome, now, out);
  if (!current || !live(s))
    return {false,
      fmt::format("token {} of {} is not a live lease (the newest token is {}, the GPU is {})",
        token, s.entry.name, s.token, to_string(s.phase))};
  end_lease(gpu, "lease_release", reason, false, now, out);
  return {true, "the lease is over"};
}

lease_ack lease_table::on_renew(uint32_t gpu, uint64_t token, nanoseconds now) const {
  if (gpu >= gpus_.size() || !live(gpus_[gpu]) || gpus_[gpu].token != token)
    return {false, fmt::format("token {} is not a live lease", token)};
  const auto& s = gpus_[gpu];
  if (now >= s.granted_at + s.term)
    return {false, fmt::format("the term of token {} is over", token)};
  return {true, "the lease holds"};
}

lease_ack lease_table::on_renew(
  uint32_t gpu, uint64_t token, nanoseconds idle, nanoseconds now, lease_actions& out) {
  saw(now);
  auto holds = on_renew(gpu, token, now);
  if (!holds.applied)
    return holds;
  auto& s = gpus_[gpu];
  if (idle >= config_.idle_limit && others_wait_for(gpu)) {
    s.idle_alarm = true;
    look_for_alarms(now, out);
    auto reason = fmt::format("idle for {} s while others wait", in_seconds(idle));
    end_lease(gpu, "lease_revoke", reason, true, now, out);
    return {false, reason};
  }
  // Only an executor that has begun renews: its first report may have been lost.
  if (s.phase == gpu_phase::granted)
    on_activated(gpu, token, now, out);
  s.renewed_at = std::max(s.renewed_at, now);
  set_deadline(gpu, active_deadline(s));
  return holds;
}

void lease_table::on_holder_down(holder_id holder, nanoseconds now, lease_actions& out) {
  saw(now);
  // A holder seldom goes, so nobody keeps a list of what is whose.
  std::vector<uint32_t> waits;
  for (auto w = oldest_waiter_; w != nobody; w = waiters_[w].newer)
    if (waiters_[w].holder == holder)
      waits.push_back(w);
  std::sort(waits.begin(), waits.end(),
    [this](uint32_t a, uint32_t b) { return waiters_[a].request < waiters_[b].request; });
  std::vector<uint32_t> holds;
  for (uint32_t gpu = 0; gpu < gpus_.size(); ++gpu)
    if (holder != 0 && live(gpus_[gpu]) && gpus_[gpu].holder == holder)
      holds.push_back(gpu);
  std::sort(holds.begin(), holds.end(),
    [this](uint32_t a, uint32_t b) { return gpus_[a].request < gpus_[b].request; });
  for (auto waiter : waits)
    end_wait(waiter, "the holder is gone", false, now, out);
  for (auto gpu : holds)
    end_lease(gpu, "lease_revoke", "the holder is gone", false, now, out);
}

// --- leases of an earlier start --------------------------------------------------------------

lease_ack lease_table::on_holding(
  const device_report& report, nanoseconds now, lease_actions& out) {
  saw(now);
  if (report.gpu >= gpus_.size())
    return no_such_gpu(report.gpu);
  auto gpu = report.gpu;
  auto& s = gpus_[gpu];
  if (live(s) && s.token == report.token)
    return {true, "this lease is known"};
  if (s.phase != gpu_phase::absent || report.token == 0 || report.token > s.newest)
    return refuse_token(gpu, report.token, now, out);

  const auto& asked = report.adopted.request;
  s.entry.may_hold_lease_of_before = false;
  s.boot = report.boot;
  s.token = report.token;
  if (static_cast<size_t>(asked.what) >= config_.caps.size() || asked.weight == 0
    || report.adopted.held < nanoseconds{0} || report.adopted.held > config_.patience_max) {
    fence(gpu, "what its executor says of the lease that it runs is not possible", now, out);
    return {false, "this is not a lease that can be adopted: its class, weight or age is not one"};
  }
  s.verified = false;
  s.charge_due = true;
  s.leased = true;
  s.started = true;
  s.judged = false;
  s.idle_alarm = false;
  s.holder = 0;
  s.request = asked.request;
  s.attempt = asked.attempt;
  s.candidate = asked.candidate;
  s.term = asked.term <= nanoseconds{0} ? cap(asked.what) : std::min(asked.term, cap(asked.what));
  s.granted_at = now - report.adopted.held;
  s.renewed_at = now;
  s.who = {};
  s.who.ticket = next_ticket_++;
  s.who.what = asked.what;
  s.who.flow = asked.flow;
  s.who.weight = asked.weight;
  s.who.cap = s.term;
  s.who.arrived = s.granted_at;
  s.who.deadline = now;
  s.who.est_hold = asked.estimated_hold > nanoseconds{0} ? asked.estimated_hold : s.term / 4;
  // It is charged like any other, so the policy must know it.
  policy_->on_request(s.who);
  policy_->on_grant(s.who.ticket, gpu, now);
  s.ledger_hint = ledger_.on_grant(s.who.flow, s.who.weight, now);
  enter(gpu, gpu_phase::active, active_deadline(s), now);
  auto line = [&] {
    auto e = lease_event("lease_adopt", gpu, now);
    e.reason = "it runs since an earlier start of the broker";
    e.data = describe(s.who, s.request)
               .add_if("boot", s.boot)
               .add("epoch", config_.epoch)
               .add("held_ns", report.adopted.held)
               .add("term_ns", s.term)
               .text();
    return e;
  };
  log(line, out);
  return {true, "the lease is adopted"};
}

lease_ack lease_table::on_claim(holder_id holder, uint64_t request, uint32_t gpu, uint64_t token,
  nanoseconds now, lease_actions& out) {
  saw(now);
  if (gpu >= gpus_.size())
    return no_such_gpu(gpu);
  auto& s = gpus_[gpu];
  if (live(s) && s.token == token && s.holder == holder && holder != 0 && s.request == request)
    return {true, "the lease is this holder's already"};
  if (!live(s) || s.token != token || s.holder != 0)
    return {false,
      fmt::format(
        "token {} of {} is not an adopted lease that nobody has claimed", token, s.entry.name)};
  if (holder == 0 || find_request(holder, request) != nobody)
    return {false, fmt::format("request {} is taken: claim under a number of its own", request)};
  s.holder = holder;
  s.request = request;
  by_request_.insert(hash_of(holder, request), gpu | held_bit);
  ++held_;
  auto line = [&] {
    auto e = lease_event("lease_claim", gpu, now);
    e.data = describe(s.who, s.request).add("holder", holder).text();
    return e;
  };
  log(line, out);
  return {true, "the lease is this holder's again"};
}

} // namespace gristmill
