#pragma once

#include "messages/attempt.hpp"
#include "protocol/definition.hpp"
#include "protocol/op_graph.hpp"
#include "protocol/problem.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gristmill {

/// A candidate as text, before it has a hash.
struct generated_candidate {
  std::string source;
  std::string plan;
  /// Point of the search space, such as "row/t256/v4/reg/online".
  std::string key;
  /// Key of the point it was derived from; empty for none.
  std::string parent;
  std::string hypothesis;
};

enum class search_outcome : uint8_t { candidate = 0, exhausted, no_candidate };

struct search_result {
  search_outcome outcome = search_outcome::no_candidate;
  /// Meaningful for `candidate`.
  generated_candidate candidate;
  /// Why there is none, or why the search ends.
  std::string reason;
};

/// When the search gives up.
struct search_limits {
  /// Seeded random points after the first, good one.
  uint32_t random_starts = 3;
  /// Finished trials without a gain of 1 % after which it stops.
  uint32_t plateau = 10;
  /// Share of the floor at which nothing is left to win.
  double floor_share = 0.95;
};

/// The next template candidate of a problem, from what is known about the earlier ones.
///
/// Pure and stateless: equal arguments give equal results, and everything it remembers is `history`
/// (finished trials, oldest first) and `in_flight` (keys that others are trying). First a good
/// default, then a few random points from `seed`, then neighbours of the best; never a key twice.
/// Points that no workload of the problem can use, or that do not fit an SM, are never proposed.
/// `no_candidate` with a reason when the graph fits no template family.
search_result propose(const problem& target, const op_graph& graph,
  const std::vector<trial>& history, const std::vector<std::string>& in_flight, uint64_t seed,
  const search_limits& limits = {});

} // namespace gristmill
