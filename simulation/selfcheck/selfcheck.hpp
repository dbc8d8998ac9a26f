#pragma once

#include "simulation/selfcheck/verdict.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace gristmill {

inline constexpr uint32_t selfcheck_seeds = 20;

struct selfcheck_options {
  bool quick = false;
  /// Names of checks; all when empty.
  std::vector<std::string> only;
  /// Seeds 1 to this, 2 to 1000. The sample sizes are made for 20: with fewer a check is noisier.
  uint32_t seeds = selfcheck_seeds;
  /// Threads. The result does not depend on it.
  uint32_t jobs = 1;
  mutant_kind mutant = mutant_kind::none;
  /// Seconds that the calling thread has worked, to tell what each check costs; nothing is measured
  /// without.
  std::function<double()> clock;
  /// Told after each seed of each check, from any thread, one at a time.
  std::function<void(size_t done, size_t all)> progress;
  /// Asked before each; true ends it with `shutting_down`. From any thread.
  std::function<bool()> stop;
};

struct check_outcome {
  std::string name;
  std::string what;
  std::string source;
  std::vector<judged_line> lines;
  /// Why a seed has no result; then the check fails.
  std::string error;
  uint64_t leases = 0;
  /// Of one core, over all seeds.
  double cost_s = 0;

  bool passed() const;
};

struct selfcheck_outcome {
  /// SHA-256 of what is simulated: every scenario and sample size, and the seeds.
  std::string config_hash;
  /// SHA-256 of all results, leases included: equal for equal program and configuration.
  std::string digest;
  uint32_t seeds = 0;
  bool quick = false;
  mutant_kind mutant = mutant_kind::none;
  std::vector<check_outcome> checks;

  bool passed() const;
};

/// Runs the checks. Errors: `invalid_input` for an unknown name (with the nearest) or a number
/// of seeds out of range, `shutting_down`.
result<selfcheck_outcome> run_selfcheck(const selfcheck_options& options);

/// The same over checks of one's own.
result<selfcheck_outcome> run_checks(
  const std::vector<check>& checks, const selfcheck_options& options);

/// The table, and what failed at its end. Costs are not part of it, so equal results are equal
/// texts.
std::string to_text(const selfcheck_outcome& what, const std::string& version);

} // namespace gristmill
