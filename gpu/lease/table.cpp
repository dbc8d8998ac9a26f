#include "gpu/lease/table.hpp"

#include <algorithm>
#include <cassert>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gristmill {

using std::chrono::nanoseconds;

namespace {

std::string json_text(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out + '"';
}

// A flat JSON object with sorted keys: all that the data of a lease event needs.
class json_object {
public:
  json_object& add(const std::string& key, const std::string& text) {
    fields_[key] = json_text(text);
    return *this;
  }
  json_object& add(const std::string& key, uint64_t number) {
    fields_[key] = fmt::format("{}", number);
    return *this;
  }
  json_object& add(const std::string& key, nanoseconds time) {
    fields_[key] = fmt::format("{}", time.count());
    return *this;
  }
  std::string text() const {
    std::string out = "{";
    for (const auto& [key, value] : fields_)
      out += fmt::format("{}{}:{}", out.size() == 1 ? "" : ",", json_text(key), value);
    return out + "}";
  }

private:
  std::map<std::string, std::string> fields_;
};

json_object describe(const waiter& who, uint64_t request) {
  return json_object{}
    .add("agent", who.flow.agent)
    .add("class", to_string(who.what))
    .add("request", request)
    .add("ticket", who.ticket);
}

double seconds(nanoseconds t) {
  return std::chrono::duration<double>(t).count();
}

} // namespace

lease_table::lease_table(lease_table_config config, std::unique_ptr<lease_policy> policy)
  : config_(config), policy_(std::move(policy)) {
  assert(policy_ != nullptr && config_.token_block > 0);
}

need_id lease_table::intern(const std::string& model) {
  if (model.empty())
    return any_need;
  return needs_.try_emplace(model, static_cast<need_id>(needs_.size() + 1)).first->second;
}

// --- journal lines ---------------------------------------------------------------------------

event lease_table::gpu_event(const std::string& kind, uint32_t gpu, nanoseconds now) const {
  event e;
  e.kind = kind;
  e.t = now;
  e.gpu = gpus_[gpu].entry.name;
  e.token = gpus_[gpu].token;
  return e;
}

event lease_table::lease_event(const std::string& kind, uint32_t gpu, nanoseconds now) const {
  event e = gpu_event(kind, gpu, now);
  e.problem = gpus_[gpu].who.flow.problem;
  e.attempt = gpus_[gpu].attempt;
  return e;
}

void lease_table::log(event e, lease_actions& out) const {
  lease_action a;
  a.kind = lease_action_kind::log;
  a.entry = std::move(e);
  out.push_back(std::move(a));
}

// --- GPUs ------------------------------------------------------------------------------------

void lease_table::update_free(uint32_t gpu) {
  const auto& s = gpus_[gpu];
  auto& set = free_[s.model];
  if (s.phase == gpu_phase::free && s.token < s.reserved_last)
    set.insert(gpu);
  else
    set.erase(gpu);
}

void lease_table::enter(uint32_t gpu, gpu_phase phase, std::optional<nanoseconds> deadline) {
  auto& s = gpus_[gpu];
  if (s.deadline)
    gpu_deadlines_.erase({*s.deadline, gpu});
  s.phase = phase;
  s.deadline = deadline;
  if (deadline)
    gpu_deadlines_.insert({*deadline, gpu});
  update_free(gpu);
}

uint32_t lease_table::add_gpu(gpu_entry entry, nanoseconds now, lease_actions& out) {
  auto gpu = static_cast<uint32_t>(gpus_.size());
  slot s;
  s.model = intern(entry.model);
  s.token = entry.token_floor;
  s.reserved_last = entry.token_floor;
  s.entry = std::move(entry);
  gpus_.push_back(std::move(s));
  ask_for_tokens(gpu, now, out);
  return gpu;
}

void lease_table::ask_for_tokens(uint32_t gpu, nanoseconds now, lease_actions& out) {
  auto& s = gpus_[gpu];
  if (s.reserving || s.reserved_last - s.token > config_.token_block / 4)
    return;
  s.reserving = true;
  lease_action a;
  a.kind = lease_action_kind::reserve;
  a.reserve = {gpu, s.reserved_last + config_.token_block};
  a.entry = gpu_event("token_block", gpu, now);
  a.entry.token = a.reserve.last;
  out.push_back(std::move(a));
}

void lease_table::on_block_reserved(
  uint32_t gpu, uint64_t last, nanoseconds now, lease_actions& out) {
  if (gpu >= gpus_.size())
    return;
  auto& s = gpus_[gpu];
  if (!s.reserving || last != s.reserved_last + config_.token_block)
    return;
  s.reserving = false;
  s.reserved_last = last;
  update_free(gpu);
  // A very small block may be used up to the quarter already.
  ask_for_tokens(gpu, now, out);
  serve(now, out);
}

void lease_table::on_device_up(uint32_t gpu, nanoseconds now, lease_actions& out) {
  if (gpu >= gpus_.size())
    return;
  const auto& s = gpus_[gpu];
  if (s.phase != gpu_phase::absent && s.phase != gpu_phase::down)
    return;
  log(gpu_event("gpu_up", gpu, now), out);
  if (s.verified) {
    enter(gpu, gpu_phase::free, std::nullopt);
    serve(now, out);
    return;
  }
  // It went down with a lease whose end nobody has confirmed: that comes first.
  enter(gpu, gpu_phase::verifying, now + config_.verify_limit);
  revoke(gpu, "came back with an unverified lease", out);
}

void lease_table::on_device_down(
  uint32_t gpu, const std::string& reason, nanoseconds now, lease_actions& out) {
  if (gpu >= gpus_.size() || gpus_[gpu].phase == gpu_phase::down)
    return;
  auto& s = gpus_[gpu];
  if (live(s))
    end_lease(gpu, "lease_revoke", "device down: " + reason, true, now, out);
  charge(gpu, reason, now);
  enter(gpu, gpu_phase::down, std::nullopt);
  auto e = gpu_event("gpu_down", gpu, now);
  e.reason = reason;
  log(std::move(e), out);
}

void lease_table::on_activated(uint32_t gpu, uint64_t token, nanoseconds now, lease_actions& out) {
  if (gpu >= gpus_.size())
    return;
  const auto& s = gpus_[gpu];
  if (s.phase != gpu_phase::granted || s.token != token)
    return;
  enter(gpu, gpu_phase::active, s.granted_at + cap(s.who.what) + config_.expiry_grace);
  log(lease_event("lease_active", gpu, now), out);
}

void lease_table::on_verified(uint32_t gpu, uint64_t token, nanoseconds now, lease_actions& out) {
  if (gpu >= gpus_.size() || gpus_[gpu].token != token)
    return;
  auto& s = gpus_[gpu];
  // Not yet started, so this cannot be about the end of this lease.
  if (s.phase == gpu_phase::granted)
    return;
  if (s.phase == gpu_phase::active)
    end_lease(gpu, "lease_release", "the device ended without a release", true, now, out);
  s.verified = true;
  if (s.phase != gpu_phase::verifying)
    return;
  auto e = lease_event("gpu_free", gpu, now);
  e.data = json_object{}.add("held_ns", now - s.granted_at).text();
  charge(gpu, "verified", now);
  enter(gpu, gpu_phase::free, std::nullopt);
  log(std::move(e), out);
  serve(now, out);
}

void lease_table::on_report(const device_report& report, nanoseconds now, lease_actions& out) {
  switch (report.state) {
  case device_state::up:
    on_device_up(report.gpu, now, out);
    break;
  case device_state::active:
    on_activated(report.gpu, report.token, now, out);
    break;
  case device_state::verified:
    on_verified(report.gpu, report.token, now, out);
    break;
  case device_state::down:
    on_device_down(report.gpu, report.reason, now, out);
    break;
  }
}

// --- waiting ---------------------------------------------------------------------------------

result<lease_ticket> lease_table::on_request(
  holder_id holder, const lease_request& request, nanoseconds now, lease_actions& out) {
  request_key key{holder, request.request};
  if (auto it = tickets_.find(key); it != tickets_.end())
    return lease_ticket{request.request, it->second, static_cast<uint32_t>(waiting_.size() - 1)};
  if (auto it = held_.find(key); it != held_.end())
    return lease_ticket{request.request, gpus_[it->second].who.ticket, 0};
  if (!draining_.empty())
    return fail(errc::shutting_down, "no lease is granted any more: " + draining_);
  if (request.weight == 0)
    return fail(errc::invalid_input, "lease request: weight must be at least 1");
  if (static_cast<size_t>(request.what) >= config_.caps.size())
    return fail(errc::invalid_input,
      fmt::format("lease request: {} is not a class", static_cast<unsigned>(request.what)));
  if (request.estimated_hold < nanoseconds{0} || request.patience < nanoseconds{0}
    || request.patience > config_.patience_max)
    return fail(errc::invalid_input,
      fmt::format("lease request: the estimate must not be negative and the patience must lie in "
                  "0..{} s; they are {} s and {} s",
        seconds(config_.patience_max), seconds(request.estimated_hold), seconds(request.patience)));
  need_id need = any_need;
  if (!request.need.empty()) {
    auto it = needs_.find(request.need);
    if (it == needs_.end()) {
      std::vector<std::string> models;
      for (const auto& [model, id] : needs_)
        models.push_back(model);
      return fail(errc::not_found,
        fmt::format("lease request: no GPU of model '{}' here; there are: {}", request.need,
          models.empty() ? "none" : fmt::format("{}", fmt::join(models, ", "))));
    }
    need = it->second;
  }
  if (waiting_.size() >= config_.waiting_max)
    return fail(errc::queue_full,
      fmt::format("{} requests wait for a GPU already; ask again later", waiting_.size()));

  waiting_entry w;
  w.holder = holder;
  w.request = request.request;
  w.attempt = request.attempt;
  w.arrived = now;
  w.who.ticket = next_ticket_++;
  w.who.what = request.what;
  w.who.flow = request.flow;
  w.who.weight = request.weight;
  w.who.need = need;
  w.who.est_hold =
    request.estimated_hold == nanoseconds{0} ? cap(request.what) / 4 : request.estimated_hold;
  auto patience = request.patience == nanoseconds{0} ? config_.patience_max : request.patience;
  w.who.deadline = now + patience;
  lease_ticket ticket{request.request, w.who.ticket, static_cast<uint32_t>(waiting_.size())};

  event e;
  e.kind = "lease_request";
  e.t = now;
  e.problem = request.flow.problem;
  e.attempt = request.attempt;
  e.data = describe(w.who, w.request).add("estimate_ns", w.who.est_hold).text();
  log(std::move(e), out);
  policy_->on_request(w.who);
  tickets_[key] = w.who.ticket;
  wait_deadlines_.insert({w.who.deadline, w.who.ticket});
  waiting_.emplace(w.who.ticket, std::move(w));
  serve(now, out);
  return ticket;
}

void lease_table::end_wait(uint64_t ticket, const std::string& reason, bool tell_holder,
  nanoseconds now, lease_actions& out) {
  auto node = waiting_.extract(ticket);
  const auto& w = node.mapped();
  policy_->on_cancel(ticket);
  tickets_.erase({w.holder, w.request});
  wait_deadlines_.erase({w.who.deadline, ticket});
  event e;
  e.kind = "lease_wait_end";
  e.t = now;
  e.problem = w.who.flow.problem;
  e.attempt = w.attempt;
  e.reason = reason;
  e.data = describe(w.who, w.request).add("queue_ns", now - w.arrived).text();
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

// --- leases ----------------------------------------------------------------------------------

void lease_table::serve(nanoseconds now, lease_actions& out) {
  if (!draining_.empty())
    return;
  for (auto& [model, gpus] : free_)
    while (!gpus.empty()) {
      auto ticket = policy_->pick(model, now);
      if (!ticket)
        break;
      grant(*gpus.begin(), *ticket, now, out);
    }
}

void lease_table::grant(uint32_t gpu, uint64_t ticket, nanoseconds now, lease_actions& out) {
  auto node = waiting_.extract(ticket);
  assert(!node.empty());
  auto& w = node.mapped();
  auto& s = gpus_[gpu];
  policy_->on_grant(ticket, now);
  tickets_.erase({w.holder, w.request});
  wait_deadlines_.erase({w.who.deadline, ticket});
  ++s.token;
  s.verified = false;
  s.charge_due = true;
  s.holder = w.holder;
  s.request = w.request;
  s.who = std::move(w.who);
  s.attempt = std::move(w.attempt);
  s.granted_at = now;
  held_[{s.holder, s.request}] = gpu;
  ++granted_total_;
  enter(gpu, gpu_phase::granted, now + config_.grant_answer_limit);
  ask_for_tokens(gpu, now, out);

  auto e = lease_event("lease_grant", gpu, now);
  e.data = describe(s.who, s.request)
             .add("queue_ns", now - w.arrived)
             .add("term_ns", cap(s.who.what))
             .text();
  log(std::move(e), out);
  lease_action a;
  a.kind = lease_action_kind::grant;
  a.holder = s.holder;
  a.granted = {s.request, lease{gpu, s.token, s.who.what, cap(s.who.what)}};
  out.push_back(std::move(a));
}

void lease_table::revoke(uint32_t gpu, const std::string& reason, lease_actions& out) const {
  lease_action a;
  a.kind = lease_action_kind::revoke;
  a.revoke = {gpu, gpus_[gpu].token, reason};
  out.push_back(std::move(a));
}

void lease_table::end_lease(uint32_t gpu, const std::string& kind, const std::string& reason,
  bool tell_holder, nanoseconds now, lease_actions& out) {
  auto& s = gpus_[gpu];
  held_.erase({s.holder, s.request});
  auto e = lease_event(kind, gpu, now);
  e.reason = reason;
  e.data = describe(s.who, s.request).add("held_ns", now - s.granted_at).text();
  log(std::move(e), out);
  enter(gpu, gpu_phase::verifying, now + config_.verify_limit);
  revoke(gpu, reason, out);
  if (!tell_holder)
    return;
  lease_action a;
  a.kind = lease_action_kind::notify_holder;
  a.holder = s.holder;
  a.ended = {s.request, s.token, reason};
  out.push_back(std::move(a));
}

void lease_table::charge(uint32_t gpu, const std::string& reason, nanoseconds now) {
  auto& s = gpus_[gpu];
  if (!s.charge_due)
    return;
  s.charge_due = false;
  policy_->on_release({s.who.ticket, gpu, now - s.granted_at}, reason);
}

lease_ack lease_table::on_release(
  uint32_t gpu, uint64_t token, const std::string& reason, nanoseconds now, lease_actions& out) {
  if (gpu >= gpus_.size())
    return {false, fmt::format("there is no GPU {} here", gpu)};
  const auto& s = gpus_[gpu];
  if (!live(s) || s.token != token)
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
  if (now >= s.granted_at + cap(s.who.what))
    return {false, fmt::format("the term of token {} is over", token)};
  return {true, "the lease holds"};
}

void lease_table::on_holder_down(holder_id holder, nanoseconds now, lease_actions& out) {
  std::vector<uint64_t> waits;
  for (auto it = tickets_.lower_bound({holder, 0}); it != tickets_.end(); ++it) {
    if (it->first.first != holder)
      break;
    waits.push_back(it->second);
  }
  std::vector<uint32_t> holds;
  for (auto it = held_.lower_bound({holder, 0}); it != held_.end(); ++it) {
    if (it->first.first != holder)
      break;
    holds.push_back(it->second);
  }
  for (auto ticket : waits)
    end_wait(ticket, "the holder is gone", false, now, out);
  for (auto gpu : holds)
    end_lease(gpu, "lease_revoke", "the holder is gone", false, now, out);
}

void lease_table::on_tick(nanoseconds now, lease_actions& out) {
  while (!gpu_deadlines_.empty() && gpu_deadlines_.begin()->first <= now) {
    auto gpu = gpu_deadlines_.begin()->second;
    switch (gpus_[gpu].phase) {
    case gpu_phase::granted:
      end_lease(gpu, "lease_withdraw",
        fmt::format("withdrawn: not started within {} s", seconds(config_.grant_answer_limit)),
        true, now, out);
      break;
    case gpu_phase::active:
      end_lease(gpu, "lease_revoke", "expired", true, now, out);
      break;
    case gpu_phase::verifying:
      on_device_down(gpu,
        fmt::format(
          "nobody verified within {} s that its last lease is over", seconds(config_.verify_limit)),
        now, out);
      break;
    case gpu_phase::absent:
    case gpu_phase::free:
    case gpu_phase::down:
      enter(gpu, gpus_[gpu].phase, std::nullopt);
      break;
    }
  }
  while (!wait_deadlines_.empty() && wait_deadlines_.begin()->first <= now)
    end_wait(
      wait_deadlines_.begin()->second, "waited in vain: the patience is over", true, now, out);
}

std::optional<nanoseconds> lease_table::next_deadline() const {
  std::optional<nanoseconds> out;
  if (!gpu_deadlines_.empty())
    out = gpu_deadlines_.begin()->first;
  if (!wait_deadlines_.empty())
    out = std::min(out.value_or(nanoseconds::max()), wait_deadlines_.begin()->first);
  return out;
}

void lease_table::drain(const std::string& reason, nanoseconds now, lease_actions& out) {
  if (!draining_.empty())
    return;
  draining_ = reason.empty() ? "draining" : reason;
  while (!waiting_.empty())
    end_wait(waiting_.begin()->first, "no lease is granted any more: " + draining_, true, now, out);
}

// --- looking ---------------------------------------------------------------------------------

broker_snapshot lease_table::snapshot() const {
  broker_snapshot out;
  for (uint32_t gpu = 0; gpu < gpus_.size(); ++gpu) {
    const auto& s = gpus_[gpu];
    bool in_use = live(s) || s.phase == gpu_phase::verifying;
    out.gpus.push_back({gpu, s.entry.model, s.phase, s.token, in_use ? s.attempt : std::string{}});
  }
  out.waiting = static_cast<uint32_t>(waiting_.size());
  out.granted_total = granted_total_;
  return out;
}

std::optional<std::string> lease_table::broken_invariant() const {
  size_t live_count = 0;
  size_t deadline_count = 0;
  for (uint32_t gpu = 0; gpu < gpus_.size(); ++gpu) {
    const auto& s = gpus_[gpu];
    auto says = [&](const char* what) {
      return fmt::format("GPU {} ({}): {}", gpu, to_string(s.phase), what);
    };
    if (s.token > s.reserved_last || s.token < s.entry.token_floor)
      return says("its token lies outside the reserved blocks");
    if (s.phase == gpu_phase::free && !s.verified)
      return says("free, although its last lease was not verified");
    if (live(s)) {
      ++live_count;
      auto it = held_.find({s.holder, s.request});
      if (it == held_.end() || it->second != gpu)
        return says("its live lease has no holder");
      if (s.verified || !s.charge_due)
        return says("its live lease counts as over");
    }
    bool has_time = live(s) || s.phase == gpu_phase::verifying;
    if (has_time != s.deadline.has_value())
      return says("a phase that must end has no deadline, or one that need not has one");
    if (s.deadline && !gpu_deadlines_.contains({*s.deadline, gpu}))
      return says("its deadline is in no timer");
    deadline_count += s.deadline ? 1 : 0;
    bool can_grant = s.phase == gpu_phase::free && s.token < s.reserved_last;
    auto set = free_.find(s.model);
    if ((set != free_.end() && set->second.contains(gpu)) != can_grant)
      return says("the set of free GPUs does not fit its phase");
    if (can_grant && draining_.empty() && policy_->pick(s.model, nanoseconds{0}))
      return says("free, although somebody waits for it");
  }
  if (live_count != held_.size() || deadline_count != gpu_deadlines_.size())
    return "a lease or a deadline is left over";
  if (waiting_.size() != tickets_.size() || waiting_.size() != wait_deadlines_.size())
    return "the indices of the waiting requests differ";
  if (waiting_.size() > config_.waiting_max)
    return "more requests wait than allowed";
  return std::nullopt;
}

} // namespace gristmill
