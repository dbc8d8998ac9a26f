// What clients say to the broker.

#include "gpu/broker/broker_core.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

using std::chrono::nanoseconds;

namespace {

/// Requests of one connection that wait at a time.
constexpr size_t waits_max = 64;
constexpr size_t quotas_max = 4096;
constexpr std::chrono::milliseconds watch_min{200};

} // namespace

void broker_core::on_connect(connection_id from, const broker_peer& peer, nanoseconds) {
  connections_[from].peer = peer;
}

void broker_core::on_line(connection_id from, std::string_view line, nanoseconds now) {
  if (connections_.find(from) == connections_.end())
    return;
  auto read = parse_client_line(line);
  if (!read) {
    refuse(from, 0, read.error());
    outside_.close(from);
    return;
  }
  obey(from, *read, now);
}

void broker_core::obey(connection_id from, const client_line& line, nanoseconds now) {
  auto& c = connections_.at(from);
  if (c.greeted == (line.verb == client_verb::hello)) {
    refuse(from, line.request,
      {errc::invalid_input,
        c.greeted ? "hello was said before" : "the first line must be hello, with the protocol"});
    outside_.close(from);
    return;
  }
  switch (line.verb) { // no default: the compiler reports a missing verb
  case client_verb::hello:
    on_hello(from, line);
    return;
  case client_verb::request:
    on_request(from, line, now);
    return;
  case client_verb::cancel: {
    lease_actions actions;
    auto ack = table_.on_cancel(from, line.request, now, actions);
    c.waits.erase(line.request);
    perform(actions, now);
    answer(from, ack.applied, ack.note);
    return;
  }
  case client_verb::started:
    on_started(from, line, now);
    return;
  case client_verb::renew:
    on_renew(from, line, now);
    return;
  case client_verb::ended:
    on_ended(from, line, now);
    return;
  case client_verb::adopt:
    on_adopt(from, line, now);
    return;
  case client_verb::check:
    on_check(from, line, now);
    return;
  case client_verb::status: {
    broker_line out;
    out.say = broker_say::status;
    out.status = status(line.waiters, now);
    outside_.send(from, out);
    return;
  }
  case client_verb::drain:
  case client_verb::undrain:
  case client_verb::quota:
    on_admin(from, line, now);
    return;
  }
}

void broker_core::answer(
  connection_id to, bool applied, const std::string& text, nanoseconds left) {
  broker_line out;
  out.say = broker_say::ack;
  out.applied = applied;
  out.note = text;
  out.left = left;
  outside_.send(to, out);
}

void broker_core::refuse(connection_id to, uint64_t request, const failure& why) {
  broker_line out;
  out.say = broker_say::error;
  out.request = request;
  out.code = why.code;
  out.what = why.what;
  outside_.send(to, out);
}

void broker_core::on_hello(connection_id from, const client_line& line) {
  auto& c = connections_.at(from);
  auto turn_away = [&](const failure& why) {
    refuse(from, 0, why);
    outside_.close(from);
  };
  if (line.protocol != broker_protocol) {
    turn_away({errc::unsupported,
      fmt::format("this broker speaks protocol {}, not {}", broker_protocol, line.protocol)});
    return;
  }
  c.flow = {c.peer.login, "-"};
  if (!line.as.empty()) {
    auto flow = parse_user_project(line.as);
    if (!flow) {
      turn_away(flow.error());
      return;
    }
    if (flow->problem != c.peer.login && !c.peer.trusted) {
      turn_away({errc::refused,
        fmt::format("{} may not ask as {}; only the project behind the slash is free to choose",
          c.peer.login, flow->problem)});
      return;
    }
    c.flow = *flow;
  }
  c.greeted = true;
  broker_line out;
  out.say = broker_say::hello;
  out.epoch = memory_.epoch;
  out.as = c.flow.problem + "/" + c.flow.agent;
  for (const auto& s : slots_)
    out.gpus.push_back(s.device.name);
  outside_.send(from, out);
}

void broker_core::on_request(connection_id from, const client_line& line, nanoseconds now) {
  auto& c = connections_.at(from);
  if (c.waits.size() >= waits_max && c.waits.find(line.request) == c.waits.end()) {
    refuse(from, line.request,
      {errc::queue_full,
        fmt::format("{} requests of this connection wait already", c.waits.size())});
    return;
  }
  lease_request ask;
  ask.request = line.request;
  ask.what = line.what;
  ask.flow = c.flow;
  ask.weight = weight_of(c.flow.problem);
  ask.need = line.need;
  ask.estimated_hold = line.estimate;
  ask.patience = line.patience;
  ask.attempt = line.command;
  ask.candidate = line.candidate;
  ask.term = line.term;
  waiting w;
  w.ask = ask;
  w.guarded = line.guarded;
  if (line.watch > nanoseconds{0})
    w.watch = std::max<nanoseconds>(line.watch, watch_min);
  w.told_at = now;
  c.waits[line.request] = w;
  lease_actions actions;
  auto ticket = table_.on_request(from, ask, now, actions);
  if (!ticket) {
    c.waits.erase(line.request);
    perform(actions, now);
    refuse(from, line.request, ticket.error());
    return;
  }
  auto& kept = c.waits[line.request];
  kept.ahead = ticket->ahead;
  kept.ticket = ticket->ticket;
  if (kept.watch > nanoseconds{0}) {
    const auto next = now + kept.watch;
    tell_at_ = tell_at_ ? std::min(*tell_at_, next) : next;
  }
  broker_line out;
  out.say = broker_say::ticket;
  out.request = line.request;
  out.ticket = ticket->ticket;
  out.ahead = ticket->ahead;
  out.estimated_wait = ticket->estimated_wait;
  outside_.send(from, out);
  event e;
  e.t = now;
  e.kind = "lease_ticket";
  e.problem = c.flow.problem;
  e.data = fmt::format("{{\"ahead\":{},\"estimated_wait_ns\":{},\"ticket\":{}}}", ticket->ahead,
    ticket->estimated_wait.count(), ticket->ticket);
  outside_.note(std::move(e));
  perform(actions, now);
}

std::optional<uint32_t> broker_core::find(const client_line& line) const {
  // By the name of the lease, which only its holder knows; numbers of GPUs may differ after a
  // restart.
  for (uint32_t gpu = 0; gpu < slots_.size(); ++gpu) {
    const auto& r = slots_[gpu].record;
    if (r && r->lease == line.lease && r->token == line.token)
      return gpu;
  }
  return std::nullopt;
}

bool broker_core::may_speak_for(const broker_peer& peer, const lease_record& record) const {
  return peer.user == record.user || peer.trusted;
}

void broker_core::on_started(connection_id from, const client_line& line, nanoseconds now) {
  auto gpu = find(line);
  if (!gpu || slots_[*gpu].keeper != from)
    return; // It hears of the end of its lease by other lines.
  auto& s = slots_[*gpu];
  if (line.session != 0) {
    const auto session = static_cast<pid_t>(line.session);
    if (auto started = outside_.session_start(session, connections_.at(from).peer); started != 0) {
      s.record->session = session;
      s.record->session_started = started;
      outside_.save_lease(*s.record);
    }
  }
  if (s.state == work::out)
    report(*gpu, device_state::active, line.token, now);
}

void broker_core::on_renew(connection_id from, const client_line& line, nanoseconds now) {
  auto gpu = find(line);
  if (!gpu || slots_[*gpu].keeper != from) {
    answer(from, false, "no such lease is out");
    return;
  }
  if (slots_[*gpu].state != work::out)
    return; // The revoke is under way to it.
  lease_actions actions;
  auto ack = table_.on_renew(*gpu, line.token, line.idle, now, actions);
  perform(actions, now);
  if (slots_[*gpu].state == work::out)
    answer(from, ack.applied, ack.note);
}

void broker_core::on_ended(connection_id from, const client_line& line, nanoseconds now) {
  auto gpu = find(line);
  if (!gpu || slots_[*gpu].keeper != from)
    return; // Stale: the broker has ended it by itself.
  auto& s = slots_[*gpu];
  if (s.state != work::out && s.state != work::ending)
    return;
  if (s.state == work::out)
    s.ended_at = now;
  if (line.outcome == lease_outcome::hang && line.reason.starts_with("a process does not end")) {
    // Its guard could not; the broker tries, and may have more rights.
    start_cleaning(*gpu, true, now);
  } else {
    s.state = work::probing;
    s.deadline.reset();
  }
  const auto token = line.token;
  const bool probing = s.state == work::probing;
  lease_actions actions;
  table_.on_release(*gpu, token, line.reason, line.outcome, now, actions);
  perform(actions, now);
  report(*gpu, device_state::ended, token, now);
  if (probing)
    outside_.probe(*gpu, &*slots_[*gpu].record);
}

void broker_core::on_adopt(connection_id from, const client_line& line, nanoseconds now) {
  auto gpu = find(line);
  const auto& peer = connections_.at(from).peer;
  if (!gpu || slots_[*gpu].state != work::orphaned || !may_speak_for(peer, *slots_[*gpu].record)) {
    refuse(from, line.request, {errc::lease_expired, "the broker no longer knows this lease"});
    return;
  }
  auto& s = slots_[*gpu];
  s.deadline.reset();
  s.state = work::out;
  s.keeper = from;
  s.in_table = true;
  s.record->pid = peer.pid;
  s.record->started = peer.started;
  s.record->request.request = line.request;
  outside_.save_lease(*s.record);

  device_report what;
  what.gpu = *gpu;
  what.state = device_state::holding;
  what.token = line.token;
  what.model = s.device.model;
  what.boot = settings_.boot;
  what.adopted.request = s.record->request;
  what.adopted.request.term = s.record->term;
  // By our own record: the time runs since the first grant, whoever asks.
  what.adopted.held = std::max(now - s.record->granted_at, nanoseconds{0});
  lease_actions actions;
  auto ack = table_.on_report(what, now, actions);
  if (ack.applied)
    ack = table_.on_claim(from, line.request, *gpu, line.token, now, actions);
  perform(actions, now);
  if (!ack.applied) {
    refuse(from, line.request, {errc::lease_expired, ack.note});
    // Unless the table has asked for it already.
    if (slots_[*gpu].state == work::out)
      on_revoke({*gpu, line.token, ack.note}, now);
    return;
  }
  outside_.send(from, grant_line(broker_say::adopted, *gpu, line.request));
}

void broker_core::on_check(connection_id from, const client_line& line, nanoseconds now) {
  auto gpu = find(line);
  const bool valid = gpu && may_speak_for(connections_.at(from).peer, *slots_[*gpu].record)
    && (slots_[*gpu].state == work::out || slots_[*gpu].state == work::orphaned);
  nanoseconds left{0};
  if (valid) {
    const auto& r = *slots_[*gpu].record;
    left = std::max(r.granted_at + r.term - now, nanoseconds{0});
  }
  answer(from, valid && left > nanoseconds{0}, valid ? "valid" : "no such lease is out", left);
}

void broker_core::on_admin(connection_id from, const client_line& line, nanoseconds now) {
  if (!connections_.at(from).peer.trusted) {
    refuse(from, 0,
      {errc::refused, "only root and the user who runs the broker may drain GPUs or set quotas"});
    return;
  }
  if (line.verb == client_verb::quota) {
    set_quota(from, line);
    return;
  }
  const bool drains = line.verb == client_verb::drain;
  lease_actions actions;
  auto ack = table_.on_broker_command(
    {drains ? broker_verb::drain : broker_verb::undrain, line.gpu_name, line.reason}, now, actions);
  if (ack.applied) {
    for (const auto& s : slots_)
      if (line.gpu_name.empty() || line.gpu_name == s.device.name) {
        if (drains)
          memory_.drained[s.device.name] = line.reason;
        else
          memory_.drained.erase(s.device.name);
      }
    if (auto saved = save_memory(true); !saved)
      ack.note += "; but it could not be stored: " + saved.error().what;
  }
  perform(actions, now);
  answer(from, ack.applied, ack.note);
}

void broker_core::set_quota(connection_id from, const client_line& line) {
  auto flow = parse_user_project(line.user);
  if (!flow || line.user.find('/') != std::string::npos) {
    refuse(from, 0, {errc::invalid_input, "a quota belongs to a user, without a project"});
    return;
  }
  if (memory_.weights.size() >= quotas_max && memory_.weights.count(line.user) == 0) {
    refuse(from, 0, {errc::queue_full, fmt::format("{} users have quotas already", quotas_max)});
    return;
  }
  memory_.weights[line.user] = line.weight;
  auto saved = save_memory(true);
  if (!saved) {
    refuse(from, 0, saved.error());
    return;
  }
  answer(
    from, true, fmt::format("{} has weight {}, from the next request on", line.user, line.weight));
}

void broker_core::on_gone(connection_id from, nanoseconds now) {
  if (connections_.erase(from) == 0)
    return;
  std::vector<uint32_t> kept;
  for (uint32_t gpu = 0; gpu < slots_.size(); ++gpu)
    if (slots_[gpu].keeper == from) {
      slots_[gpu].keeper = 0;
      kept.push_back(gpu);
    }
  lease_actions actions;
  table_.on_holder_down(from, now, actions);
  perform(actions, now);
  for (auto gpu : kept)
    if (slots_[gpu].state == work::out || slots_[gpu].state == work::ending)
      start_cleaning(gpu, false, now);
}

} // namespace gristmill
