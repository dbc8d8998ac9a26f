#pragma once

#include "gpu/lease/policy.hpp"
#include "messages/event.hpp"
#include "messages/result.hpp"
#include "simulation/core/world.hpp"

#include <functional>
#include <memory>

namespace gristmill {

struct lab_options {
  world_options world;
  /// In place of the scenario's lease policy; not guarded, so that a test can put a wrong one in.
  std::function<std::unique_ptr<lease_policy>()> make_policy;
  /// Takes every event of the lease broker, in order, as production writes them. Without it they
  /// are not made, which is much faster.
  std::function<void(event&&)> journal;
  /// Asked now and then; true ends the run early with `shutting_down`.
  std::function<bool()> stop;
  /// Told the share of the simulated time that is done, now and then.
  std::function<void(double)> progress;
};

/// What `make_policy` makes, else the scenario's lease policy. Errors: `invalid_input`.
result<std::unique_ptr<lease_policy>> policy_of(const scenario& what, const lab_options& options);

/// Runs a scenario over the production lease table, policy and planner with a heap of events.
/// Deterministic: equal scenario, seed and program give equal results, `wall_s` (0 here) apart.
/// Errors: `invalid_input`, `refused` (an open queue grew beyond its limit), `shutting_down`.
result<lab_result> run_core(const scenario& what, lab_options options);

} // namespace gristmill
