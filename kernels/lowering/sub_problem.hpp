#pragma once

#include "kernels/lowering/program_graph.hpp"
#include "kernels/lowering/symbolic_size.hpp"
#include "messages/result.hpp"
#include "protocol/op_graph.hpp"
#include "protocol/problem.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace gristmill {

/// A tensor of a stage, and the buffer behind it.
struct stage_tensor {
  /// In the stage's definition.
  std::string name;
  /// The value of the whole graph whose buffer it is.
  int64_t base = 0;
  /// The shape under which the stage sees it.
  std::vector<symbolic_size> sizes;
};

/// A part of a problem that is a problem itself.
struct sub_problem {
  problem target;
  op_graph graph;
  /// Tensor inputs, without the scalar ones, and outputs, in order of the definition.
  std::vector<stage_tensor> inputs;
  std::vector<stage_tensor> outputs;
  /// Size of each expression axis that the problem itself does not have.
  std::vector<std::pair<std::string, symbolic_size>> sizes;
  /// Places of its operators in the whole graph.
  std::vector<size_t> nodes;
};

/// Values that have a buffer: everything else is computed where it is used.
using value_set = std::set<int64_t>;

/// Where a stage begins: the values that it reads, each as it sees it.
struct stage_cut {
  std::vector<int64_t> roots;
  /// Values of `materialised` or inputs, or reshapes of them; in order of the graph.
  std::vector<int64_t> leaves;
  /// Operators in between, in order of the graph.
  std::vector<size_t> nodes;
};

/// Follows `roots` back to inputs and other values of `materialised`. A reshape of such a value is
/// where the stage begins, too: the same buffer under another shape.
stage_cut cut_stage(
  const program_graph& program, const std::vector<int64_t>& roots, const value_set& materialised);

/// The part as a problem. Inputs and outputs of the whole problem keep their names; the other
/// tensors are named by their place. Errors: `unsupported` for a tensor whose dtype no launch plan
/// has, or whose size cannot be written down.
result<sub_problem> make_sub_problem(const program_graph& program, const stage_cut& cut);

} // namespace gristmill
