#pragma once

#include "kernels/lowering/symbolic_size.hpp"
#include "messages/result.hpp"
#include "protocol/op_graph.hpp"
#include "protocol/problem.hpp"

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace gristmill {

/// The sizes of all values of a graph as formulas over the axes.
struct symbolic_shapes {
  std::unordered_map<int64_t, std::vector<symbolic_size>> of;
  /// Launch-plan conditions that hold for both traces and for every workload of the problem, and
  /// that some formula relies on: two sizes that are called the same though arithmetic alone does
  /// not make them so, such as "2 * axis.half == axis.full".
  std::vector<std::string> conditions;
};

/// Tells the size of every dimension of every value that an output depends on.
///
/// Inputs have the shapes that the definition declares. For operators that change sizes (`view`,
/// `cat`, `slice`, `split`, padding, convolution, pooling, `repeat`) the formula follows the
/// operator; elsewhere a dimension is that of an operand with the same traced size. What is left is
/// the simplest formula over the axes that gives the traced size. Every formula is checked against
/// the trace, and against the second trace where the graph has one.
///
/// Errors: `unsupported` for a size that no formula explains, naming the value, its dimension and
/// the operator that made it; `invalid_input` for a graph that does not fit the definition, or
/// whose outputs have other shapes than the definition declares.
result<symbolic_shapes> infer_shapes(const op_graph& graph, const problem& target);

} // namespace gristmill
