#pragma once

#include "messages/event.hpp"
#include "messages/result.hpp"
#include "protocol/bounds.hpp"
#include "protocol/problem.hpp"
#include "protocol/trace.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gristmill {

/// One workload of a verdict, as the log has it. Times in nanoseconds; 0 means "none".
struct logged_workload {
  std::string uuid;
  std::string status;
  uint64_t time_ns = 0;
  uint64_t baseline_ns = 0;
  uint64_t floor_ns = 0;
  double speedup = 0;
  double sol_score = 0;
  bool needs_audit = false;
  /// Its correctness was checked on a smaller twin.
  bool shrunken = false;
  std::string detail;
  /// Nothing in logs of programs that did not write them.
  std::optional<double> max_absolute_error;
  std::optional<double> max_relative_error;
};

/// The best candidate of a problem that passed all workloads. `hash` is empty when none did.
struct winner {
  /// As the run calls it.
  std::string problem;
  /// The `name` of its definition, which traces and tables use. The log does not have it: until
  /// whoever has the problem fills it in, it is `problem`.
  std::string definition_name;
  std::string hash;
  /// "baseline", "search" or "planted".
  std::string kind;
  std::string key;
  std::string source_sha256;
  std::string plan_sha256;
  std::string device;
  /// "MODELLED" or "measured".
  std::string origin;
  /// Unix time of the verdict in nanoseconds.
  int64_t wall = 0;
  std::vector<logged_workload> workloads;
};

/// What a run has to give away.
struct run_winners {
  std::string gpus;
  std::string toolchain;
  std::string version;
  std::string time_note;
  /// What the run says of its T_SOL and T_b; empty in logs of programs that did not write it.
  std::string t_sol_method;
  std::string t_b_method;
  /// What launch plans were told about the device, by name; empty in logs of programs that did not
  /// write it.
  std::map<std::string, uint64_t> facts;
  bool ended = false;
  /// One for each problem of the run, in the order of their names.
  std::vector<winner> problems;
};

/// From the log alone. As the run's table, it takes the fastest candidate that passed, and the
/// baseline where nothing was faster. Errors: `invalid_input` for a log without its first line or
/// with data that is not what the kind promises.
result<run_winners> read_winners(std::span<const event> events);

/// A trace for each workload, in the order of the problem. Times that a model made say so three
/// times: the hardware is the mock device's name, `correctness.extra.origin` is "MODELLED", and the
/// log names the model. What nobody measured (the reference's time) is 0. `invalid_input` when the
/// problem's workloads are not those of the log.
result<std::vector<trace>> traces_of(const run_winners& run, const winner& best,
  const problem& target, const std::string& solution_name);

/// The times that the run was scored with, as a table for `gristmill score`. `date` is that of the
/// run's verdicts.
bounds_table bounds_of(const run_winners& run, const std::string& run_name);

/// A row for each workload of each problem. Where no candidate passed, the log names no workloads:
/// whoever has the problem adds them, so that the tables keep their denominators.
std::string combined_metrics(const run_winners& run);
/// A row for each problem, solved or not.
result<std::string> problem_metrics(const run_winners& run);

/// Unix nanoseconds as "2026-11-30T22:01:02.123456", UTC.
std::string iso_time(int64_t wall);

} // namespace gristmill
