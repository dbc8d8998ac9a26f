#include "kernels/naive/naive_writer.hpp"

#include "kernels/naive/naive_operators.hpp"
#include "kernels/naive/naive_types.hpp"
#include "kernels/naive/naive_views.hpp"
#include "kernels/plan_text.hpp"
#include "kernels/pointwise_operators.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gristmill {

namespace {

// Bounds on what a hostile graph can make us do: recursion, and size of the result.
constexpr size_t depth_max = 100;
constexpr size_t text_max = 400'000;

} // namespace

naive_writer::naive_writer(
  const op_graph& graph, const definition& def, naive_sizes& sizes, int lanes)
  : graph_(graph), def_(def), sizes_(sizes), lanes_(lanes), known_(1) {
  for (const auto& node : graph.nodes) {
    for (size_t i = 0; i < node.outputs.size(); ++i)
      origins_[node.outputs[i]] = {&node, i};
  }
}

void naive_writer::line(const std::string& text) {
  if (body_.size() > text_max)
    throw no_template{"the kernel would be too long"};
  body_ += std::string(2 * indent_, ' ') + text + "\n";
}

void naive_writer::open(const std::string& head) {
  line(head.empty() ? "{" : head + " {");
  ++indent_;
  known_.emplace_back();
}

void naive_writer::close() {
  --indent_;
  known_.pop_back();
  line("}");
}

std::string naive_writer::fresh(std::string_view stem) {
  return fmt::format("{}{}", stem, counter_++);
}

std::string naive_writer::let(std::string_view type, const std::string& text) {
  std::string name = fresh("v");
  line(fmt::format("const {} {} = {};", type, name, text));
  return name;
}

std::string naive_writer::variable(std::string_view type, const std::string& text) {
  std::string name = fresh("x");
  line(fmt::format("{} {} = {};", type, name, text));
  return name;
}

std::string naive_writer::loop(const std::string& size) {
  std::string name = fresh("k");
  open(fmt::format("for (int64_t {0} = 0; {0} < {1}; ++{0})", name, size));
  return name;
}

std::string naive_writer::shared_loop(const std::string& size) {
  if (lanes_ == 1)
    return loop(size);
  std::string name = fresh("k");
  open(fmt::format("for (int64_t {0} = lane; {0} < {1}; {0} += {2})", name, size, lanes_));
  return name;
}

std::string naive_writer::parameter(
  const std::string& declared_type, std::string_view stem, const std::string& argument) {
  if (const auto found = parameters_.find(argument); found != parameters_.end())
    return found->second;
  std::string name = fmt::format("{}{}", stem, parameters_.size());
  parameters_[argument] = name;
  declarations_.push_back(declared_type + " " + name);
  arguments_.push_back(argument);
  return name;
}

std::string naive_writer::amount(const naive_size& size) {
  if (size == naive_constant(size.traced))
    return fmt::format("int64_t({})", size.traced);
  return parameter("int64_t", "size", size.plan + ":i64");
}

std::string naive_writer::real_amount(const std::string& plan) {
  return parameter("double", "number", plan + ":f64");
}

std::string naive_writer::size(int64_t id, size_t dim) {
  return amount(sizes_.shape(id).at(dim));
}

std::vector<std::string> naive_writer::shape(int64_t id) {
  std::vector<std::string> sizes;
  for (const naive_size& one : sizes_.shape(id))
    sizes.push_back(amount(one));
  return sizes;
}

const graph_value& naive_writer::value(int64_t id) const {
  const graph_value* what = find_value(graph_, id);
  if (what == nullptr)
    throw no_template{fmt::format("the graph has no value {}", id)};
  return *what;
}

std::string naive_writer::type_of(int64_t id) const {
  return naive_register(value(id).dtype);
}

std::string naive_writer::linear(const std::vector<std::string>& shape, const naive_index& index) {
  std::string text;
  for (size_t i = 0; i < index.size(); ++i) {
    if (shape.at(i) == "int64_t(1)")
      continue;
    text = text.empty() ? index[i] : fmt::format("({} * {} + {})", text, shape[i], index[i]);
  }
  return text.empty() ? "int64_t(0)" : text;
}

naive_index naive_writer::unravelled(
  const std::vector<std::string>& shape, const std::string& number) {
  naive_index index(shape.size(), "int64_t(0)");
  std::string rest = number;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == "int64_t(1)")
      continue;
    if (i == 0) {
      index[i] = rest;
      break;
    }
    index[i] = let("int64_t", fmt::format("{} % {}", rest, shape[i]));
    rest = let("int64_t", fmt::format("{} / {}", rest, shape[i]));
  }
  return index;
}

std::string naive_writer::read_input(const graph_value& what, const std::string& number) {
  const tensor_spec* spec = def_.find_input(what.name);
  if (spec == nullptr || name(spec->type) != what.dtype)
    throw no_template{fmt::format(
      "input '{}' was traced as {}, which is not how it is declared", what.name, what.dtype)};
  const std::string pointer = parameter(
    fmt::format("const {}*", naive_storage(spec->type)), "in", qualified_name("in", what.name));
  return fmt::format("{}({}[{}])", naive_register(what.dtype), pointer, number);
}

std::string naive_writer::read_scalar(const std::string& name, std::string_view type) {
  const tensor_spec* spec = def_.find_input(name);
  if (spec == nullptr || !spec->is_scalar)
    throw no_template{
      fmt::format("the graph's scalar '{}' is no scalar input of the definition", name)};
  const std::string passed = qualified_name("in", name);
  if (is_float(spec->type))
    return naive_converted(parameter("double", "scalar", passed + ":f64"), "double", type);
  if (spec->type == dtype::boolean)
    return naive_converted(parameter("bool", "scalar", passed + ":b8"), "bool", type);
  return naive_converted(parameter("int64_t", "scalar", passed + ":i64"), "int64_t", type);
}

std::string naive_writer::read_constant(const graph_value& what, const naive_index& index) {
  const std::string type = naive_register(what.dtype);
  if (what.constant.size() == 1)
    return naive_literal(what.constant.front(), type);
  if (what.constant.empty())
    throw no_template{"a constant without elements has no naive kernel"};
  std::vector<std::string> elements;
  for (double element : what.constant)
    elements.push_back(naive_literal(element, type));
  std::vector<std::string> sizes;
  for (int64_t dim : what.shape)
    sizes.push_back(amount(naive_constant(dim)));
  const std::string table = fresh("table");
  line(fmt::format("const {} {}[] = {{{}}};", type, table, fmt::join(elements, ", ")));
  return fmt::format("{}[{}]", table, linear(sizes, index));
}

std::string naive_writer::read(int64_t id, const naive_index& index) {
  const auto key = std::make_pair(id, index);
  for (const auto& scope : known_) {
    if (const auto found = scope.find(key); found != scope.end())
      return found->second;
  }
  const graph_value& what = value(id);
  if (index.size() != what.shape.size())
    throw no_template{fmt::format("value {} is read with another number of dimensions", id)};
  std::string text;
  switch (what.source) {
  case graph_source::input:
    text = read_input(what, linear(shape(id), index));
    break;
  case graph_source::scalar_input:
    return naive_rounded(read_scalar(what.name, naive_register(what.dtype)), what.dtype);
  case graph_source::constant:
    text = read_constant(what, index);
    break;
  case graph_source::computed: {
    const auto origin = origins_.find(id);
    if (origin == origins_.end())
      throw no_template{fmt::format("nothing computes value {} of the graph", id)};
    const auto& [node, output] = origin->second;
    if (++depth_ > depth_max)
      throw no_template{"the graph is too long for one naive kernel"};
    const naive_call call(*this, *node, output);
    if (is_naive_view(call.op())) {
      text = read_naive_view(*this, *node, output, what, index);
    } else if (const auto* row = find_naive_row_operator(call.op())) {
      naive_index outer = index;
      for (size_t dim : row->dims(call))
        outer.at(dim).clear();
      const auto names = row->prologue(call, outer);
      text = naive_rounded(row->element(call, names, index), what.dtype);
    } else if (const auto* op = find_naive_operator(call.op())) {
      text = naive_rounded(op->element(call, index), what.dtype);
    } else {
      throw no_template{fmt::format("operator '{}' has no naive kernel here", node->op)};
    }
    --depth_;
    break;
  }
  }
  std::string name = let(naive_register(what.dtype), text);
  known_.back()[key] = name;
  return name;
}

std::string naive_writer::read_linear(int64_t id, const std::string& number) {
  const graph_value& what = value(id);
  if (what.source == graph_source::input)
    return let(naive_register(what.dtype), read_input(what, number));
  return read(id, unravelled(shape(id), number));
}

std::string naive_writer::number(
  const graph_node& node, const graph_operand& operand, std::string_view type) {
  switch (operand.kind) {
  case operand_kind::number:
    if (operand.varies)
      return naive_converted(real_amount(sizes_.number(node.op, operand.number)), "double", type);
    return naive_literal(operand.number, type);
  case operand_kind::integer:
    if (operand.varies)
      return naive_converted(
        amount(sizes_.integer(node.op, operand.integer, true)), "int64_t", type);
    if (type == "int64_t" && operand.integer > INT64_MIN)
      return fmt::format("int64_t({}ll)", operand.integer);
    return naive_literal(static_cast<double>(operand.integer), type);
  case operand_kind::boolean:
    return naive_literal(static_cast<double>(operand.integer), type);
  case operand_kind::scalar_input:
    return read_scalar(operand.text, type);
  default:
    throw no_template{
      fmt::format("operator '{}' has an argument that is neither a number nor a tensor", node.op)};
  }
}

std::string naive_writer::output(size_t place) {
  const tensor_spec& spec = def_.outputs.at(place);
  return parameter(
    fmt::format("{}*", naive_storage(spec.type)), "out", qualified_name("out", spec.name));
}

std::string naive_writer::declarations() const {
  return fmt::format("{}", fmt::join(declarations_, ", "));
}

} // namespace gristmill
