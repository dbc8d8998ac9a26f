#pragma once

#include "simulation/report/lab_plan.hpp"
#include "simulation/report/lab_row.hpp"

#include <atomic>
#include <functional>
#include <set>
#include <utility>

namespace gristmill {

/// Runs one scenario; `run_lab`, or a test's stand-in. Called from several threads at once.
using lab_run =
  std::function<result<lab_result>(const scenario& what, lab_engine engine, lab_options options)>;

struct runner_options {
  lab_run run;
  /// Threads; at least 1.
  unsigned jobs = 1;
  /// Told each finished run, one at a time, from any of the threads. A failure ends the others.
  std::function<result<void>(lab_row&&)> on_row;
  /// Set to end all runs early.
  const std::atomic<bool>* stop = nullptr;
  /// How many runs are done, with the parts of those that go on.
  std::atomic<double>* done = nullptr;
};

/// (variant, seed)
using run_set = std::set<std::pair<size_t, uint64_t>>;

/// Runs every variant with every seed, but for those in `have`. What comes out does not depend on
/// the number of threads, only the order of `on_row` does. Errors: the first failure of a run, with
/// its variant and seed; `shutting_down` when stopped.
result<void> run_plan(const lab_plan& plan, const run_set& have, const runner_options& options);

/// Begins every variant and stops at once, so that a mistake in the last one is found before the
/// first one has run for hours. Errors: the first failure of a variant, with its name.
result<void> check_plan(const lab_plan& plan, const lab_run& run);

/// The events of one run as the lease broker writes them, in order. `on_event` answers false to end
/// it early. Errors: as `run_lab`; `shutting_down` when `stop` ended it.
result<lab_result> run_with_events(const lab_variant& variant, uint64_t seed, lab_engine engine,
  const lab_run& run, const std::function<bool(event&&)>& on_event,
  const std::atomic<bool>* stop = nullptr);

} // namespace gristmill
