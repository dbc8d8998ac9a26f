#pragma once

#include "messages/blob.hpp"
#include "messages/candidate.hpp"
#include "messages/wire.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace gristmill {

/// How an evaluation ended. The upper-case names of SOL-ExecBench (specification section 4), and
/// two of ours: what was not checked is never PASSED, and what the house broke is nobody's verdict.
enum class verdict_status : uint8_t {
  passed = 0,
  incorrect_numerical,
  incorrect_shape,
  incorrect_dtype,
  invalid_reference,
  runtime_error,
  reward_hack,
  compile_error,
  timeout,
  /// A workload that no correctness run covered.
  not_checked,
  /// The measuring failed, not the candidate: retried, never scored.
  infrastructure,
};

/// The upper-case name that traces and tables use, such as "INCORRECT_NUMERICAL".
std::string to_string(verdict_status status);

/// Where a time comes from. Times of two origins never stand in one column.
enum class time_origin : uint8_t { none = 0, modelled, measured, not_a_measurement };

std::string to_string(time_origin origin);

/// One output of one correctness run against its reference (specification 5.5), counted by the
/// judge.
struct output_evaluation {
  std::string output;
  bool passed = false;
  bool has_nan = false;
  bool has_inf = false;
  uint64_t elements = 0;
  uint64_t mismatches = 0;
  f64 matched_ratio;
  f64 max_absolute_error;
  f64 max_relative_error;
  /// The output is all zero where the reference is not (rule 2 of 5.5).
  bool all_zero = false;
  /// 8 x 8 histogram of where the misses lie, row-major over the output seen as a matrix.
  std::vector<uint32_t> miss_tiles;
  /// How many elements lie so many units in the last place of the output's type from the reference:
  /// none, 1, 2 to 3, 4 to 7 and so on, the last bin holding all beyond. Empty for integers.
  std::vector<uint64_t> ulp_histogram;
  /// Root mean square of the error over that of the reference.
  f64 relative_rms_error;
};

/// The judge's small answer for one workload: counts, no tensors.
struct workload_evaluation {
  std::string uuid;
  verdict_status status = verdict_status::not_checked;
  /// True when a shrunken twin of the workload was run instead of the workload itself.
  bool shrunken = false;
  std::vector<output_evaluation> outputs;
  /// How many calls were compared: cases, and timed calls whose outputs were written out.
  uint32_t calls = 0;
  /// The call that `outputs` describes: the first that failed, else the one with the largest
  /// errors; in words, such as "held-out 1, timed 17".
  std::string call;
  /// One line for a person: why not passed, or with passed a warning that decides nothing.
  std::string detail;
};

/// What one `gristmill-judge` found for all workloads of a measurement.
struct evaluation {
  std::vector<workload_evaluation> workloads;
};

/// A suspicion or a proof that a candidate cheats or breaks a rule.
struct finding {
  /// Short stable name, such as "writes_input" or "below_floor".
  std::string rule;
  std::string workload;
  std::string detail;
  /// True when the finding alone refuses the candidate.
  bool fatal = false;
};

/// One workload of a verdict. Times in nanoseconds; 0 means "none".
struct workload_verdict {
  std::string uuid;
  verdict_status status = verdict_status::not_checked;
  uint64_t time_ns = 0;
  uint64_t baseline_ns = 0;
  uint64_t floor_ns = 0;
  f64 speedup;
  f64 sol_score;
  /// The time lies below the floor: counts 0 until somebody has audited it.
  bool needs_audit = false;
  std::string detail;
};

/// What the scorer decides about a candidate: evaluation, score and integrity findings together.
struct verdict {
  verdict_status status = verdict_status::not_checked;
  time_origin origin = time_origin::none;
  std::vector<workload_verdict> workloads;
  /// Geometric mean over all workloads of time_ns; 0 unless PASSED. What the search minimises.
  uint64_t objective_ns = 0;
  /// Geometric mean of the speed-ups; 0 unless PASSED.
  f64 speedup;
  /// Arithmetic mean of the SOL scores over the full denominator.
  f64 sol_score;
  /// Geometric mean of floor_ns / time_ns; 0 unless PASSED.
  f64 floor_share;
  std::vector<finding> findings;
  /// One line for a person: why not passed, or what limits it.
  std::string reason;
  /// Screened well on a real device: it becomes the incumbent only if a promotion says so.
  bool wants_promotion = false;
  /// The incumbent to compare with then; empty when there is none. Of the verdict on a promotion:
  /// what it was compared with.
  maybe<candidate_ref> incumbent;
  /// Passed, and its promotion found no gain over the incumbent that counts: it leads nowhere.
  bool incumbent_stays = false;
  /// Everything the verdict rests on, so that later rules can be tried on it (protocol/evidence);
  /// empty for none.
  blob_ref evidence;
  /// What proposers may know of it, in words and numbers (protocol/feedback.hpp); empty for none.
  blob_ref feedback;
};

} // namespace gristmill
