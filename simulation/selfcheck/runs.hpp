#pragma once

#include "simulation/core/engine.hpp"
#include "simulation/selfcheck/check.hpp"
#include "simulation/selfcheck/queue_watch.hpp"

#include <functional>
#include <string>
#include <vector>

namespace gristmill {

/// A wait shorter than this is none: the engine's times are whole quanta of 2^14 ns.
inline constexpr double no_wait_s = 1e-4;

time_law exponential_law(double mean_s);
/// Constant for a CV^2 of 0, exponential for 1, two exponentials with balanced means above that.
time_law law_of(double mean_s, double cv2);

/// What one GPU is loaded with, and for how many jobs.
struct load_case {
  double load = 0;
  /// Of the holds.
  double cv2 = 1;
  double jobs = 0;
};

/// The line of a check that compares the mean wait: "mean wait, s: load 0.8, CV^2 4, 500000 jobs".
std::string wait_line(const load_case& what);

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

/// For `check::run`: one scenario after the other, and of each the number that `value` tells.
std::function<result<seed_outcome>(uint64_t seed, mutant_kind mutant)> run_each(
  std::vector<scenario> all, std::function<double(const lab_result&)> value);

} // namespace gristmill
