#pragma once

#include "kernels/kernel_ir.hpp"
#include "kernels/pointwise_operators.hpp"
#include "protocol/definition.hpp"
#include "protocol/op_graph.hpp"

#include <cstddef>
#include <vector>

namespace gristmill {

// What the readers of graphs have in common, however they write down an index. Everything here
// throws `no_template`.

/// Position of a scalar input among the inputs of the definition.
size_t scalar_position(const definition& def, const graph_operand& operand);

/// The node of an operand that is no tensor: a number, a truth value, or a scalar input that is a
/// number. One that varies is refused.
int number_node(ir_builder& build, const definition& def, const graph_operand& operand);

/// The index of an operand's element, given that of the result's element: shapes are aligned at
/// their last dimension, and `zero` stands where the operand has size 1 and the result has not.
template <class Index>
std::vector<Index> broadcast_index(const graph_value& operand, const graph_value& result,
  const std::vector<Index>& index, const Index& zero) {
  if (operand.shape.size() > index.size())
    throw no_template{"an operand has more dimensions than the result"};
  const size_t skipped = index.size() - operand.shape.size();
  std::vector<Index> inner(index.begin() + static_cast<std::ptrdiff_t>(skipped), index.end());
  for (size_t i = 0; i < inner.size(); ++i) {
    if (operand.shape[i] == 1 && result.shape[i + skipped] != 1)
      inner[i] = zero;
  }
  return inner;
}

} // namespace gristmill
