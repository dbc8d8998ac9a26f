#pragma once

#include "messages/result.hpp"
#include "simulation/core/world.hpp"
#include "simulation/model/scenario.hpp"
#include "simulation/replay/lease_trace.hpp"

#include <string>
#include <vector>

namespace gristmill {

/// A trace as the simulator runs it. The attempt of each recorded lease is the number of its
/// request in the trace, so that what the simulator grants can be told apart whatever the names.
struct replay_plan {
  /// Without a lease policy of its own.
  scenario what;
  /// One for each agent, or more where an agent's requests overlapped: all under its name.
  std::vector<recorded_agent> agents;
  /// What could not be kept, as whole sentences.
  std::vector<std::string> notes;
};

/// Agents keep their gaps and holds (closed loop); intended requests come at their time (open).
/// GPUs keep their order, models and outages. Errors: `refused` for more agents and GPUs than the
/// simulator has room for.
result<replay_plan> plan_replay(const lease_trace& trace);

} // namespace gristmill
