#pragma once

#include "kernels/kernel_ir.hpp"
#include "protocol/op_graph.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace gristmill {

/// Thrown while a graph is read, caught in `fuse`: why no template fits.
struct no_template {
  std::string reason;
};

/// The operators that compute each output element from the input elements at the same place.
bool is_pointwise(std::string_view op);

/// Gives the node of an argument: a number, a scalar input, or a tensor at the index that is asked
/// for.
using operand_reader = std::function<int(const graph_operand&)>;

/// The value of a pointwise operator, before it is rounded to its output type. Throws
/// `no_template`.
int build_pointwise(const graph_node& node, ir_builder& build, const fused_kernel& kernel,
  const operand_reader& read);

} // namespace gristmill
