#pragma once

#include "simulation/core/engine.hpp"
#include "simulation/selfcheck/check.hpp"
#include "simulation/selfcheck/queue_watch.hpp"

#include <string>

namespace gristmill {

/// A scenario of the checks: one group of `gpus` GPUs, nothing but leases, requests without
/// estimates, caps and patience that nobody reaches, `fifo`. Without agents and arrivals.
scenario bare_scenario(std::string name, uint32_t gpus, double duration_s, double warm_up_s);

/// `agents` who think and hold exponentially.
scenario closed_scenario(std::string name, uint32_t agents, uint32_t gpus, double think_s,
  double hold_s, double duration_s, double warm_up_s);

/// Jobs that come by chance such that each of the GPUs is busy for `load` of the time; `jobs` of
/// them after the warm-up, which is a share of `warm_up` more.
scenario open_scenario(std::string name, uint32_t gpus, double load, const time_law& hold,
  double jobs, double warm_up = 0.05);

/// Runs it in the core engine under its policy with the mutant. With a watch, that stands in front
/// of the policy, and its books are closed.
result<lab_result> run_scenario(const scenario& what, uint64_t seed, mutant_kind mutant,
  lab_options options = {}, queue_watch* watch = nullptr);

/// Adds a run's leases and digest to the outcome of a seed.
void count_run(seed_outcome& out, const lab_result& run);

time_law exponential_law(double mean_s);
time_law constant_law(double mean_s);

} // namespace gristmill
