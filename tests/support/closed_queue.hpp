#pragma once

#include "gpu/lease/policy.hpp"
#include "simulation/model/counter_stream.hpp"

#include <chrono>
#include <cstdint>
#include <vector>

namespace gristmill::test {

/// Agents that think, wait for a GPU, hold it, and think again: the load of a run, as a model. An
/// agent's mean hold is lognormal between agents; thinking and holding are exponential around
/// their means. All draws are functions of (seed, agent, number of the draw), so two policies see
/// the same agents do the same things.
struct closed_queue {
  uint32_t agents = 300;
  uint32_t gpus = 27;
  std::chrono::nanoseconds think = std::chrono::seconds{85};
  /// Mean over agents.
  std::chrono::nanoseconds hold = std::chrono::seconds{24};
  /// Of the logarithm of an agent's mean hold.
  double sigma = 1;
  /// Else every hold of an agent is its mean.
  bool exponential_hold = true;
  /// What a request says of its hold: the agent's mean, else the hold itself.
  bool estimate_is_mean = true;
  /// Not measured, so that the start is forgotten.
  std::chrono::nanoseconds warm_up = std::chrono::hours{6};
  std::chrono::nanoseconds measured = std::chrono::hours{66};
  uint64_t seed = 1;
};

struct closed_queue_result {
  double leases_per_s = 0;
  /// Jain's index of fairness, of GPU seconds between agents.
  double jain = 0;
  /// Agents that were granted nothing in the measured time.
  uint32_t starved = 0;
  /// Leased share of the GPU time.
  double utilisation = 0;
  double mean_wait_s = 0;
  /// Of waits that ended, and of those that had not at the end.
  double longest_wait_s = 0;
  /// By agent.
  std::vector<double> held_s;
};

/// Drives a policy that was just made with a heap of events in whole nanoseconds.
closed_queue_result simulate(const closed_queue& model, lease_policy& policy);

using gristmill::counter_unit;
using gristmill::counter_word;

} // namespace gristmill::test
