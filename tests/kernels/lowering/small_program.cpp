#include "tests/kernels/lowering/small_program.hpp"

#include "protocol/expression.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace gristmill::test {

graph_operand value(int64_t id) {
  graph_operand out;
  out.kind = operand_kind::value;
  out.value = id;
  return out;
}

graph_operand values(std::vector<int64_t> ids) {
  graph_operand out;
  out.kind = operand_kind::values;
  out.list = std::move(ids);
  return out;
}

graph_operand integer(int64_t number, bool varies) {
  graph_operand out;
  out.kind = operand_kind::integer;
  out.integer = number;
  out.varies = varies;
  return out;
}

graph_operand integers(std::vector<int64_t> numbers) {
  graph_operand out;
  out.kind = operand_kind::integers;
  out.list = std::move(numbers);
  return out;
}

graph_operand number(double number) {
  graph_operand out;
  out.kind = operand_kind::number;
  out.number = number;
  return out;
}

graph_operand flag(bool is_set) {
  graph_operand out;
  out.kind = operand_kind::boolean;
  out.integer = is_set ? 1 : 0;
  return out;
}

graph_operand none() {
  return {};
}

graph_operand scalar_operand(const std::string& name) {
  graph_operand out;
  out.kind = operand_kind::scalar_input;
  out.text = name;
  return out;
}

small_program::small_program(const std::vector<traced_axis>& axes) {
  target.name = target.def.name = "small";
  for (const auto& one : axes) {
    axis declared;
    declared.name = one.name;
    declared.kind = one.is_constant ? axis_kind::constant
      : one.expression.empty()      ? axis_kind::variable
                                    : axis_kind::expression;
    declared.value = one.first;
    declared.expression = one.expression;
    target.def.axes.push_back(declared);
    graph.axes.emplace_back(one.name, one.first);
    graph.axes_again.emplace_back(one.name, one.is_constant ? one.first : one.again);
  }
}

std::vector<int64_t> small_program::sizes(
  const std::vector<std::string>& shape, const axis_values& axes) const {
  std::vector<int64_t> out;
  for (const auto& text : shape) {
    const auto size = evaluate_axis(text, axes);
    REQUIRE_MESSAGE(size, (size ? std::string{} : size.error().what));
    out.push_back(*size);
  }
  return out;
}

int64_t small_program::add_value(const std::vector<std::string>& shape, const std::string& type) {
  graph_value made;
  made.id = static_cast<int64_t>(graph.values.size());
  made.dtype = type;
  made.shape = sizes(shape, graph.axes);
  made.shape_again = sizes(shape, graph.axes_again);
  graph.values.push_back(made);
  return made.id;
}

int64_t small_program::input(
  const std::string& name, const std::vector<std::string>& shape, const std::string& type) {
  const int64_t id = add_value(shape, type);
  graph.values.back().source = graph_source::input;
  graph.values.back().name = name;
  tensor_spec spec;
  spec.name = name;
  spec.type = *parse_dtype(type);
  spec.shape = shape;
  target.def.inputs.push_back(spec);
  return id;
}

int64_t small_program::constant(double number) {
  const int64_t id = add_value({}, "float32");
  graph.values.back().source = graph_source::constant;
  graph.values.back().constant = {number};
  return id;
}

int64_t small_program::op(const std::string& name, std::vector<graph_operand> arguments,
  const std::vector<std::string>& shape, const std::string& type) {
  std::string kind = type;
  for (const auto& argument : arguments) {
    if (!kind.empty())
      break;
    if (argument.kind == operand_kind::value)
      kind = find_value(graph, argument.value)->dtype;
    else if (argument.kind == operand_kind::values)
      kind = find_value(graph, argument.list.front())->dtype;
  }
  return ops(name, std::move(arguments), {shape}, kind.empty() ? "float32" : kind).front();
}

std::vector<int64_t> small_program::ops(const std::string& name,
  std::vector<graph_operand> arguments, const std::vector<std::vector<std::string>>& shapes,
  const std::string& type) {
  graph_node node;
  node.op = name;
  node.inputs = std::move(arguments);
  for (const auto& shape : shapes)
    node.outputs.push_back(add_value(shape, type));
  graph.nodes.push_back(node);
  return node.outputs;
}

void small_program::scalar(const std::string& name, double value) {
  tensor_spec spec;
  spec.name = name;
  spec.is_scalar = true;
  target.def.inputs.push_back(spec);
  for (auto& work : target.workloads) {
    input_spec given;
    given.name = name;
    given.kind = input_kind::scalar;
    given.value = value;
    work.inputs.push_back(given);
  }
}

void small_program::output(
  const std::string& name, int64_t id, const std::vector<std::string>& labels) {
  tensor_spec spec;
  spec.name = name;
  spec.type = *parse_dtype(find_value(graph, id)->dtype);
  spec.shape = labels;
  target.def.outputs.push_back(spec);
  graph.outputs.push_back(id);
}

void small_program::workload_at(const axis_values& axes) {
  workload work;
  work.uuid = fmt::format("w{}", target.workloads.size());
  work.axes = axes;
  target.workloads.push_back(work);
}

void small_program::forget_second_trace() {
  graph.axes_again.clear();
  for (auto& one : graph.values)
    one.shape_again.clear();
}

} // namespace gristmill::test
