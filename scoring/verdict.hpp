#pragma once

#include "messages/attempt.hpp"
#include "messages/compile.hpp"
#include "messages/evidence.hpp"
#include "messages/measure.hpp"
#include "messages/verdict.hpp"
#include "scoring/integrity.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gristmill {

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

/// A verdict with what the rules of integrity said on the way.
struct decision {
  verdict decided;
  /// Measure the candidate once more before the verdict stands (`examined::retrial`).
  bool retrial = false;
  std::vector<rule_account> accounts;
};

/// The whole decision: `examine` and then `make_verdict` with the findings of the measurement, of
/// the compiled code and of the rules, each once. A workload that a suspicion names needs an audit,
/// as one below the floor does; a suspicion that names none is about all. With the rule
/// `wrong_output`, `wrong_when_timed`, `wrong_held_out` or `wrong_neighbour` off, what only that
/// rule would refuse passes; so for the others.
///
/// The fields `wants_promotion`, `incumbent`, `evidence` and `feedback` are left to the caller.
decision decide(const evidence& of, const rules_off& off = {});

/// Decides about a candidate that the compiler refused: COMPILE_ERROR, or REWARD_HACK with the
/// finding `unexpected_entry`. A compiled candidate that was not refused is INFRASTRUCTURE.
verdict refused_verdict(
  std::span<const workload_yardstick> workloads, const compiled_candidate& compiled);

} // namespace gristmill
