#pragma once

#include "actors/baseline_times.hpp"
#include "actors/llm_history.hpp"
#include "messages/event.hpp"
#include "messages/result.hpp"
#include "planning/portfolio.hpp"
#include "scoring/incumbents.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace gristmill {

/// What the log says that the run was asked to do.
struct run_beginning {
  uint64_t seed = 0;
  /// With the candidates that were given by file.
  std::vector<portfolio_problem> problems;
  /// SHA-256 of each problem's definition and workloads; "" for a built-in one of this program.
  std::map<std::string, std::string> problem_hashes;
  std::string baseline_note;
  std::string time_note;
  std::string toolchain;
  /// Of the newest start: a resumed run may have got a larger one.
  std::vector<std::string> budget;
  /// SHA-256 of the protocol file; empty where nobody was told one.
  std::string program;
  /// The log's last event says that a run has ended by itself.
  bool ended_clean = false;
};

/// Errors: `invalid_input` for a log without a beginning or with one that is broken; `unsupported`
/// for a log whose writer did not keep what is needed to go on.
result<run_beginning> read_beginning(std::span<const event> events);

/// A run as its log leaves it: whatever was under way has been cut off.
struct restored_run {
  portfolio mind;
  baseline_times baselines;
  incumbents best;
  /// By name of the GPU: highest token that was ever reserved.
  std::map<std::string, uint64_t> token_floors;
  /// Time of the run that is used up: that of the last event.
  std::chrono::nanoseconds used{0};
  /// What the log lacks, in order: the end of the leases and attempts that were under way, the
  /// summary of each verdict that the planner had not counted yet, problems that are finished by
  /// that. To be appended, all or none, before anything else.
  std::vector<event> closing;
  /// Money and tokens that models have cost so far. Its own closing is part of the above.
  restored_spending models;
  /// By problem: what workers had written down last.
  std::map<std::string, std::vector<std::string>> insights;
};

/// Replays the events of a run. A pure function: a log with its own `closing` appended gives the
/// same run and nothing to close. The budgets of `config` hold from the end of the replay on: a run
/// that ended because of one goes on when it is larger now. Errors: `invalid_input` for an event
/// that is broken or that cannot have happened here, with its number.
result<restored_run> restore_run(const portfolio_config& config,
  const std::vector<portfolio_problem>& problems, std::span<const event> events);

} // namespace gristmill
