#include "gpu/broker/broker_core.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace gristmill {

using std::chrono::nanoseconds;
using std::chrono::seconds;

namespace {

/// Who has used how much is stored so often, when it has changed.
constexpr seconds save_interval{2};

gpu_entry entry_of(const broker_device& device, const broker_memory& memory) {
  gpu_entry out;
  out.name = device.name;
  out.model = device.model;
  out.arch = device.arch;
  out.memory_bytes = device.memory_bytes;
  if (auto found = memory.tokens.find(device.name); found != memory.tokens.end())
    out.token_floor = found->second;
  return out;
}

} // namespace

broker_core::broker_core(broker_settings settings, broker_outside& outside)
  : settings_(std::move(settings)), outside_(outside),
    table_(
      [this] {
        auto config = settings_.table;
        config.epoch = settings_.memory.epoch + 1;
        config.ttl = settings_.ttl;
        // The broker itself decides when nobody comes for a lease of before.
        config.adoption_limit = settings_.ttl + std::chrono::minutes{5};
        return config;
      }(),
      std::move(settings_.policy)),
    memory_(settings_.memory) {}

result<void> broker_core::start(nanoseconds now) {
  started_at_ = now;
  ++memory_.epoch;
  for (const auto& [user, weight] : settings_.weights)
    memory_.weights[user] = weight;
  if (auto saved = save_memory(true); !saved)
    return saved;
  note("broker_start", settings_.about, now);
  for (const auto& device : settings_.devices) {
    slot s;
    s.device = device;
    for (const auto& record : settings_.leases)
      // After a restart of the machine nothing of it runs any more.
      if (record.gpu == device.name && record.boot == settings_.boot && !settings_.boot.empty())
        s.record = record;
    if (s.record) {
      s.state = work::orphaned;
      s.deadline = outside_.keeper_lives(*s.record) ? now + settings_.ttl : now;
    } else {
      outside_.forget_lease(device.name);
    }
    slots_.push_back(std::move(s));
  }
  lease_actions actions;
  for (const auto& s : slots_) {
    auto entry = entry_of(s.device, memory_);
    entry.may_hold_lease_of_before = s.record.has_value();
    if (s.record)
      entry.token_floor = std::max(entry.token_floor, s.record->token);
    table_.add_gpu(std::move(entry), now, actions);
  }
  perform(actions, now);
  for (uint32_t gpu = 0; gpu < slots_.size(); ++gpu)
    if (slots_[gpu].state == work::none)
      report(gpu, device_state::up, 0, now);
  for (const auto& [name, reason] : memory_.drained) {
    lease_actions drained;
    table_.on_broker_command({broker_verb::drain, name, reason}, now, drained);
    perform(drained, now);
  }
  return {};
}

void broker_core::note(const std::string& kind, const std::string& reason, nanoseconds now) {
  event e;
  e.t = now;
  e.kind = kind;
  e.reason = reason;
  outside_.note(std::move(e));
}

result<void> broker_core::save_memory(bool durable) {
  memory_.policy = settings_.policy_text;
  memory_.policy_state = table_.policy().save();
  changed_ = false;
  return outside_.save(memory_, durable);
}

void broker_core::save_all() {
  (void)save_memory(true);
}

uint32_t broker_core::weight_of(const std::string& user) const {
  auto found = memory_.weights.find(user);
  return found == memory_.weights.end() ? 1 : found->second;
}

// --- what the table wants done -----------------------------------------------------------------

void broker_core::perform(lease_actions& actions, nanoseconds now) {
  for (auto& action : actions)
    switch (action.kind) {
    case lease_action_kind::grant:
      on_grant(action, now);
      break;
    case lease_action_kind::notify_holder:
      on_over(action);
      break;
    case lease_action_kind::revoke:
      on_revoke(action.revoke, now);
      break;
    case lease_action_kind::reserve: {
      auto entry = action.entry.take();
      auto& reserved = memory_.tokens[slots_[action.reserve.gpu].device.name];
      const auto before = std::exchange(reserved, action.reserve.last);
      // Only a token whose block is on the disk is ever granted.
      if (auto saved = save_memory(true); !saved) {
        reserved = before;
        note("broker_trouble", saved.error().what, now);
        break;
      }
      outside_.note(std::move(entry));
      lease_actions more;
      table_.on_block_reserved(action.reserve.gpu, action.reserve.last, now, more);
      perform(more, now);
      break;
    }
    case lease_action_kind::log:
      outside_.note(action.entry.take());
      changed_ = true;
      break;
    case lease_action_kind::probe:
      slots_[action.probe.gpu].probe_ordered = true;
      outside_.probe(action.probe.gpu, nullptr);
      break;
    case lease_action_kind::rerun:
      // For a planner; here everybody runs his own commands.
      break;
    }
}

lease_ack broker_core::report(
  uint32_t gpu, device_state state, uint64_t token, nanoseconds now, const probe_report& probe) {
  device_report what;
  what.gpu = gpu;
  what.state = state;
  what.token = token;
  what.model = slots_[gpu].device.model;
  what.boot = settings_.boot;
  what.probe = probe;
  lease_actions actions;
  auto ack = table_.on_report(what, now, actions);
  perform(actions, now);
  return ack;
}

broker_line broker_core::grant_line(broker_say say, uint32_t gpu, uint64_t request) const {
  const auto& s = slots_[gpu];
  broker_line out;
  out.say = say;
  out.request = request;
  out.gpu = gpu;
  out.gpu_name = s.device.name;
  out.visible = s.device.visible;
  out.token = s.record->token;
  out.lease = s.record->lease;
  out.term = s.record->term;
  out.ttl = settings_.ttl;
  return out;
}

void broker_core::on_grant(const lease_action& action, nanoseconds now) {
  const auto& what = action.granted.granted;
  auto found = connections_.find(action.holder);
  if (found == connections_.end())
    return; // It has just gone; the table hears of it next.
  auto& c = found->second;
  auto wait = c.waits.extract(action.granted.request);
  auto& s = slots_[what.gpu];
  lease_record r;
  r.gpu = s.device.name;
  r.token = what.token;
  r.lease = outside_.fresh_lease_name();
  r.boot = settings_.boot;
  r.granted_at = now;
  r.term = what.term;
  if (!wait.empty()) {
    r.request = wait.mapped().ask;
    r.guarded = wait.mapped().guarded;
  }
  r.user = c.peer.user;
  r.pid = c.peer.pid;
  r.started = c.peer.started;
  // Before anybody hears of it: a broker that dies now must find it again.
  outside_.save_lease(r);
  const bool guarded = r.guarded;
  s.record = std::move(r);
  s.state = work::out;
  s.keeper = action.holder;
  s.in_table = true;
  s.deadline.reset();
  s.cleaned = {};
  outside_.send(action.holder, grant_line(broker_say::granted, what.gpu, action.granted.request));
  // Who works under the lease itself has begun.
  if (!guarded)
    report(what.gpu, device_state::active, what.token, now);
}

void broker_core::on_over(const lease_action& action) {
  auto found = connections_.find(action.holder);
  // With a token it was a lease: its keeper hears the revoke.
  if (found == connections_.end() || action.ended.token != 0)
    return;
  found->second.waits.erase(action.ended.request);
  broker_line out;
  out.say = broker_say::over;
  out.request = action.ended.request;
  out.reason = action.ended.reason;
  outside_.send(action.holder, out);
}

void broker_core::on_revoke(const lease_revoke& what, nanoseconds now) {
  auto& s = slots_[what.gpu];
  switch (s.state) {
  case work::none:
    // Nothing runs there.
    report(what.gpu, device_state::verified, what.token, now, std::exchange(s.cleaned, {}));
    return;
  case work::orphaned:
    start_cleaning(what.gpu, true, now);
    return;
  case work::out: {
    if (s.keeper == 0) {
      start_cleaning(what.gpu, false, now);
      return;
    }
    s.state = work::ending;
    s.ended_at = now;
    s.deadline = now + settings_.revoke_answer_limit;
    broker_line out;
    out.say = broker_say::revoke;
    out.gpu = what.gpu;
    out.token = what.token;
    out.reason = what.reason;
    outside_.send(s.keeper, out);
    return;
  }
  case work::ending:
  case work::cleaning:
  case work::probing:
    // Its end is on the way.
    return;
  }
}

// --- the end of a lease ------------------------------------------------------------------------

void broker_core::start_cleaning(uint32_t gpu, bool holder_too, nanoseconds now) {
  auto& s = slots_[gpu];
  if (s.state != work::ending)
    s.ended_at = now;
  s.state = work::cleaning;
  s.deadline.reset();
  // A guard leads the session of its work, so it goes with it; the process of a client that works
  // under the lease itself is named apart.
  outside_.clean(gpu, *s.record, holder_too && !s.record->guarded);
}

void broker_core::on_cleaned(
  uint32_t gpu, uint64_t token, const probe_report& found, uint32_t ended, nanoseconds now) {
  auto& s = slots_[gpu];
  if (s.state != work::cleaning || s.record->token != token)
    return;
  event e;
  e.t = now;
  e.kind = "lease_cleaned";
  e.gpu = s.device.name;
  e.token = token;
  e.problem = s.record->request.flow.problem;
  e.reason = found.detail;
  e.data = fmt::format("{{\"ended\":{}}}", ended);
  outside_.note(std::move(e));
  s.cleaned = found;
  s.state = work::probing;
  outside_.probe(gpu, &*s.record);
}

void broker_core::on_probed(uint32_t gpu, const probe_report& found, nanoseconds now) {
  auto& s = slots_[gpu];
  if (s.state == work::probing) {
    // A process that could not be ended, or looked at, counts more than a GPU that looks well.
    auto all = s.cleaned.outcome == probe_outcome::passed ? found : s.cleaned;
    close_lease(gpu, all, now);
    return;
  }
  if (!std::exchange(s.probe_ordered, false))
    return;
  report(gpu, device_state::probed, 0, now, found);
}

void broker_core::close_lease(uint32_t gpu, const probe_report& found, nanoseconds now) {
  auto& s = slots_[gpu];
  const auto record = *std::exchange(s.record, std::nullopt);
  const bool stuck = s.cleaned.outcome == probe_outcome::failed;
  s.cleaned = {};
  s.state = work::none;
  const auto keeper = std::exchange(s.keeper, 0);
  const bool in_table = std::exchange(s.in_table, false);
  outside_.forget_lease(s.device.name);
  if (keeper != 0) {
    broker_line out;
    out.say = broker_say::closed;
    out.gpu = gpu;
    out.token = record.token;
    out.held = now - record.granted_at;
    out.cleaned = now - s.ended_at;
    out.probe = found;
    outside_.send(keeper, out);
  }
  if (stuck) {
    lease_actions actions;
    table_.quarantine(gpu, found.detail, now, actions);
    perform(actions, now);
  }
  if (in_table) {
    report(gpu, device_state::verified, record.token, now, found);
    return;
  }
  // Of before the restart, and nobody came for it: the table revokes all that was, and on_revoke
  // answers with what was found.
  s.cleaned = found;
  report(gpu, device_state::up, 0, now);
}

// --- time --------------------------------------------------------------------------------------

void broker_core::on_tick(nanoseconds now) {
  lease_actions actions;
  table_.on_tick(now, actions);
  perform(actions, now);
  for (uint32_t gpu = 0; gpu < slots_.size(); ++gpu) {
    auto& s = slots_[gpu];
    if (!s.deadline || now < *s.deadline)
      continue;
    s.deadline.reset();
    if (s.state == work::orphaned || s.state == work::ending)
      start_cleaning(gpu, true, now);
  }
  keep_connections_alive(now);
  tell_places(now);
  if (changed_ && now >= save_at_) {
    save_at_ = now + save_interval;
    if (auto saved = save_memory(false); !saved)
      note("broker_trouble", saved.error().what, now);
  }
}

/// A client that works under its lease itself does not renew: it lives as long as its connection.
void broker_core::keep_connections_alive(nanoseconds now) {
  if (now < renew_at_)
    return;
  renew_at_ = now + settings_.ttl / 3;
  for (uint32_t gpu = 0; gpu < slots_.size(); ++gpu) {
    const auto& s = slots_[gpu];
    if (s.state != work::out || s.record->guarded || s.keeper == 0)
      continue;
    lease_actions actions;
    table_.on_renew(gpu, s.record->token, nanoseconds{0}, now, actions);
    perform(actions, now);
  }
}

void broker_core::tell_places(nanoseconds now) {
  if (!tell_at_ || now < *tell_at_)
    return;
  tell_at_.reset();
  for (auto& [id, c] : connections_)
    for (auto& [request, w] : c.waits) {
      if (w.watch == nanoseconds{0})
        continue;
      if (now >= w.told_at + w.watch) {
        w.told_at = now;
        if (auto at = table_.position(id, request, now); at && at->ahead != w.ahead) {
          w.ahead = at->ahead;
          broker_line out;
          out.say = broker_say::position;
          out.request = request;
          out.ticket = at->ticket;
          out.ahead = at->ahead;
          out.estimated_wait = at->estimated_wait;
          outside_.send(id, out);
        }
      }
      const auto next = w.told_at + w.watch;
      tell_at_ = tell_at_ ? std::min(*tell_at_, next) : next;
    }
}

std::optional<nanoseconds> broker_core::next_deadline() const {
  auto out = table_.next_deadline();
  auto also = [&](nanoseconds when) { out = out ? std::min(*out, when) : when; };
  bool unguarded = false;
  for (const auto& s : slots_) {
    if (s.deadline)
      also(*s.deadline);
    unguarded = unguarded || (s.state == work::out && !s.record->guarded);
  }
  if (unguarded)
    also(renew_at_);
  if (tell_at_)
    also(*tell_at_);
  if (changed_)
    also(save_at_);
  return out;
}

void broker_core::drain(nanoseconds now) {
  if (std::exchange(draining_, true))
    return;
  note("broker_drain", "the broker is asked to end", now);
  lease_actions actions;
  table_.on_broker_command({broker_verb::drain, "", "the broker ends"}, now, actions);
  perform(actions, now);
}

bool broker_core::at_rest() const {
  return std::all_of(
    slots_.begin(), slots_.end(), [](const slot& s) { return s.state == work::none; });
}

} // namespace gristmill
