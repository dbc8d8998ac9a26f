#pragma once

#include "kernels/search/plan_check.hpp"
#include "kernels/search/search_space.hpp"
#include "kernels/search/workload_groups.hpp"
#include "messages/attempt.hpp"
#include "messages/result.hpp"
#include "protocol/op_graph.hpp"
#include "protocol/problem.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// A candidate as text, before it has a hash.
struct generated_candidate {
  std::string source;
  std::string plan;
  /// The point of the search space, such as "row/t256/v4/reg/online". A probe of it has "probe:"
  /// before it, a second measurement "confirm:"; a candidate with a configuration for each group of
  /// workloads is called "groups:…".
  std::string key;
  /// Key of the candidate it was derived from; empty for none.
  std::string parent;
  std::string hypothesis;
  attempt_effort effort = attempt_effort::full;
  /// For a probe: uuids of the workloads to measure. Empty for all.
  std::vector<std::string> workloads;
};

enum class search_outcome : uint8_t { candidate = 0, exhausted, no_candidate };

struct search_result {
  search_outcome outcome = search_outcome::no_candidate;
  /// Meaningful for `candidate`.
  generated_candidate candidate;
  /// Why there is none, or why the search ends.
  std::string reason;
};

/// How far the search goes, and when it gives up.
struct search_limits {
  /// Diverse starts, measured in full where probes make no sense, after the first, good point.
  uint32_t starts = 2;
  /// Diverse starts where probes make sense. The best third of them is measured in full.
  uint32_t probe_starts = 6;
  /// Finished full trials without a gain of 1 % after which it stops; a probe counts half.
  uint32_t plateau = 10;
  /// Share of the floor at which nothing is left to win.
  double floor_share = 0.95;
  /// What is this many times as slow as the best is left, and so is its neighbourhood.
  double drop = 1.3;
  /// A combination of points is worth a trial when it promises this share of the time, or less.
  double combination_gain = 0.99;
  /// Configurations of one candidate.
  uint32_t groups_max = 4;
};

/// How the next point is chosen.
enum class search_strategy : uint8_t {
  /// Starts, halving, moves from the best, groups, confirmation.
  guided = 0,
  /// Any feasible point, each with the same chance. For comparison.
  random,
  /// Every point in order. For comparison, and for spaces that are small enough.
  exhaustive,
};

/// "guided" is called "template" on the command line, as ever. `invalid_input` for another text.
result<search_strategy> search_strategy_from_text(std::string_view text);

/// What is known when a candidate is asked for. References: the owner keeps what they name.
struct search_question {
  /// Of the problem (`search_workloads`).
  const std::vector<search_workload>& workloads;
  /// Finished trials, oldest first. Those of keys that are not of this space are left alone.
  const trial_history& history;
  /// Keys that others are trying.
  const std::vector<std::string>& in_flight;
  uint64_t seed = 0;
  /// Keys of points that were best for problems of equal structure, best first.
  const std::vector<std::string>& relatives;
  /// Whether a generated plan can be used; an empty one allows all.
  const plan_check& check;
  search_limits limits = {};
};

/// The next candidate of a problem, from what is known about the earlier ones.
///
/// Pure and stateless: equal arguments give equal results, and everything it remembers is `history`
/// and `in_flight`. Never a key twice. A plan that `check` refuses is never proposed.
///
/// Guided: the first point of partition 0 in full; until something is correct, a ladder of other
/// kernels for the same stages down to one plain kernel for each operator; then the best points of
/// relatives and diverse starts as probes, of which the best third is measured in full; then moves
/// from the best, those first that earlier trials speak for; where groups of workloads like
/// different points, a candidate that has a configuration for each; before the end the best is
/// measured once more when others are within 3 %. docs/search.md tells the rules.
search_result propose(const search_space& space, const search_question& question,
  search_strategy strategy = search_strategy::guided);

/// The same for a problem, without relatives and without a check of plans. Reads the graph anew
/// each time; who asks often keeps a `program_space`. `no_candidate` with a reason when some
/// operator has no kernel.
search_result propose(const problem& target, const op_graph& graph, const trial_history& history,
  const std::vector<std::string>& in_flight, uint64_t seed, const search_limits& limits = {},
  search_strategy strategy = search_strategy::guided);

} // namespace gristmill
