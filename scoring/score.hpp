#pragma once

#include "messages/result.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace gristmill {

/// The SOL score of one workload.
struct sol_value {
  /// What counts in every mean: the formula, or 0 while `needs_audit` holds.
  double value = 0;
  /// The time lies below the stated bound: a signal that the measurement, the bound or the kernel
  /// is not what it seems. The workload counts 0 until a person has looked.
  bool needs_audit = false;
};

/// The literal formula of the SOL-ExecBench score, as upstream computes it and with no check of
/// its own: `1 / (1 + (t_k - t_sol) / (t_b - t_sol))`; with `t_b <= t_sol` it is 1 if
/// `t_k <= t_sol`, else 0. Above 1, and even negative, below the bound. All times in one unit.
/// Errors: `invalid_input` at the pole `t_k = 2 t_sol - t_b` and for what is not finite.
result<double> sol_formula(double t_k, double t_b, double t_sol);

/// The score of a candidate: `sol_formula` for a time at or above the bound; below it, 0 and
/// `needs_audit`. `t_k` candidate, `t_b` scoring baseline, `t_sol` bound, all in one unit.
/// Errors: `invalid_input` for a time that is zero, negative or not finite (upstream does not
/// check; we refuse).
result<sol_value> sol_score(double t_k, double t_b, double t_sol);

/// Geometric mean. Errors: `invalid_input` for no values, and for one that is not positive and
/// finite.
result<double> geomean(std::span<const double> values);

/// Arithmetic mean. Errors as `geomean`, but any finite value is allowed.
result<double> mean(std::span<const double> values);

/// The middle value, or the mean of the two middle ones. Errors as `mean`.
result<double> median(std::vector<double> values);

/// What a suite summary needs of one problem. Every problem of the suite has one, solved or not.
struct problem_outcome {
  /// All workloads passed.
  bool passed = false;
  /// Arithmetic mean of the scores of ALL its workloads, failed ones as 0 (specification 7.2).
  double sol_score = 0;
  /// The problem has a baseline time, so a speed-up can be stated for it.
  bool has_baseline = false;
  /// Geometric mean over workloads of T_b / T_k. Read only when `passed` and `has_baseline`.
  double speedup = 0;
};

/// A suite in one row. Nothing is ever averaged over the passed problems alone: each number says
/// its denominator.
struct suite_summary {
  uint32_t problems = 0;
  uint32_t passed_count = 0;
  /// Over all `problems`; a failed one counts 0.
  double sol_mean = 0;
  double sol_median = 0;
  /// Denominator of `geomean_all`, `faster_count` and `twice_as_fast_count`.
  uint32_t with_baseline = 0;
  /// Geometric mean of the speed-ups of all problems that have a baseline. A FAILED PROBLEM COUNTS
  /// AS 1.0x: whoever has no passing kernel runs the baseline. 1.0 when `with_baseline` is 0.
  double geomean_all = 1;
  /// Passed, with a speed-up above 1 (above 2).
  uint32_t faster_count = 0;
  uint32_t twice_as_fast_count = 0;
};

/// Errors: `invalid_input` for a score or a used speed-up that is not finite, or a speed-up that is
/// not positive. An empty suite is a summary of zeros.
result<suite_summary> summarise(std::span<const problem_outcome> problems);

} // namespace gristmill
