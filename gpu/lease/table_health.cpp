#include "gpu/lease/table.hpp"

#include "gpu/lease/table_lines.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

namespace gristmill {

using std::chrono::nanoseconds;

namespace {

constexpr size_t boot_text_max = 128;
/// Boot ids of a GPU that are remembered, to tell a late report from a new start.
constexpr size_t boots_remembered = 16;

lease_ack no_such_gpu(uint32_t gpu) {
  return {false, fmt::format("there is no GPU {} here", gpu)};
}

} // namespace

// --- what becomes of a GPU on which no lease is live -----------------------------------------

// Ends whatever may run under the newest token or an older one, whoever granted it.
void lease_table::fence(
  uint32_t gpu, const std::string& reason, nanoseconds now, lease_actions& out) {
  auto& s = gpus_[gpu];
  s.entry.may_hold_lease_of_before = false;
  s.verified = false;
  enter(gpu, gpu_phase::verifying, now + config_.verify_limit, now);
  auto line = [&] {
    auto e = gpu_event("gpu_verifying", gpu, now);
    e.reason = reason;
    return e;
  };
  log(line, out);
  revoke(gpu, s.token, reason, out);
}

// Where it goes when nothing runs on it. `free_line`, if there is one, tells that it is free.
void lease_table::settle(
  uint32_t gpu, std::optional<event> free_line, nanoseconds now, lease_actions& out) {
  auto& s = gpus_[gpu];
  if (s.entry.may_hold_lease_of_before) {
    fence(gpu, "an earlier start of the broker may have granted it", now, out);
  } else if (!s.verified) {
    fence(gpu, "its last lease was not verified", now, out);
  } else if (!s.condemned.empty()) {
    quarantine(gpu, std::string{s.condemned}, now, out);
  } else if (!s.suspicion.empty()) {
    suspect(gpu, now, out);
  } else if (s.drained) {
    enter(gpu, gpu_phase::draining, std::nullopt, now);
    auto line = [&] {
      auto e = free_line ? std::move(*free_line) : gpu_event("gpu_draining", gpu, now);
      e.kind = "gpu_draining";
      e.reason = s.drain_reason;
      return e;
    };
    log(line, out);
  } else {
    enter(gpu, gpu_phase::free, std::nullopt, now);
    if (free_line)
      log([&] { return std::move(*free_line); }, out);
    serve(now, out);
  }
}

void lease_table::suspect(uint32_t gpu, nanoseconds now, lease_actions& out) {
  enter(gpu, gpu_phase::suspect, std::nullopt, now);
  auto line = [&] {
    auto e = gpu_event("gpu_suspect", gpu, now);
    e.reason = gpus_[gpu].suspicion;
    return e;
  };
  log(line, out);
  gpus_[gpu].probes_without = 0;
  order_probe(gpu, now, out);
  look_for_alarms(now, out);
}

void lease_table::order_probe(uint32_t gpu, nanoseconds now, lease_actions& out) {
  auto limit = std::max(config_.probe_limit, nanoseconds{1});
  set_deadline(gpu, now + limit);
  gpus_[gpu].probing = true;
  lease_action a;
  a.kind = lease_action_kind::probe;
  a.probe = {gpu, limit};
  out.push_back(std::move(a));
}

void lease_table::after_probe(
  uint32_t gpu, const probe_report& probe, nanoseconds now, lease_actions& out) {
  auto& s = gpus_[gpu];
  s.probing = false;
  auto line = [&] {
    auto e = gpu_event("gpu_probe", gpu, now);
    e.reason = to_string(probe.outcome);
    e.data = lease_line{}.add_if("boot", s.boot).add_if("detail", probe.detail).text();
    return e;
  };
  log(line, out);
  if (probe.outcome == probe_outcome::passed) {
    s.suspicion.clear();
    s.failed_probes = 0;
    s.probes_without = 0;
    if (s.blamed)
      blame_.absolve_gpu(gpu, now);
    s.blamed = false;
    std::optional<event> free_line;
    if (config_.log_events) {
      free_line = gpu_event("gpu_free", gpu, now);
      free_line->reason = "it has passed a probe";
    }
    settle(gpu, std::move(free_line), now, out);
    look_for_alarms(now, out);
    return;
  }
  // "Could not probe" is not "faulty": it only means that nobody gets the GPU yet.
  auto times = probe.outcome == probe_outcome::failed ? ++s.failed_probes : ++s.probes_without;
  if (probe.outcome == probe_outcome::failed) {
    s.suspicion = "a probe failed: " + probe.detail;
    if (s.failed_probes >= config_.failed_probes_max) {
      quarantine(gpu,
        fmt::format("{} probes in a row failed, the last one: {}", s.failed_probes, probe.detail),
        now, out);
      return;
    }
  }
  auto backoff = std::max(config_.probe_backoff, nanoseconds{1});
  for (uint32_t i = 1; i < times && backoff < config_.probe_backoff_max; ++i)
    backoff *= 2;
  backoff = std::min(backoff, std::max(config_.probe_backoff_max, nanoseconds{1}));
  set_deadline(gpu, now + backoff);
  look_for_alarms(now, out);
}

lease_ack lease_table::on_probed(
  uint32_t gpu, const probe_report& probe, nanoseconds now, lease_actions& out) {
  saw(now);
  if (gpu >= gpus_.size())
    return no_such_gpu(gpu);
  if (gpus_[gpu].phase != gpu_phase::suspect || !gpus_[gpu].probing)
    return {false, "no probe of this GPU is due: it was not ordered, or its time is over"};
  after_probe(gpu, probe, now, out);
  return {true, {}};
}

lease_ack lease_table::on_verified(
  uint32_t gpu, uint64_t token, const probe_report& probe, nanoseconds now, lease_actions& out) {
  saw(now);
  if (gpu >= gpus_.size())
    return no_such_gpu(gpu);
  auto& s = gpus_[gpu];
  // A grant that has not been started cannot be over.
  if (s.token != token || s.phase == gpu_phase::granted)
    return {false, fmt::format("token {} of {} is not one that ends", token, s.entry.name)};
  if (s.phase == gpu_phase::active)
    end_lease(gpu, "lease_release", "the device ended without a release", true, now, out);
  s.verified = true;
  // The first word about the end of a lease decides whether its result counts, also when the GPU
  // has been lost or put into quarantine meanwhile.
  bool of_a_lease = std::exchange(s.leased, false);
  lease_ack ack{true, {}};
  if (of_a_lease && probe.outcome == probe_outcome::failed) {
    ack.note = "tainted: the GPU failed the probe after this lease: " + probe.detail;
    auto tainted = [&] {
      auto e = lease_event("lease_tainted", gpu, now);
      e.reason = ack.note;
      e.data = describe(s.who, s.request).add_if("boot", s.boot).text();
      return e;
    };
    log(tainted, out);
    tell_holder_of(gpu, ack.note, out);
  }
  if (!ending(s))
    return ack;

  std::optional<event> line;
  if (config_.log_events) {
    if (of_a_lease)
      line = lease_event("gpu_free", gpu, now,
        lease_line{}.add_if("boot", s.boot).add("held_ns", now - s.granted_at).text());
    else
      line = gpu_event("gpu_free", gpu, now);
  }
  charge(gpu, "verified", now);
  switch (probe.outcome) {
  case probe_outcome::passed:
    s.failed_probes = 0;
    if (!s.blamed)
      s.suspicion.clear();
    break;
  case probe_outcome::failed:
    ++s.failed_probes;
    s.suspicion = "the probe after a lease failed: " + probe.detail;
    if (s.failed_probes >= config_.failed_probes_max)
      s.condemned =
        fmt::format("{} probes in a row failed, the last one: {}", s.failed_probes, probe.detail);
    break;
  case probe_outcome::could_not:
    if (s.suspicion.empty())
      s.suspicion = "it could not be probed after a lease: " + probe.detail;
    break;
  }
  settle(gpu, std::move(line), now, out);
  return ack;
}

// --- coming and going ------------------------------------------------------------------------

lease_ack lease_table::on_device_up(
  uint32_t gpu, std::string_view boot, nanoseconds now, lease_actions& out) {
  saw(now);
  if (gpu >= gpus_.size())
    return no_such_gpu(gpu);
  auto& s = gpus_[gpu];
  if (boot.size() > boot_text_max)
    return {false, fmt::format("a boot id has at most {} bytes", boot_text_max)};
  if (std::find(s.boots_before.begin(), s.boots_before.end(), boot) != s.boots_before.end())
    return {false, fmt::format("boot id {} of {} is an earlier one", boot, s.entry.name)};
  if (boot.empty() && !s.boot.empty())
    return {false, fmt::format("{} has given a boot id before and must give one", s.entry.name)};
  bool started_anew = boot != s.boot;
  bool away = s.phase == gpu_phase::absent || s.phase == gpu_phase::lost;
  // Within a quarantine an executor may come and go; where there are boot ids, only with its node.
  if (boot.empty() || started_anew)
    s.away = false;
  if (!away && !started_anew)
    return {true, "it is in service"};
  if (s.phase == gpu_phase::lost && !started_anew && !boot.empty())
    return {
      false, fmt::format("{} was lost: it comes back under a new boot id only", s.entry.name)};
  if (s.phase == gpu_phase::quarantined && s.boot.empty()) {
    // Nobody knows of an earlier start, so this one cures nothing.
    s.boot = boot;
    return {true, "it stays in quarantine"};
  }
  bool first = s.phase == gpu_phase::absent;
  if (!away && s.phase != gpu_phase::quarantined)
    on_device_down(gpu, "its node has started anew", now, out);
  if (started_anew) {
    if (!s.boot.empty())
      s.boots_before.push_back(s.boot);
    if (s.boots_before.size() > boots_remembered)
      s.boots_before.erase(s.boots_before.begin());
    s.boot = boot;
    if (!first) {
      s.suspicion = s.phase == gpu_phase::quarantined
        ? "its node has started anew since the quarantine"
        : "its node has started anew";
      s.blamed = false;
      s.failed_probes = 0;
    }
  }
  // What it is: whoever reads the journal later knows which needs it satisfies.
  auto line = [&] {
    lease_line about;
    about.add_if("arch", s.attributes.arch)
      .add_if("boot", s.boot)
      .add_if("model", s.attributes.model)
      .add_if("node", s.attributes.node);
    if (s.attributes.memory_bytes != 0)
      about.add("memory_bytes", s.attributes.memory_bytes);
    auto up = gpu_event("gpu_up", gpu, now);
    up.data = about.text();
    return up;
  };
  log(line, out);
  settle(gpu, std::nullopt, now, out);
  return {true, {}};
}

void lease_table::on_device_down(
  uint32_t gpu, const std::string& reason, nanoseconds now, lease_actions& out) {
  saw(now);
  if (gpu >= gpus_.size() || gpus_[gpu].phase == gpu_phase::lost)
    return;
  auto& s = gpus_[gpu];
  if (s.phase == gpu_phase::quarantined) {
    s.away = true;
    return;
  }
  if (live(s))
    end_lease(gpu, "lease_revoke", "node_lost: " + reason, true, now, out);
  charge(gpu, reason, now);
  enter(gpu, gpu_phase::lost, std::nullopt, now);
  s.why = reason;
  auto line = [&] {
    auto e = gpu_event("gpu_down", gpu, now);
    e.reason = reason;
    return e;
  };
  log(line, out);
}

void lease_table::quarantine(
  uint32_t gpu, const std::string& reason, nanoseconds now, lease_actions& out) {
  saw(now);
  if (gpu >= gpus_.size() || gpus_[gpu].phase == gpu_phase::quarantined)
    return;
  auto& s = gpus_[gpu];
  if (live(s))
    end_lease(gpu, "lease_revoke", "quarantined: " + reason, true, now, out);
  charge(gpu, reason, now);
  s.away = s.phase == gpu_phase::absent || s.phase == gpu_phase::lost;
  enter(gpu, gpu_phase::quarantined, std::nullopt, now);
  s.why = reason;
  s.suspicion = "it was in quarantine: " + reason;
  s.condemned.clear();
  s.blamed = false;
  s.failed_probes = 0;
  auto quarantined = [&] {
    auto e = gpu_event("gpu_quarantined", gpu, now);
    e.reason = reason;
    return e;
  };
  log(quarantined, out);
  for (auto& victim : blame_.condemn_gpu(gpu)) {
    auto line = [&] {
      auto e = gpu_event("rerun", gpu, now);
      e.problem = victim.failure.problem;
      e.attempt = victim.failure.attempt;
      e.candidate = victim.candidate;
      e.reason = "it failed only on a GPU that is in quarantine now";
      return e;
    };
    log(line, out);
    auto& a = out.emplace_back();
    a.kind = lease_action_kind::rerun;
    a.rerun = std::move(victim);
  }
  look_for_alarms(now, out);
}

// --- drain and undrain -----------------------------------------------------------------------

lease_ack lease_table::on_broker_command(
  const broker_command& command, nanoseconds now, lease_actions& out) {
  saw(now);
  std::vector<uint32_t> which;
  if (command.gpu.empty()) {
    for (uint32_t gpu = 0; gpu < gpus_.size(); ++gpu)
      which.push_back(gpu);
  } else if (auto gpu = gpu_by_name(command.gpu)) {
    which.push_back(*gpu);
  } else {
    std::vector<std::string> names;
    for (const auto& s : gpus_)
      names.push_back(s.entry.name);
    return {false,
      fmt::format("there is no GPU '{}'; there are: {}", command.gpu.substr(0, 128),
        names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")))};
  }
  if (command.verb != broker_verb::drain && command.verb != broker_verb::undrain)
    return {false, "a broker command is drain or undrain"};
  uint32_t changed = 0;
  for (auto gpu : which) {
    auto& s = gpus_[gpu];
    if (command.verb == broker_verb::drain) {
      if (s.drained)
        continue;
      ++changed;
      s.drained = true;
      s.drain_reason = command.reason.empty() ? "drained" : command.reason;
      auto line = [&] {
        auto e = gpu_event("gpu_drain", gpu, now);
        e.reason = s.drain_reason;
        return e;
      };
      log(line, out);
      if (s.phase == gpu_phase::free)
        settle(gpu, std::nullopt, now, out);
      continue;
    }
    // A quarantine is lifted only for a GPU that the person has named.
    bool lifts = s.phase == gpu_phase::quarantined && !command.gpu.empty();
    if (!s.drained && !lifts)
      continue;
    ++changed;
    s.drained = false;
    auto line = [&] {
      auto e = gpu_event("gpu_undrain", gpu, now);
      e.reason = command.reason;
      return e;
    };
    log(line, out);
    if (lifts && s.away) {
      // There is nobody to probe it.
      s.away = false;
      enter(gpu, gpu_phase::lost, std::nullopt, now);
      s.why = "its executor has gone during the quarantine";
      auto down = [&] {
        auto e = gpu_event("gpu_down", gpu, now);
        e.reason = s.why;
        return e;
      };
      log(down, out);
    } else if (s.phase == gpu_phase::draining || lifts) {
      std::optional<event> free_line;
      if (config_.log_events)
        free_line = gpu_event("gpu_free", gpu, now);
      settle(gpu, std::move(free_line), now, out);
    }
  }
  ++changes_;
  return {true, fmt::format("{} of {} GPUs changed", changed, which.size())};
}

// --- blame -----------------------------------------------------------------------------------

std::string lease_table::failures_text(const std::string& candidate) const {
  std::vector<std::string> where;
  for (const auto& f : blame_.failures(candidate))
    where.push_back(
      fmt::format("{} at {:.3f} s ({})", f.gpu_name, in_seconds(f.at), to_string(f.how)));
  return fmt::format("candidate {} failed on {}", candidate.substr(0, 64), fmt::join(where, ", "));
}

void lease_table::remember_failure(const std::string& candidate, const blame_failure& failure) {
  blame_.on_failure(candidate, failure);
}

void lease_table::judge(uint32_t gpu, lease_outcome outcome, nanoseconds now, lease_actions& out) {
  auto& s = gpus_[gpu];
  bool failed = outcome == lease_outcome::fault || outcome == lease_outcome::hang;
  // A holder that gives up before its executor has spoken must not hide what that one then says.
  if (s.judged || !failed)
    return;
  s.judged = true;
  if (s.candidate.empty())
    return;
  auto effect = blame_.on_failure(
    s.candidate, {gpu, outcome, now, s.entry.name, s.who.flow.problem, s.attempt});
  auto line = [&] {
    auto e = lease_event("candidate_failed", gpu, now);
    e.reason = to_string(outcome);
    return e;
  };
  log(line, out);
  auto poison = [&] {
    auto e = lease_event("candidate_poison", gpu, now);
    e.reason = failures_text(s.candidate);
    return e;
  };
  if (effect.poisoned)
    log(poison, out);
  place_anew(std::string{s.candidate}, now, out);
  if (!effect.gpu_suspect)
    return;
  // Once more within the window, although it has passed a probe: the probe does not see it.
  std::string reason = "different candidates failed on it within the window of blame";
  if (s.blamed_at && now - *s.blamed_at < config_.blame.window && !s.blamed)
    s.condemned = reason + ", again after a passed probe";
  s.blamed = true;
  s.blamed_at = now;
  s.suspicion = reason;
}

} // namespace gristmill
