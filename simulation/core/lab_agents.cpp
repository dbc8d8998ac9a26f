#include "simulation/core/lab_world.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

using std::chrono::nanoseconds;

/// A request of a job: how often its place has asked, and the place.
constexpr int place_bits = 24;
constexpr uint64_t place_mask = (uint64_t{1} << place_bits) - 1;

constexpr nanoseconds starved_after = std::chrono::hours{1};

} // namespace

uint32_t lab_world::addressee(uint32_t agent, uint64_t request) const {
  if (agent < askers_.size())
    return agent;
  return static_cast<uint32_t>(askers_.size() + (request & place_mask));
}

// --- between two leases ----------------------------------------------------------------------

void lab_world::go_on(asker& a, time now, world_port& port) {
  if (exact_)
    follow_record(a, now, port);
  else
    think(a, now, port);
}

void lab_world::think(asker& a, time now, world_port& port) {
  a.what = doing::thinking;
  a.since = now;
  uint64_t calls = 1;
  if (what_.think.calls_mean > 1)
    calls += a.think_draws.geometric(what_.think.calls_mean - 1);
  double seconds = 0;
  if (!call_.is_zero())
    for (uint64_t i = 0; i < calls; ++i) {
      const double call = call_.draw(a.think_draws);
      const bool slow =
        what_.think.tail_chance > 0 && a.think_draws.chance(what_.think.tail_chance);
      seconds += slow ? call * what_.think.tail_factor : call;
    }
  const auto work = time_of(seconds * a.think_factor);
  port.set_timer(
    a.agent, due(now, incidents_.end_of_call(now, std::min(work, 2 * end_)) - now, a.agent));
}

void lab_world::think_is_over(asker& a, time now, world_port& port) {
  if (planner_) {
    const auto pick = planner_->pick(now);
    // All problems can always use an attempt, so there is one.
    a.problem = pick ? pick->problem : 0;
    planner_->on_given(a.problem);
    a.asked.flow.problem = problem_names_[a.problem];
  }
  draw_work(a);
  if (a.compile == time{0} || compiles_on_lease_) {
    ask(a, now, port);
    return;
  }
  if (what_.compile.slots > 0 && compiling_ >= what_.compile.slots) {
    a.what = doing::lining_up;
    compiler_line_.push_back(a.agent);
    return;
  }
  ++compiling_;
  start_compiler(a, now, port);
}

void lab_world::start_compiler(asker& a, time now, world_port& port) {
  a.what = doing::compiling;
  port.set_timer(a.agent, due(now, a.compile, a.agent));
}

void lab_world::compile_is_over(asker& a, time now, world_port& port) {
  if (compiler_line_.empty()) {
    --compiling_;
  } else {
    const auto next = compiler_line_.front();
    compiler_line_.pop_front();
    start_compiler(askers_[next], now, port);
  }
  ask(a, now, port);
}

void lab_world::draw_work(asker& a) {
  a.compile = compile_.is_zero() ? time{0} : time_of(compile_.draw(a.compile_draws));
  double seconds = a.hold.draw(a.hold_draws);
  a.outcome = lease_outcome::fine;
  const auto& fate = what_.fate;
  if (fate.hang + fate.fault > 0) {
    // Both are always drawn, so that a scenario with other chances meets the same luck.
    const double luck = a.fate_draws.unit();
    const double part = a.fate_draws.unit();
    if (luck <= fate.hang) {
      a.outcome = lease_outcome::hang;
    } else if (luck <= fate.hang + fate.fault) {
      a.outcome = lease_outcome::fault;
      seconds *= part;
    }
  }
  a.work = time_of(seconds);
  const auto cap = time_of(what_.caps_s[static_cast<size_t>(a.asked.what)]);
  const auto compile = [&](time t) { return compiles_on_lease_ ? t : time{0}; };
  auto estimate = time{0};
  switch (what_.estimate) { // no default: the compiler reports a missing case
  case hold_estimate::none:
    break;
  case hold_estimate::mean:
    estimate = launch_ + compile(time_of(compile_.mean())) + time_of(a.hold.mean()) + verify_;
    break;
  case hold_estimate::exact:
    estimate =
      a.outcome == lease_outcome::hang ? cap : launch_ + compile(a.compile) + a.work + verify_;
    break;
  }
  // Of nothing known the table makes a guess; what takes no time is not unknown.
  a.asked.estimated_hold =
    what_.estimate == hold_estimate::none ? time{0} : std::clamp(estimate, time{1}, cap);
}

void lab_world::ask(asker& a, time now, world_port& port) {
  books_.thought(a.since, now);
  ++a.asked.request;
  a.what = doing::waiting;
  a.since = now;
  books_.wait_begins(now);
  books_.step(lab_step::request, now, 0, a.asked.request, a.agent);
  port.request(a.agent, a.asked);
}

// --- what the broker says --------------------------------------------------------------------

void lab_world::stop_waiting(asker& a, time now) {
  books_.wait_ends(now, a.since);
  a.waited_in_vain += now - a.since;
  a.starved = a.starved || a.waited_in_vain >= starved_after;
}

void lab_world::stop_holding(asker& a, time now) {
  a.held += books_.hold_ends(now, a.since);
}

void lab_world::on_granted(uint32_t agent, const lease_granted& what, time now, world_port& port) {
  const auto index = addressee(agent, what.request);
  auto& a = asker_of(index);
  // A grant that has crossed with a cancellation: the broker takes it back.
  if (a.what != doing::waiting || a.asked.request != what.request)
    return;
  books_.step(lab_step::grant, now, what.granted.gpu, what.granted.token, agent);
  stop_waiting(a, now);
  a.waited_in_vain = time{0};
  books_.granted(now, a.since);
  a.what = doing::holding;
  a.since = now;
  if (books_.is_measured(now))
    ++a.leases;
  start_work(what.granted.gpu, a, index, what, now, port);
}

void lab_world::on_ended(uint32_t agent, const lease_ended& what, time now, world_port& port) {
  auto& a = asker_of(addressee(agent, what.request));
  if (a.asked.request != what.request)
    return;
  if (a.what == doing::waiting && what.token == 0) {
    books_.step(lab_step::wait_end, now, 0, what.request, agent);
    stop_waiting(a, now);
    books_.gave_up(now);
    attempt_failed(a, 0, now, port);
  } else if (a.what == doing::holding && what.token != 0) {
    books_.step(lab_step::lost, now, 0, what.token, agent);
    const auto held = static_cast<uint64_t>((now - a.since).count());
    stop_holding(a, now);
    books_.lost(now);
    attempt_failed(a, held, now, port);
  }
}

void lab_world::on_refused(uint32_t agent, uint64_t request, time now, world_port& port) {
  auto& a = asker_of(addressee(agent, request));
  if (a.what != doing::waiting || a.asked.request != request)
    return;
  books_.step(lab_step::refused, now, 0, request, agent);
  stop_waiting(a, now);
  books_.gave_up(now);
  attempt_failed(a, 0, now, port);
}

void lab_world::attempt_failed(asker& a, uint64_t gpu_ns, time now, world_port& port) {
  if (a.left > 0) {
    // A job whose lease was lost asks again; one that waited in vain goes away.
    if (gpu_ns > 0)
      ask_again(a, now, port);
    else
      end_job(a, now, false);
    return;
  }
  if (planner_)
    planner_->on_finished(a.problem, {gpu_ns, 0});
  go_on(a, now, port);
}

// --- those who were recorded -----------------------------------------------------------------

void lab_world::follow_record(asker& a, time now, world_port& port) {
  const auto& record = options_.recorded[a.agent].leases;
  if (a.next >= record.size()) {
    a.what = doing::nothing;
    return;
  }
  const auto& lease = record[a.next];
  a.what = doing::thinking;
  a.since = now;
  port.set_timer(a.agent, lease.absolute ? std::max(now, lease.gap) : due(now, lease.gap, a.agent));
}

void lab_world::ask_as_recorded(asker& a, time now, world_port& port) {
  const auto& lease = options_.recorded[a.agent].leases[a.next++];
  a.work = lease.hold;
  a.clean_up = lease.clean_up;
  a.outcome = lease.outcome;
  a.asked.what = lease.what;
  a.asked.flow.problem = lease.problem;
  a.asked.need = lease.need;
  a.asked.attempt = lease.attempt;
  a.asked.estimated_hold = lease.estimate;
  a.asked.term = lease.term;
  ask(a, now, port);
  if (lease.gave_up_after > time{0})
    port.set_timer(a.agent, due(now, lease.gave_up_after, a.agent));
}

// --- jobs from outside -----------------------------------------------------------------------

void lab_world::next_job(time now, world_port& port) {
  const auto entity = agents_total_ - 1;
  const auto gap = time_of(arrivals_.exponential() / what_.arrivals.rate);
  port.set_timer(entity, due(now, gap, entity));
}

void lab_world::job_comes(time now, world_port& port) {
  if (jobs_now_ >= what_.arrivals.jobs_max) {
    broken_ = fmt::format("arrivals.jobs_max: more than {} jobs were there at once after {:.0f} s; "
                          "the queue is not stable",
      what_.arrivals.jobs_max, seconds_of(now));
    return;
  }
  ++jobs_now_;
  uint32_t place = 0;
  if (free_jobs_.empty()) {
    place = static_cast<uint32_t>(jobs_.size());
    jobs_.emplace_back();
  } else {
    place = free_jobs_.back();
    free_jobs_.pop_back();
  }
  auto& a = jobs_[place];
  const auto serial = ++jobs_seen_;
  // Numbers of requests go on where the last job of this place has stopped.
  const auto request = a.asked.request == 0 ? place : a.asked.request;
  a = asker{};
  a.agent = agents_total_ - 1;
  a.hold = time_sampler(what_.hold.time);
  a.hold_draws = {options_.seed, stream_of(stream_purpose::job_hold, serial)};
  a.asked.what = what_.arrivals.what;
  a.asked.flow.agent = fmt::format("job-{}", serial);
  a.asked.request = request;
  counter_stream draws(options_.seed, stream_of(stream_purpose::job, serial));
  a.left = 1 + draws.geometric(what_.arrivals.leases_mean - 1);
  a.came = now;
  a.fate_draws = draws;
  a.compile_draws = {options_.seed, stream_of(stream_purpose::compile, serial | uint64_t{1} << 40)};
  ask_again(a, now, port);
  next_job(now, port);
}

void lab_world::ask_again(asker& a, time now, world_port& port) {
  a.since = now;
  draw_work(a);
  a.asked.request += place_mask; // `ask` adds one more: the same place asks once more.
  ask(a, now, port);
}

void lab_world::end_job(asker& a, time now, bool served) {
  if (served)
    books_.responded(now, a.came);
  a.what = doing::nothing;
  a.left = 0;
  --jobs_now_;
  free_jobs_.push_back(static_cast<uint32_t>(a.asked.request & place_mask));
}

} // namespace gristmill
