#pragma once

#include "messages/event.hpp"
#include "messages/result.hpp"
#include "simulation/replay/lease_trace.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gristmill {

/// What the leases of a recording or of its replay came to. Waits are of those that got a GPU.
struct replay_metrics {
  uint64_t requests = 0;
  uint64_t grants = 0;
  uint64_t given_up = 0;
  uint64_t lost = 0;
  double wait_mean_s = 0;
  double wait_p50_s = 0;
  double wait_p90_s = 0;
  double wait_p99_s = 0;
  double wait_max_s = 0;
  /// From the first lease event until nothing ran any more.
  double makespan_s = 0;
  /// Held GPU time, clean-up included, over GPUs times makespan.
  double utilisation = 0;
  /// Of the GPU seconds of the agents.
  double jain = 1;
};

replay_metrics metrics_of(const lease_trace& trace);

/// One grant, for a person.
struct replay_grant {
  /// Of the grant in the file; 0 for one of a replay.
  uint64_t line = 0;
  std::chrono::nanoseconds at{0};
  std::chrono::nanoseconds asked{0};
  std::string agent;
  std::string problem;
  std::string attempt;
  std::string gpu;
};

/// The first grant that is not the recorded one: another request, or another GPU. One of the two is
/// missing where one order ends earlier.
struct replay_divergence {
  /// From 1.
  uint64_t position = 0;
  std::optional<replay_grant> recorded;
  std::optional<replay_grant> replayed;
};

struct policy_replay {
  std::string policy;
  /// The recording was made under it.
  bool own = false;
  replay_metrics metrics;
  std::optional<replay_divergence> divergence;
  /// Up to the divergence: how many grants agree, and by how much their times differ at most.
  uint64_t agreed = 0;
  std::chrono::nanoseconds shift_max{0};
  /// Of the replay's transitions (lab_result.hpp).
  std::string digest;
};

struct replay_report {
  std::string source;
  std::string policy;
  uint64_t lines = 0;
  uint64_t agents = 0;
  uint64_t gpus = 0;
  std::chrono::nanoseconds span{0};
  /// Nothing was granted in the file: there is no recording to compare with.
  bool intended = false;
  replay_metrics recorded;
  std::vector<std::string> notes;
  std::vector<std::string> assumptions;
  std::vector<policy_replay> policies;
};

struct replay_options {
  /// Besides the one of the file, which comes first where it is known.
  std::vector<std::string> policies;
  /// Takes the events of the replay under the first policy, numbered, with the attempts of the
  /// recording.
  std::function<void(event&&)> journal;
};

/// Plays the trace in the event heap of the simulator (`run_core`), once for each policy. Errors:
/// `invalid_input` for a policy that there is not, and when there is none at all; those of
/// `plan_replay` and `run_core`.
result<replay_report> replay_trace(const lease_trace& trace, const replay_options& options);

std::string to_text(const replay_report& report);
/// Schema `gristmill.replay/1`.
std::string to_json(const replay_report& report);

} // namespace gristmill
