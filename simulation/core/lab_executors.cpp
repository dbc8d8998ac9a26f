#include "simulation/core/lab_world.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

const std::string reason_done = "done";
const std::string reason_fault = "fault";
const std::string reason_hang = "timeout";
const std::string reason_infrastructure = "infrastructure";

const std::string& reason_of(lease_outcome outcome) {
  switch (outcome) { // no default: the compiler reports a missing case
  case lease_outcome::fine:
    return reason_done;
  case lease_outcome::fault:
    return reason_fault;
  case lease_outcome::hang:
    return reason_hang;
  case lease_outcome::infrastructure:
    return reason_infrastructure;
  }
  return reason_done;
}

} // namespace

void lab_world::start_work(
  uint32_t gpu, asker& a, uint32_t index, const lease_granted& what, time now, world_port& port) {
  auto& e = gpus_[gpu];
  // It has gone this very instant: the broker knows, and tells the agent.
  if (e.what != executor_doing::idle)
    return;
  books_.gpu_was(gpu_time::free, e.since, now);
  books_.gpu_taken(now);
  e.what = executor_doing::working;
  e.asker = index;
  e.request = what.request;
  e.token = what.granted.token;
  e.revoked = false;
  e.outcome = a.outcome;
  e.granted_at = now;
  const auto entity = entity_of(gpu);
  const auto term = due(now, what.granted.term, entity);
  auto end = term;
  if (exact_) {
    e.launched_at = now;
    e.compiled_at = now;
    end = std::min(now + a.work, term);
  } else {
    e.launched_at = now + launch_;
    e.compiled_at = e.launched_at + (compiles_on_lease_ ? a.compile : time{0});
    const auto work = e.speed == 1
      ? a.work
      : time{static_cast<int64_t>(static_cast<double>(a.work.count()) / e.speed)};
    if (e.outcome != lease_outcome::hang)
      end = due(e.compiled_at, work, entity);
    // Its executor ends at the end of its term whatever has not ended by itself.
    if (end > term) {
      end = term;
      e.outcome = lease_outcome::hang;
    }
  }
  books_.step(lab_step::active, now, gpu, e.token, a.agent);
  port.activated(gpu, e.token);
  port.set_timer(entity, end);
}

void lab_world::count_work(const executor& e, time until, bool in_vain) {
  const auto launched = std::min(e.launched_at, until);
  const auto compiled = std::min(e.compiled_at, until);
  if (launched > e.granted_at)
    books_.gpu_was(gpu_time::launch, e.granted_at, launched);
  if (compiled > launched)
    books_.gpu_was(gpu_time::compile, launched, compiled);
  books_.gpu_was(in_vain ? gpu_time::wasted : gpu_time::useful, compiled, until);
}

void lab_world::count_for_problem(const executor& e, time until) {
  if (const auto p = asker_of(e.asker).problem; p < problem_time_.size())
    problem_time_[p] += until - e.granted_at;
}

void lab_world::end_work(uint32_t gpu, time now, world_port& port) {
  auto& e = gpus_[gpu];
  count_work(e, now, e.outcome != lease_outcome::fine);
  e.what = executor_doing::cleaning;
  e.since = now;
  books_.step(lab_step::release, now, gpu, e.token, static_cast<uint32_t>(e.outcome));
  port.release(gpu, e.token, reason_of(e.outcome), e.outcome);
  const auto rest = exact_ ? asker_of(e.asker).clean_up
                           : verify_ + (e.outcome == lease_outcome::hang ? hang_cleanup_ : time{0});
  if (rest == time{0})
    prove_free(gpu, now, port);
  else
    port.set_timer(entity_of(gpu), due(now, rest, entity_of(gpu)));
}

void lab_world::prove_free(uint32_t gpu, time now, world_port& port) {
  auto& e = gpus_[gpu];
  if (now > e.since)
    books_.gpu_was(gpu_time::verify, e.since, now);
  e.what = executor_doing::idle;
  e.since = now;
  e.done = e.token;
  books_.step(lab_step::verified, now, gpu, e.token, 0);
  books_.gpu_given_back(now);
  port.verified(gpu, e.token);
  auto& a = asker_of(e.asker);
  const auto held = now - e.granted_at;
  count_for_problem(e, now);
  if (e.revoked)
    return;
  books_.ended(now, e.granted_at, e.outcome);
  stop_holding(a, now);
  double gain = 0;
  if (planner_) {
    if (e.outcome == lease_outcome::fine) {
      gain = problems_.attempt(a.problem);
      if (gain != 0) {
        const auto& problem = problems_.truth()[a.problem];
        planner_->on_headroom(a.problem, plain_log(problem.headroom) - problem.log_speedup());
      }
    }
    planner_->on_finished(a.problem, {static_cast<uint64_t>(held.count()), std::max(gain, 0.0)});
    if (options_.on_attempt)
      options_.on_attempt(a.problem, a.agent, gain, now);
  }
  if (a.left > 0) {
    if (--a.left == 0)
      end_job(a, now, true);
    else
      ask_again(a, now, port);
    return;
  }
  go_on(a, now, port);
}

void lab_world::on_revoke(const lease_revoke& what, time now, world_port& port) {
  auto& e = gpus_[what.gpu];
  switch (e.what) { // no default: the compiler reports a missing case
  case executor_doing::down:
  case executor_doing::cleaning:
    // Nobody is there, or `verified` is on its way.
    return;
  case executor_doing::idle:
    // Nothing of it runs (any more); say so, unless it has been said.
    if (what.token > e.done) {
      e.done = what.token;
      books_.step(lab_step::verified, now, what.gpu, what.token, 0);
      port.verified(what.gpu, what.token);
    }
    return;
  case executor_doing::working:
    break;
  }
  if (e.token > what.token)
    return;
  count_work(e, now, true);
  e.what = executor_doing::cleaning;
  e.since = now;
  e.revoked = true;
  // A moment at least, so that what ends and what comes next are apart.
  port.set_timer(entity_of(what.gpu), due(now, verify_, entity_of(what.gpu)));
}

void lab_world::on_probe(const probe_order& what, time now, world_port& port) {
  if (gpus_[what.gpu].what == executor_doing::down)
    return;
  books_.step(lab_step::probed, now, what.gpu, 0, 0);
  port.probed(what.gpu, {});
}

void lab_world::gpu_comes(uint32_t gpu, time now, world_port& port) {
  auto& e = gpus_[gpu];
  if (e.what != executor_doing::down)
    return;
  if (now > e.since)
    books_.gpu_was(gpu_time::down, e.since, now);
  e.what = executor_doing::idle;
  e.since = now;
  e.done = 0;
  ++e.starts;
  books_.step(lab_step::up, now, gpu, e.starts, 0);
  port.up(gpu, fmt::format("boot-{}-{}", gpu, e.starts));
}

void lab_world::gpu_goes(uint32_t gpu, time now, world_port& port) {
  auto& e = gpus_[gpu];
  const auto was = e.what;
  if (was == executor_doing::down)
    return;
  books_.step(lab_step::down, now, gpu, e.token, 0);
  port.set_timer(entity_of(gpu), time::max());
  if (was == executor_doing::idle)
    books_.gpu_was(gpu_time::free, e.since, now);
  else if (was == executor_doing::working)
    count_work(e, now, true);
  else
    books_.gpu_was(gpu_time::verify, e.since, now);
  e.what = executor_doing::down;
  e.since = now;
  port.down(gpu, "off the bus");
  if (was == executor_doing::idle)
    return;
  books_.gpu_given_back(now);
  auto& a = asker_of(e.asker);
  count_for_problem(e, now);
  // What was measured counts only when the GPU is proven free; the broker sees no lease any more
  // that it could tell the agent about, but the executor's answer is missing.
  if (was == executor_doing::cleaning && !e.revoked) {
    books_.step(lab_step::lost, now, gpu, e.token, a.agent);
    stop_holding(a, now);
    books_.lost(now);
    attempt_failed(a, static_cast<uint64_t>((now - e.granted_at).count()), now, port);
  }
}

} // namespace gristmill
