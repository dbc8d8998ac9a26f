#pragma once

#include "messages/result.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gristmill {

/// One workload of a problem as a scorer is given it. All times in nanoseconds.
struct timed_workload {
  std::string uuid;
  /// Upper-case status of its trace; empty when there is none.
  std::string status;
  bool passed = false;
  /// T_k; read only when `passed`.
  double t_k = 0;
  double t_b = 0;
  double t_sol = 0;
  /// A person has looked at a time below the bound and found nothing wrong.
  bool audited = false;
};

/// One problem with ALL its workloads: those without a trace too.
struct timed_problem {
  std::string name;
  std::string category;
  std::vector<timed_workload> workloads;
};

/// The score of one workload (specification 7.1).
struct workload_score {
  timed_workload from;
  /// What counts: the formula; 0 unless passed; 0 below the bound until audited, then 1.
  double score = 0;
  /// The time lies below the bound and nobody has looked.
  bool needs_audit = false;
  /// T_b / T_k, or 1 where nothing better than the baseline is shown (not passed, needs an audit).
  double speedup = 1;
  /// T_b / T_SOL.
  double headroom = 0;
  /// What the score changes by when T_SOL, or T_b, grows by one per cent: dS/dT times T / 100. 0
  /// unless the formula applies.
  double per_cent_of_t_sol = 0;
  double per_cent_of_t_b = 0;
  /// The same for T_k: noise of one per cent in the measurement.
  double per_cent_of_t_k = 0;
  /// `headroom` is below `close_headroom`, so the score amplifies noise.
  bool is_close = false;
};

/// Below this T_b / T_SOL, one per cent of noise moves a score by half a point of a hundred or
/// more.
inline constexpr double close_headroom = 2;

/// A problem. Every number is over `total` workloads.
struct problem_score {
  std::string name;
  std::string category;
  uint32_t total = 0;
  uint32_t passed = 0;
  /// Passed, but below the bound: they count 0.
  uint32_t need_audit = 0;
  /// Workloads without a trace.
  uint32_t missing = 0;
  double score_mean = 0;
  double score_median = 0;
  /// Geometric mean of T_b / T_k; a workload without a passing time counts 1.
  double speedup_geomean = 1;
  /// Arithmetic mean of the same, as the public tables have it.
  double speedup_mean = 1;
  /// Workloads with T_k < T_b.
  uint32_t faster = 0;
  /// Geometric mean of T_k in nanoseconds; 0 unless every workload passed.
  double latency_geomean = 0;
  uint32_t close = 0;
  std::vector<workload_score> workloads;
};

/// A group of problems: all of them, or one category. Every number is over `problems`.
struct group_score {
  std::string name;
  uint32_t problems = 0;
  /// With all workloads passed.
  uint32_t passed = 0;
  uint32_t workloads = 0;
  uint32_t workloads_passed = 0;
  uint32_t need_audit = 0;
  /// Mean and median of the problems' `score_mean`.
  double score_mean = 0;
  double score_median = 0;
  /// Geometric mean of the problems' `speedup_geomean`.
  double speedup_geomean = 1;
  uint32_t faster = 0;
};

struct suite_score {
  std::vector<problem_score> problems;
  group_score all;
  /// In the order in which a category first appears.
  std::vector<group_score> categories;
};

/// Scores a suite over full denominators: nothing is averaged over what passed alone. Errors:
/// `invalid_input` for no problem, a problem without workloads, and a time that is not positive and
/// finite (of a workload that passed, or of the table), naming problem and workload.
result<suite_score> score_suite(std::vector<timed_problem> problems);

/// The score of one workload alone. Errors as above.
result<workload_score> score_workload(const timed_workload& given);

} // namespace gristmill
