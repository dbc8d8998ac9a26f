#pragma once

#include "messages/attempt.hpp"
#include "messages/compile.hpp"
#include "messages/measure.hpp"
#include "messages/verdict.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gristmill {

/// What a candidate's time on one workload is held against.
struct workload_yardstick {
  std::string uuid;
  /// T_b; 0 = none known (yet).
  uint64_t baseline_ns = 0;
  /// Where T_b comes from. A time of another origin is not compared with it.
  time_origin baseline_origin = time_origin::none;
  /// T_SOL; 0 = none known.
  uint64_t floor_ns = 0;
};

/// Decides about a candidate that was compiled and measured.
///
/// `workloads` is the problem's whole list and the denominator of every mean. A workload is PASSED
/// only if it was measured, checked and found right in a run of its own; one without a correctness
/// run is NOT_CHECKED, one missing from the measurement or without a time INFRASTRUCTURE. The
/// status of the whole is that of the first workload that is not PASSED, in the order of
/// `workloads`.
///
/// A baseline attempt is its own T_b: speed-up 1, score 0.5. Without T_b a workload has speed-up 0
/// (none); without T_b or T_SOL its score is 0. The speed-up of the whole is 0 unless every
/// workload has one. A time below the floor is a finding (`below_floor`, not fatal): the workload
/// stays PASSED but needs an audit; until then its score is 0, and objective, speed-up and floor
/// share of the whole are 0, so that the search cannot follow it.
///
/// `extra` holds what others found (inputs that were written to, for one). A fatal finding turns
/// its workload, or with no workload named the whole, into REWARD_HACK.
verdict make_verdict(attempt_kind kind, std::span<const workload_yardstick> workloads,
  const measurement& measured, const evaluation& judged, std::vector<finding> extra = {});

/// Decides about a candidate that the compiler refused: COMPILE_ERROR, or REWARD_HACK with the
/// finding `unexpected_entry`. A compiled candidate that was not refused is INFRASTRUCTURE.
verdict refused_verdict(
  std::span<const workload_yardstick> workloads, const compiled_candidate& compiled);

} // namespace gristmill
