#include "simulation/core/lab_world.hpp"

#include "simulation/model/scenario_check.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

using std::chrono::nanoseconds;

/// Of every drawn time: entity e acts at instants that are e modulo this, and nobody else does.
constexpr int64_t quantum = int64_t{1} << quantum_bits;

/// Longer than any run, and short enough to be added to any time of one.
constexpr nanoseconds for_ever = std::chrono::hours{24 * 366 * 40};

} // namespace

lab_world::lab_world(const scenario& what, world_options options, incident_plan incidents)
  : what_(what), options_(std::move(options)), incidents_(std::move(incidents)),
    books_(time_of(what.warm_up_s), time_of(what.duration_s), what.curve_points),
    problems_(what, options_.seed), end_(time_of(what.duration_s)),
    exact_(!options_.recorded.empty()), gpu_places_(gpu_places(what)) {
  books_.on_wait = options_.on_wait;
  call_ = time_sampler(what_.think.call);
  compile_ = time_sampler(what_.compile.time);
  compiles_on_lease_ = what_.compile.on_lease;
  launch_ = time_of(what_.hold.launch_s);
  verify_ = time_of(what_.hold.verify_s);
  hang_cleanup_ = time_of(what_.fate.hang_cleanup_s);
  for (const auto& place : gpu_places_)
    gpus_.emplace_back().speed = place.speed;
  if (exact_)
    make_recorded();
  else
    make_agents();
  if (!exact_ && what_.problems > 0) {
    books_.set_problems(&problems_);
    problem_time_.resize(what_.problems);
    for (uint32_t p = 0; p < what_.problems; ++p)
      problem_names_.push_back(fmt::format("p{:03}", p));
    planner_ = options_.planner(what_, problems_.truth());
    for (uint32_t p = 0; p < what_.problems; ++p) {
      planner_->on_eligible(p, true);
      if (what_.starts_solved)
        planner_->on_headroom(
          p, plain_log(problems_.truth()[p].headroom) - problems_.truth()[p].log_speedup());
    }
  }
}

void lab_world::make_agents() {
  const auto seed = options_.seed;
  for (const auto& group : what_.agents)
    for (uint32_t i = 0; i < group.count; ++i) {
      const auto index = static_cast<uint32_t>(askers_.size());
      auto& a = askers_.emplace_back();
      a.agent = index;
      a.think_factor = group.think_factor;
      a.think_draws = {seed, stream_of(stream_purpose::think, index)};
      a.compile_draws = {seed, stream_of(stream_purpose::compile, index)};
      a.hold_draws = {seed, stream_of(stream_purpose::hold, index)};
      a.fate_draws = {seed, stream_of(stream_purpose::fate, index)};
      double factor = group.hold_factor;
      if (const double sigma = what_.hold.agent_sigma; sigma > 0) {
        counter_stream draws(seed, stream_of(stream_purpose::agent_mean, index));
        factor *= draws.lognormal(-sigma * sigma / 2, sigma);
      }
      a.hold = time_sampler(what_.hold.time, factor);
      a.asked.what = group.what;
      a.asked.weight = group.weight;
      a.asked.need = group.need;
      a.asked.flow.agent = fmt::format("{}-{}", group.name, i);
    }
  agents_total_ = static_cast<uint32_t>(askers_.size());
  if (what_.arrivals.rate > 0) {
    ++agents_total_;
    arrivals_ = {seed, stream_of(stream_purpose::arrival, 0)};
  }
}

void lab_world::make_recorded() {
  for (const auto& who : options_.recorded) {
    auto& a = askers_.emplace_back();
    a.agent = static_cast<uint32_t>(askers_.size() - 1);
    a.asked.weight = who.weight;
    a.asked.flow.agent = who.name;
  }
  agents_total_ = static_cast<uint32_t>(askers_.size());
}

gpu_entry lab_world::gpu(uint32_t gpu) const {
  const auto& place = gpu_places_[gpu];
  return {.name = place.name, .model = place.model, .node = place.node};
}

lab_world::time lab_world::due(time now, time span, lab_entity entity) const {
  span = std::min(span, for_ever);
  if (exact_)
    return now + span;
  // The nearest instant of its own, and never this one: time goes on.
  const int64_t own = entity;
  const int64_t nearest =
    (((now + span).count() - own + quantum / 2) >> quantum_bits << quantum_bits) + own;
  return time{nearest > now.count() ? nearest : nearest + quantum};
}

void lab_world::start(world_port& port) {
  for (uint32_t gpu = 0; gpu < gpus_.size(); ++gpu)
    gpu_comes(gpu, time{0}, port);
  for (auto& a : askers_)
    go_on(a, time{0}, port);
  if (what_.arrivals.rate > 0 && !exact_)
    next_job(time{0}, port);
  if (!exact_)
    for (auto& edge : incidents_.gpus)
      edge.at = due(edge.at, time{0}, entity_of(edge.gpu));
  std::stable_sort(incidents_.gpus.begin(), incidents_.gpus.end(),
    [](const auto& a, const auto& b) { return a.at < b.at; });
  if (!incidents_.gpus.empty())
    port.set_timer(entity_count() - 1, incidents_.gpus.front().at);
}

void lab_world::on_timer(lab_entity entity, time now, world_port& port) {
  if (entity < askers_.size()) {
    auto& a = askers_[entity];
    switch (a.what) { // no default: the compiler reports a missing case
    case doing::thinking:
      if (exact_)
        ask_as_recorded(a, now, port);
      else
        think_is_over(a, now, port);
      break;
    case doing::compiling:
      compile_is_over(a, now, port);
      break;
    case doing::waiting: {
      // Somebody recorded gave up here.
      books_.step(lab_step::cancel, now, 0, a.asked.request, a.agent);
      port.cancel(a.agent, a.asked.request);
      stop_waiting(a, now);
      books_.gave_up(now);
      go_on(a, now, port);
      break;
    }
    case doing::nothing:
    case doing::lining_up:
    case doing::holding:
      break;
    }
    return;
  }
  if (entity < agents_total_) {
    job_comes(now, port);
    return;
  }
  const uint32_t gpu = entity - agents_total_;
  if (gpu >= gpus_.size()) {
    on_incidents(now, port);
    return;
  }
  if (gpus_[gpu].what == executor_doing::working)
    end_work(gpu, now, port);
  else if (gpus_[gpu].what == executor_doing::cleaning)
    prove_free(gpu, now, port);
}

void lab_world::on_incidents(time now, world_port& port) {
  for (; next_incident_ < incidents_.gpus.size(); ++next_incident_) {
    const auto& edge = incidents_.gpus[next_incident_];
    if (edge.at > now) {
      port.set_timer(entity_count() - 1, edge.at);
      return;
    }
    if (edge.up)
      gpu_comes(edge.gpu, now, port);
    else
      gpu_goes(edge.gpu, now, port);
  }
}

lab_result lab_world::finish(time now) {
  double longest = 0;
  const auto close_asker = [&](asker& a) {
    switch (a.what) { // no default: the compiler reports a missing case
    case doing::nothing:
      break;
    case doing::thinking:
    case doing::lining_up:
    case doing::compiling:
      books_.thought(a.since, now);
      break;
    case doing::waiting:
      longest = std::max(longest, seconds_of(now - a.since));
      stop_waiting(a, now);
      break;
    case doing::holding:
      stop_holding(a, now);
      break;
    }
    a.what = doing::nothing;
  };
  for (auto& a : askers_)
    close_asker(a);
  for (auto& a : jobs_)
    close_asker(a);
  for (auto& e : gpus_)
    switch (e.what) { // no default: the compiler reports a missing case
    case executor_doing::down:
      books_.gpu_was(gpu_time::down, e.since, now);
      break;
    case executor_doing::idle:
      books_.gpu_was(gpu_time::free, e.since, now);
      break;
    case executor_doing::working:
      count_work(e, now, e.outcome != lease_outcome::fine);
      count_for_problem(e, now);
      break;
    case executor_doing::cleaning:
      books_.gpu_was(gpu_time::verify, e.since, now);
      count_for_problem(e, now);
      break;
    }
  auto out = books_.close(now);
  out.gpus = gpu_count();
  out.agents = static_cast<uint32_t>(askers_.size());
  out.waiting_at_end_s = longest;
  std::vector<double> held;
  std::vector<double> weighted;
  std::vector<double> counts;
  for (const auto& a : askers_) {
    out.shares.push_back({a.asked.flow.agent, a.asked.weight, a.leases, seconds_of(a.held)});
    held.push_back(out.shares.back().held_s);
    weighted.push_back(out.shares.back().held_s / a.asked.weight);
    counts.push_back(static_cast<double>(a.leases));
    out.starved += a.starved ? 1 : 0;
  }
  out.jain_seconds = jain_index(held);
  out.jain_weighted = jain_index(weighted);
  out.jain_counts = jain_index(counts);
  for (auto t : problem_time_)
    out.problem_s.push_back(seconds_of(t));
  return out;
}

} // namespace gristmill
