#include "kernels/graph_operands.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

size_t scalar_position(const definition& def, const graph_operand& operand) {
  const auto found = std::find_if(def.inputs.begin(), def.inputs.end(),
    [&](const tensor_spec& spec) { return spec.name == operand.text && spec.is_scalar; });
  if (found == def.inputs.end())
    throw no_template{
      fmt::format("the graph's scalar '{}' is no scalar input of the definition", operand.text)};
  return static_cast<size_t>(found - def.inputs.begin());
}

int number_node(ir_builder& build, const definition& def, const graph_operand& operand) {
  switch (operand.kind) {
  case operand_kind::number:
  case operand_kind::integer:
    if (operand.varies)
      throw no_template{
        "a number that the reference computes from the shape or from a scalar input "
        "belongs to no template family yet"};
    return build.constant(
      operand.kind == operand_kind::number ? operand.number : static_cast<double>(operand.integer));
  case operand_kind::boolean:
    return build.constant(static_cast<double>(operand.integer));
  case operand_kind::scalar_input: {
    const size_t at = scalar_position(def, operand);
    if (def.inputs[at].type == dtype::boolean)
      throw no_template{"a bool scalar input belongs to no template family yet"};
    return build.scalar(static_cast<int>(at));
  }
  default:
    throw no_template{"an argument is neither a number nor a tensor"};
  }
}

} // namespace gristmill
