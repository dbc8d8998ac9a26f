#pragma once

#include "kernels/lowering/symbolic_size.hpp"
#include "protocol/op_graph.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace gristmill {

/// A dimension as both traces saw it; equal numbers when there was one trace.
struct traced_size {
  int64_t first = 0;
  int64_t again = 0;

  friend bool operator==(const traced_size&, const traced_size&) = default;
};

/// A value whose sizes are known.
struct sized_value {
  std::vector<symbolic_size> sizes;
  std::vector<traced_size> traced;
};

/// What the rules of the operators look at.
struct size_question {
  const graph_node& node;
  /// Which output of the node, and what the traces saw of it.
  size_t output = 0;
  std::vector<traced_size> traced;
  /// The sizes of a tensor; null when the id is unknown.
  std::function<const sized_value*(int64_t id)> value;
  /// A formula for a traced size without an operator behind it; nothing when none fits.
  std::function<std::optional<symbolic_size>(traced_size)> guess;
};

/// The sizes of an output of an operator that changes sizes. One element for each dimension;
/// nothing where the operator has no rule or the rule does not apply. What comes back is a claim:
/// the caller compares it with the traces.
std::vector<std::optional<symbolic_size>> sizes_by_rule(const size_question& question);

} // namespace gristmill
