#include "planning/attempt.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

using std::chrono::nanoseconds;

std::string to_string(attempt_state state) {
  switch (state) {
  case attempt_state::idle:
    return "idle";
  case attempt_state::proposing:
    return "proposing";
  case attempt_state::claiming:
    return "claiming";
  case attempt_state::compiling:
    return "compiling";
  case attempt_state::waiting_lease:
    return "waiting for a lease";
  case attempt_state::measuring:
    return "measuring";
  case attempt_state::judging:
    return "judging";
  case attempt_state::drawing:
    return "drawing inputs for its promotion";
  case attempt_state::compiling_rival:
    return "compiling the incumbent";
  case attempt_state::reporting:
    return "reporting";
  }
  return "unknown";
}

namespace {

uint64_t ns(nanoseconds t) {
  return static_cast<uint64_t>(std::max<int64_t>(t.count(), 0));
}

/// The bound that most workloads name; the first of them wins a tie.
std::string bound_of(const measurement& measured) {
  std::string best;
  ptrdiff_t most = 0;
  for (const auto& one : measured.workloads) {
    if (one.bound.empty())
      continue;
    auto same = std::count_if(measured.workloads.begin(), measured.workloads.end(),
      [&](const workload_measurement& w) { return w.bound == one.bound; });
    if (same > most) {
      most = same;
      best = one.bound;
    }
  }
  return best;
}

} // namespace

attempt::attempt(std::string worker, attempt_limits limits)
  : worker_(std::move(worker)), limits_(limits) {}

std::vector<attempt_command> attempt::step(const attempt_event& what, instant now) {
  return std::visit([&](const auto& e) { return on(e, now); }, what);
}

std::optional<nanoseconds> attempt::next_deadline() const {
  if (state_ == attempt_state::idle)
    return std::nullopt;
  return deadline_;
}

bool attempt::is_before_measuring() const {
  return state_ == attempt_state::proposing || state_ == attempt_state::claiming
    || state_ == attempt_state::compiling || state_ == attempt_state::waiting_lease
    || state_ == attempt_state::drawing || state_ == attempt_state::compiling_rival;
}

void attempt::enter(attempt_state state, instant deadline) {
  state_ = state;
  deadline_ = deadline;
  if (limits_.run_end.count() > 0 && is_before_measuring())
    deadline_ = std::min(deadline_, limits_.run_end);
}

attempt::commands attempt::on(const assignment& what, instant now) {
  if (state_ != attempt_state::idle) {
    if (what.id == work_.id)
      return {};
    // Answered, so that the planner's books stay right; the attempt in work is not disturbed.
    attempt_summary refused;
    refused.id = what.id;
    refused.kind = what.kind;
    refused.worker = worker_;
    if (what.given)
      refused.candidate = *what.given;
    refused.reason = fmt::format("worker {} is busy with {}", worker_, to_string(work_.id));
    return {refused};
  }
  work_ = what;
  candidate_ = {};
  effort_ = attempt_effort::full;
  workloads_.clear();
  units_.clear();
  compiled_findings_.clear();
  lease_ = {};
  granted_at_ = nanoseconds{0};
  gpu_ns_ = 0;
  claims_ = 0;
  repeats_ = 0;
  losses_ = 0;
  verdict_ = {};
  draw_.clear();
  promotions_ = 0;
  against_ = {};
  bound_.clear();
  // The planner has claimed the key of a candidate that it gives itself.
  if (work_.given) {
    candidate_ = *work_.given;
    return compile(now);
  }
  enter(attempt_state::proposing, now + limits_.propose);
  return {propose_request{work_}};
}

attempt::commands attempt::on(const answered<proposal>& what, instant now) {
  if (!awaits(attempt_state::proposing, what.attempt))
    return {};
  switch (what.value.kind) {
  case proposal_kind::exhausted:
    return finish(attempt_outcome::exhausted, what.value.reason, now);
  case proposal_kind::no_candidate:
    return finish(attempt_outcome::no_candidate, what.value.reason, now);
  case proposal_kind::failed:
    return finish(attempt_outcome::unproposed, what.value.reason, now);
  case proposal_kind::candidate:
    break;
  }
  candidate_ = what.value.candidate;
  workloads_ = what.value.workloads;
  // What has not seen every workload is a probe, whatever it is called.
  effort_ = workloads_.empty() ? what.value.effort : attempt_effort::probe;
  if (effort_ == attempt_effort::probe && work_.kind != attempt_kind::search)
    return finish(attempt_outcome::infrastructure,
      fmt::format("the proposer wants to probe in a {} attempt, which must see every workload",
        to_string(work_.kind)),
      now);
  enter(attempt_state::claiming, now + limits_.claim);
  return {claim_request{work_.id, candidate_.key}};
}

attempt::commands attempt::on(const answered<claim_reply>& what, instant now) {
  if (!awaits(attempt_state::claiming, what.attempt))
    return {};
  if (what.value.granted)
    return compile(now);
  auto refused = candidate_.key;
  candidate_ = {};
  if (++claims_ >= limits_.claims_max)
    return finish(attempt_outcome::infrastructure,
      fmt::format(
        "the proposer named {} keys in a row that are taken, '{}' last", claims_, refused),
      now);
  // The proposer has no memory of its own: what it must not propose again is in the assignment.
  work_.in_flight = what.value.taken;
  if (std::find(work_.in_flight.begin(), work_.in_flight.end(), refused) == work_.in_flight.end())
    work_.in_flight.push_back(refused);
  enter(attempt_state::proposing, now + limits_.propose);
  return {propose_request{work_}};
}

attempt::commands attempt::compile(instant now) {
  work_.history.clear(); // Only proposers look at it.
  enter(attempt_state::compiling, now + limits_.compile);
  return {compile_request{work_.id, candidate_, work_.device_model}};
}

attempt::commands attempt::on(const answered<compiled_candidate>& what, instant now) {
  const auto& compiled = what.value;
  if (awaits(attempt_state::compiling_rival, what.attempt)) {
    if (compiled.status != verdict_status::passed)
      return finish(attempt_outcome::infrastructure,
        fmt::format(
          "the incumbent {} does not compile any more: {}", verdict_.incumbent->hash, compiled.log),
        now);
    against_ = rival{*verdict_.incumbent, compiled.units};
    return ask_for_lease(now);
  }
  if (!awaits(attempt_state::compiling, what.attempt))
    return {};
  if (compiled.status == verdict_status::infrastructure)
    return finish(attempt_outcome::infrastructure, "compiler: " + compiled.log, now);
  if (compiled.status != verdict_status::passed) {
    enter(attempt_state::judging, now + limits_.judge);
    return {refused_request{work_.id, work_.kind, candidate_, effort_, compiled}};
  }
  units_ = compiled.units;
  compiled_findings_ = compiled.findings;
  return ask_for_lease(now);
}

attempt::commands attempt::ask_for_lease(instant now) {
  const bool ends = limits_.run_end.count() > 0;
  if (ends && now >= limits_.run_end)
    return finish(attempt_outcome::abandoned, "the time of the run is over", now);
  const auto patience =
    ends ? std::min(limits_.lease_wait, limits_.run_end - now) : limits_.lease_wait;
  lease_request ask;
  ask.request = ++request_;
  ask.what = limits_.what;
  ask.flow = {work_.id.problem, worker_};
  ask.need = work_.device_model;
  ask.estimated_hold = draw_.empty() ? limits_.estimated_hold : limits_.promotion_hold;
  ask.patience = patience;
  ask.attempt = to_string(work_.id);
  ask.candidate = candidate_.hash;
  enter(attempt_state::waiting_lease, now + patience + limits_.lease_margin);
  return {ask};
}

attempt::commands attempt::on(const lease_granted& what, instant now) {
  if (state_ == attempt_state::measuring && what.request == request_ && what.granted == lease_)
    return {};
  if (state_ != attempt_state::waiting_lease || what.request != request_) {
    // Granted too late: given back at once, so that nobody waits for the broker to notice.
    lease_command back;
    back.verb = lease_verb::release;
    back.request = what.request;
    back.gpu = what.granted.gpu;
    back.token = what.granted.token;
    back.reason = "nobody waits for it any more";
    return {back};
  }
  lease_ = what.granted;
  granted_at_ = now;
  enter(attempt_state::measuring, now + lease_.term + limits_.measure_margin);
  measure_request ask;
  ask.under = lease_;
  ask.attempt = work_.id;
  ask.candidate = candidate_;
  ask.units = units_;
  ask.workloads = workloads_;
  ask.purpose = draw_.empty() ? measure_purpose::screen : measure_purpose::promotion;
  ask.draw = draw_;
  ask.against = against_;
  return {std::move(ask)};
}

attempt::commands attempt::on(const lease_ended& what, instant now) {
  if (what.request != request_)
    return {};
  if (state_ == attempt_state::waiting_lease && what.token == 0) {
    if (what.reason.starts_with("refused: "))
      return refused_by_broker(what.reason, now);
    if (limits_.run_end.count() > 0 && now >= limits_.run_end)
      return finish(attempt_outcome::abandoned, "the time of the run is over", now);
    return finish(attempt_outcome::infrastructure, "no lease: " + what.reason, now);
  }
  if (state_ != attempt_state::measuring || what.token != lease_.token)
    return {};
  gpu_ns_ += ns(now - granted_at_);
  // Over already: there is nothing to give back.
  lease_ = {};
  if (what.reason.starts_with(machine_lost_reason))
    return measure_elsewhere("the lease was taken back: " + what.reason, now);
  return measure_again("the lease was taken back: " + what.reason, now);
}

attempt::commands attempt::measure_again(std::string reason, instant now) {
  if (repeats_ >= limits_.repeats_max)
    return finish(attempt_outcome::infrastructure,
      fmt::format("{} (measured {} times in vain)", reason, repeats_ + 1), now);
  ++repeats_;
  return change_lease(reason, now);
}

attempt::commands attempt::measure_elsewhere(std::string reason, instant now) {
  if (losses_ >= limits_.losses_max)
    return finish(attempt_outcome::infrastructure,
      fmt::format("{} ({} machines were lost under it)", reason, losses_ + 1), now);
  ++losses_;
  return change_lease(reason, now);
}

attempt::commands attempt::change_lease(const std::string& reason, instant now) {
  commands out;
  give_back(out, reason, now);
  for (auto& command : ask_for_lease(now))
    out.push_back(std::move(command));
  return out;
}

attempt::commands attempt::refused_by_broker(const std::string& reason, instant now) {
  compiled_candidate refused;
  refused.candidate = candidate_.hash;
  refused.status = verdict_status::runtime_error;
  refused.log = reason;
  enter(attempt_state::judging, now + limits_.judge);
  return {refused_request{work_.id, work_.kind, candidate_, effort_, refused}};
}

attempt::commands attempt::on(const measurement& what, instant now) {
  // A result under an older token is worth nothing, whatever it says.
  if (!awaits(attempt_state::measuring, what.attempt) || what.gpu != lease_.gpu
    || what.token != lease_.token)
    return {};
  gpu_ns_ += ns(what.held);
  lease_ = {};
  if (!what.failure_text.empty())
    return measure_again("measuring: " + what.failure_text, now);
  bound_ = bound_of(what);
  enter(attempt_state::judging, now + limits_.judge);
  judge_request ask{work_.id, work_.kind, candidate_, effort_, workloads_, what, {}, {}, {}};
  // Found before anything ran, and as true of what ran.
  ask.measured.findings.insert(
    ask.measured.findings.end(), compiled_findings_.begin(), compiled_findings_.end());
  ask.purpose = draw_.empty() ? measure_purpose::screen : measure_purpose::promotion;
  ask.draw = draw_;
  ask.against = against_;
  return {std::move(ask)};
}

attempt::commands attempt::on(const answered<verdict>& what, instant now) {
  if (!awaits(attempt_state::judging, what.attempt))
    return {};
  verdict_ = what.value;
  if (verdict_.wants_promotion)
    return promote(now);
  auto outcome = verdict_.status == verdict_status::infrastructure ? attempt_outcome::infrastructure
                                                                   : attempt_outcome::judged;
  return finish(outcome, verdict_.reason, now);
}

void attempt::give_up_draw(commands& out) {
  if (!draw_.empty())
    out.push_back(draw_over{draw_});
  draw_.clear();
}

attempt::commands attempt::promote(instant now) {
  if (promotions_ >= limits_.promotions_max)
    return finish(attempt_outcome::infrastructure,
      fmt::format("overtaken by other candidates in {} promotions", promotions_), now);
  ++promotions_;
  repeats_ = 0;
  against_ = {};
  commands out;
  give_up_draw(out);
  draw_ = fmt::format("{}#{}", to_string(work_.id), promotions_);
  enter(attempt_state::drawing, now + limits_.draw);
  out.push_back(prepare_request{work_.id.problem, draw_, candidate_});
  return out;
}

attempt::commands attempt::on(const answered<prepared_problem>& what, instant now) {
  if (!awaits(attempt_state::drawing, what.attempt))
    return {};
  if (what.value.status != verdict_status::passed)
    return finish(attempt_outcome::infrastructure,
      "the inputs of its promotion could not be made: " + what.value.reason, now);
  if (!verdict_.incumbent)
    return ask_for_lease(now);
  enter(attempt_state::compiling_rival, now + limits_.compile);
  return {compile_request{work_.id, *verdict_.incumbent, work_.device_model}};
}

attempt::commands attempt::on(const step_failed& what, instant now) {
  if (state_ == attempt_state::idle || what.attempt != work_.id
    || (what.during != attempt_state::idle && what.during != state_))
    return {};
  if (state_ == attempt_state::measuring && what.token != 0 && what.token != lease_.token)
    return {};
  if (state_ == attempt_state::reporting) {
    enter(attempt_state::idle, now);
    return {};
  }
  auto reason =
    fmt::format("{}: {} ({})", to_string(state_), what.why.what, to_string(what.why.code));
  if (state_ == attempt_state::waiting_lease && what.why.code == errc::refused)
    return refused_by_broker(what.why.what, now);
  if ((state_ == attempt_state::measuring || state_ == attempt_state::judging)
    && what.why.code == errc::node_lost)
    return measure_elsewhere(std::move(reason), now);
  bool ending = what.why.code == errc::shutting_down || what.why.code == errc::invalid_input;
  if (state_ == attempt_state::measuring && !ending)
    return measure_again(std::move(reason), now);
  // The scorer has seen a newer token of that GPU: too late, but not the candidate's fault.
  if (state_ == attempt_state::judging && what.why.code == errc::lease_expired)
    return measure_again(std::move(reason), now);
  return finish(attempt_outcome::infrastructure, std::move(reason), now);
}

attempt::commands attempt::on(const attempt_due&, instant now) {
  if (state_ == attempt_state::idle || now < deadline_)
    return {};
  if (state_ == attempt_state::reporting) {
    // Sent once, never again: the planner counts a worker that is gone by itself.
    enter(attempt_state::idle, now);
    return {};
  }
  if (limits_.run_end.count() > 0 && now >= limits_.run_end && is_before_measuring())
    return finish(attempt_outcome::abandoned, "the time of the run is over", now);
  return finish(
    attempt_outcome::infrastructure, fmt::format("{}: no answer in time", to_string(state_)), now);
}

attempt::commands attempt::on(const attempt_abandon& what, instant now) {
  if (state_ == attempt_state::idle || state_ == attempt_state::reporting)
    return {};
  return finish(attempt_outcome::abandoned, what.reason, now);
}

attempt::commands attempt::on(const summary_stored& what, instant now) {
  if (awaits(attempt_state::reporting, what.attempt))
    enter(attempt_state::idle, now);
  return {};
}

void attempt::give_back(commands& out, const std::string& reason, instant now) {
  if (lease_.token == 0)
    return;
  lease_command back;
  back.verb = lease_verb::release;
  back.request = request_;
  back.gpu = lease_.gpu;
  back.token = lease_.token;
  back.reason = reason;
  out.push_back(back);
  gpu_ns_ += ns(now - granted_at_);
  lease_ = {};
}

std::string attempt::note() const {
  const auto& name = candidate_.key.empty() ? candidate_.hash : candidate_.key;
  if (verdict_.status != verdict_status::passed)
    return fmt::format(
      "{}: {}", name, verdict_.reason.empty() ? to_string(verdict_.status) : verdict_.reason);
  auto limits = bound_.empty() ? std::string{} : ", limited by " + bound_;
  if (verdict_.incumbent_stays)
    limits += ", no gain over the incumbent that counts";
  return fmt::format("{}: {}{} ns{}", name, effort_ == attempt_effort::probe ? "probe, " : "",
    verdict_.objective_ns, limits);
}

attempt::commands attempt::finish(attempt_outcome outcome, std::string reason, instant now) {
  commands out;
  work_.history.clear();
  if (state_ == attempt_state::waiting_lease) {
    lease_command cancel;
    cancel.verb = lease_verb::cancel;
    cancel.request = request_;
    cancel.reason = reason;
    out.push_back(cancel);
  } else if (state_ == attempt_state::measuring) {
    give_back(out, reason, now);
  }
  give_up_draw(out);
  attempt_summary summary;
  summary.id = work_.id;
  summary.kind = work_.kind;
  summary.worker = worker_;
  summary.outcome = outcome;
  summary.candidate = candidate_;
  summary.effort = effort_;
  summary.gpu_ns = gpu_ns_;
  summary.reason = std::move(reason);
  if (outcome == attempt_outcome::judged) {
    summary.status = verdict_.status;
    summary.objective_ns = verdict_.objective_ns;
    summary.speedup = verdict_.speedup;
    summary.sol_score = verdict_.sol_score;
    summary.floor_share = verdict_.floor_share;
    summary.incumbent_stays = verdict_.incumbent_stays;
    summary.note = note();
    summary.feedback = verdict_.feedback;
    if (verdict_.status == verdict_status::passed) {
      for (const workload_verdict& one : verdict_.workloads) {
        if (one.time_ns > 0)
          summary.times.push_back({one.uuid, one.time_ns});
      }
    }
  } else if (outcome == attempt_outcome::infrastructure) {
    summary.status = verdict_status::infrastructure;
  }
  out.push_back(std::move(summary));
  enter(attempt_state::reporting, now + limits_.report);
  return out;
}

} // namespace gristmill
