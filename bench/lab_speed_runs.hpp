#pragma once

#include "simulation/model/scenario.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gristmill::bench {

/// The closed queue that every engine runs: agents think, wait for a GPU, hold it, think again;
/// both times are exponential, and the oldest request goes first.
struct closed_model {
  uint32_t agents = 300;
  uint32_t gpus = 27;
  double think_s = 300;
  double hold_s = 30;
  double duration_s = 21 * 86'400.0;
  uint64_t seed = 1;
  std::string policy = "fifo";
};

/// The same as a scenario of ours.
scenario scenario_of(const closed_model& model);

/// What a run came to.
struct engine_run {
  /// Of the simulation alone, by the engine's own clock.
  double wall_s = 0;
  uint64_t leases = 0;
  double mean_wait_s = 0;
  double throughput = 0;
  /// Of the whole process.
  double processor_s = 0;
  double peak_mb = 0;
};

/// Runs it in this process; "core" or "actors". Prints the reason and ends with exit code 1 when
/// that fails.
engine_run run_here(const std::string& engine, const closed_model& model);

/// Runs it in a process of its own (this very program with the word "one"), so that the peak of
/// memory is its own. Nothing, with a line on standard error, when that fails.
std::optional<engine_run> run_apart(const std::string& engine, const closed_model& model);

/// A program that takes AGENTS GPUS THINK_S HOLD_S DURATION_S SEED and prints WALL_S LEASES
/// MEAN_WAIT_S THROUGHPUT: the rivals. `status` is its exit status, -1 when it did not start.
std::optional<engine_run> run_rival(
  const std::vector<std::string>& program, const closed_model& model, int& status);

/// The folder of this program.
std::string own_folder();

} // namespace gristmill::bench
