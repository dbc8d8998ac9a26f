#include "kernels/graph_reader.hpp"

#include "kernels/graph_operands.hpp"
#include "kernels/plan_text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace gristmill {

namespace {

// Bounds on what a hostile graph can make us do: recursion, and size of the result.
constexpr size_t depth_max = 400;
constexpr size_t nodes_max = 2000;

int64_t integer_at(const graph_node& node, size_t position, int64_t fallback) {
  if (position >= node.inputs.size() || node.inputs[position].kind == operand_kind::none)
    return fallback;
  if (node.inputs[position].kind != operand_kind::integer)
    throw no_template{
      fmt::format("operator '{}': argument {} is not an integer", node.op, position)};
  return node.inputs[position].integer;
}

/// A dimension counted from the front.
size_t dimension(const graph_node& node, int64_t dim, size_t dimensions) {
  const int64_t from_front = dim < 0 ? dim + static_cast<int64_t>(dimensions) : dim;
  if (from_front < 0 || from_front >= static_cast<int64_t>(dimensions))
    throw no_template{fmt::format("operator '{}': dimension {} does not exist", node.op, dim)};
  return static_cast<size_t>(from_front);
}

index_term shifted(index_term term, const std::string& by) {
  if (by.empty() || by == "0")
    return term;
  term.offset = term.offset.empty() ? by : term.offset + " + " + by;
  return term;
}

} // namespace

bool is_view_operator(std::string_view op) {
  static const std::set<std::string_view> table = {"view", "_unsafe_view", "reshape",
    "_reshape_alias", "unsqueeze", "squeeze", "expand", "slice", "split", "split_with_sizes",
    "chunk", "narrow", "select", "unbind", "permute", "transpose", "t"};
  return table.contains(op);
}

bool is_row_operator(std::string_view op) {
  static const std::set<std::string_view> table = {"mean", "sum", "amax", "amin", "max", "min",
    "var", "std", "var_mean", "logsumexp", "linalg_vector_norm", "norm", "_softmax", "_log_softmax",
    "native_layer_norm"};
  return table.contains(op);
}

graph_reader::graph_reader(const op_graph& graph, const definition& def, fused_kernel& kernel)
  : graph_(graph), def_(def), kernel_(kernel), build_(kernel) {
  for (const auto& what : graph.values)
    values_[what.id] = &what;
  for (const auto& node : graph.nodes) {
    for (size_t i = 0; i < node.outputs.size(); ++i)
      places_[node.outputs[i]] = {&node, i};
  }
}

void graph_reader::refuse(const graph_node& node, std::string_view why) {
  throw no_template{fmt::format("operator '{}' {}", node.op, why)};
}

index_map graph_reader::identity() const {
  index_map index(kernel_.space.size());
  for (size_t i = 0; i < index.size(); ++i)
    index[i].dim = static_cast<int>(i);
  return index;
}

index_map graph_reader::row_identity(size_t dimensions) const {
  index_map index(dimensions);
  for (size_t i = 0; i < dimensions && i + 1 < kernel_.space.size(); ++i)
    index[i].dim = static_cast<int>(i);
  return index;
}

const graph_value& graph_reader::value(int64_t id) const {
  return *values_.at(id);
}

const graph_value& graph_reader::tensor(const graph_node& node, size_t position) const {
  if (position >= node.inputs.size() || node.inputs[position].kind != operand_kind::value)
    refuse(node, fmt::format("has no tensor as its argument {}", position));
  return value(node.inputs[position].value);
}

int graph_reader::read(int64_t id, const index_map& index) {
  const auto key = std::make_pair(id, index);
  if (const auto found = known_.find(key); found != known_.end())
    return found->second;
  if (depth_ >= depth_max || kernel_.nodes.size() >= nodes_max)
    throw no_template{"the graph is too long for one fused kernel"};
  ++depth_;
  const int node = read_value(value(id), index);
  --depth_;
  known_.emplace(key, node);
  return node;
}

int graph_reader::read_value(const graph_value& what, const index_map& index) {
  switch (what.source) {
  case graph_source::input:
    return read_input(what, index);
  case graph_source::scalar_input: {
    graph_operand operand;
    operand.kind = operand_kind::scalar_input;
    operand.text = what.name;
    return read_operand(operand, what, index);
  }
  case graph_source::constant:
    if (what.constant.size() != 1)
      throw no_template{
        "a constant tensor with more than one element belongs to no template family yet"};
    return build_.constant(what.constant.front());
  case graph_source::computed:
    break;
  }
  const auto origin = places_.find(what.id);
  if (origin == places_.end())
    throw no_template{fmt::format("nothing computes value {} of the graph", what.id)};
  return read_node(origin->second, what, index);
}

int graph_reader::read_input(const graph_value& what, const index_map& index) {
  const auto found = std::find_if(def_.inputs.begin(), def_.inputs.end(),
    [&](const tensor_spec& spec) { return spec.name == what.name && !spec.is_scalar; });
  if (found == def_.inputs.end() || found->shape.size() != what.shape.size())
    throw no_template{
      fmt::format("the graph's input '{}' is no such tensor of the definition", what.name)};
  const dtype type = found->type;
  if (type != dtype::float32 && type != dtype::bfloat16 && type != dtype::float16
    && type != dtype::boolean)
    throw no_template{
      fmt::format("input of type {} belongs to no template family yet", name(type))};
  ir_load load{.input = static_cast<int>(found - def_.inputs.begin()),
    .type = type,
    .index = index,
    .is_full = {},
    .is_unit = {}};
  const auto last = static_cast<int>(kernel_.space.size()) - 1;
  for (size_t i = 0; i < index.size(); ++i) {
    const index_term& term = index[i];
    const bool is_full = term.dim >= 0 && term.offset.empty()
      && kernel_.space[static_cast<size_t>(term.dim)].traced == what.shape[i];
    load.is_full.push_back(is_full);
    load.is_unit.push_back(what.shape[i] == 1);
    load.uses_last = load.uses_last || term.dim == last;
    load.uses_leading = load.uses_leading || (term.dim >= 0 && term.dim != last);
  }
  return build_.load(std::move(load));
}

int graph_reader::read_operand(
  const graph_operand& operand, const graph_value& result, const index_map& index) {
  if (operand.kind != operand_kind::value)
    return number_node(build_, def_, operand);
  const graph_value& from = value(operand.value);
  return read(from.id, broadcast_index(from, result, index, index_term{}));
}

int graph_reader::rounded(const graph_node& node, const graph_value& what, int number) {
  const bool is_bool = kernel_.nodes[static_cast<size_t>(number)].is_bool;
  if (what.dtype == "bool")
    return is_bool ? number : build_.apply(ir_op::not_equal, number, build_.constant(0));
  number = build_.apply(ir_op::as_number, number);
  if (what.dtype == "float32")
    return number;
  if (what.dtype == "bfloat16")
    return build_.apply(ir_op::round_bf16, number);
  if (what.dtype == "float16")
    return build_.apply(ir_op::round_fp16, number);
  refuse(node, fmt::format("computes in {}, which no template does", what.dtype));
}

int graph_reader::read_node(const place& from, const graph_value& what, const index_map& index) {
  const graph_node& node = *from.node;
  if (is_view_operator(node.op))
    return read_view(from, what, index);
  if (is_row_operator(node.op))
    return rounded(node, what, read_row(from, what, index));
  if (!is_pointwise(node.op))
    refuse(node, "belongs to no template family yet");
  const int number = build_pointwise(node, build_, kernel_,
    [&](const graph_operand& operand) { return read_operand(operand, what, index); });
  return rounded(node, what, number);
}

std::string graph_reader::recover(const graph_node& node, int64_t number, bool varies) const {
  // An axis that may change is what a number of its size stands for; primes make that unique.
  std::string axis_found;
  for (const auto& [axis_name, size] : graph_.axes) {
    const axis* known = def_.find_axis(axis_name);
    if (size != number || known == nullptr || known->kind == axis_kind::constant)
      continue;
    if (!axis_found.empty())
      refuse(node, fmt::format("has the size {}, which two axes share, as an argument", number));
    axis_found = qualified_name("axis", axis_name);
  }
  if (axis_found.empty() && varies)
    refuse(node,
      fmt::format("has an argument {} that follows the shape in a way not understood", number));
  return axis_found.empty() ? fmt::format("{}", number) : axis_found;
}

int graph_reader::read_view(const place& from, const graph_value& what, const index_map& index) {
  const graph_node& node = *from.node;
  const graph_value& base = tensor(node, 0);
  const size_t dimensions = base.shape.size();
  const std::string_view op = node.op;
  if (op == "permute") {
    if (node.inputs.size() < 2 || node.inputs[1].list.size() != dimensions
      || index.size() != dimensions)
      refuse(node, "has no list of all dimensions");
    index_map inner(dimensions);
    for (size_t i = 0; i < dimensions; ++i)
      inner[dimension(node, node.inputs[1].list[i], dimensions)] = index[i];
    return read(base.id, inner);
  }
  if (op == "transpose" || op == "t") {
    index_map inner = index;
    if (dimensions >= 2 || op == "transpose") {
      const size_t a = dimension(node, op == "t" ? 0 : integer_at(node, 1, 0), dimensions);
      const size_t b = dimension(node, op == "t" ? 1 : integer_at(node, 2, 0), dimensions);
      std::swap(inner.at(a), inner.at(b));
    }
    return read(base.id, inner);
  }
  if (op == "select" || op == "unbind") {
    const size_t dim = dimension(node, integer_at(node, 1, 0), dimensions);
    const auto at = op == "unbind" ? static_cast<int64_t>(from.output) : integer_at(node, 2, 0);
    index_map inner = index;
    if (at < 0 || inner.size() + 1 != dimensions)
      refuse(node, "from the end belongs to no template family yet");
    const std::string offset =
      recover(node, at, op == "select" && node.inputs.size() > 2 && node.inputs[2].varies);
    inner.insert(inner.begin() + static_cast<std::ptrdiff_t>(dim), shifted({}, offset));
    return read(base.id, inner);
  }
  if (op == "slice" || op == "narrow") {
    const size_t dim = dimension(node, integer_at(node, 1, 0), dimensions);
    int64_t start = integer_at(node, 2, 0);
    if (op == "slice" && integer_at(node, 4, 1) != 1)
      refuse(node, "with a step belongs to no template family yet");
    if (start < 0)
      start += base.shape[dim];
    if (start < 0 || index.size() != dimensions)
      refuse(node, "has a start outside of its tensor");
    const bool varies = node.inputs.size() > 2 && node.inputs[2].varies;
    // Counted from the end, the start follows the size even where the number does not.
    const bool from_end = node.inputs.size() > 2 && node.inputs[2].integer < 0;
    index_map inner = index;
    inner[dim] = shifted(inner[dim], recover(node, start, varies || from_end));
    return read(base.id, inner);
  }
  if (op == "split" || op == "split_with_sizes" || op == "chunk") {
    const size_t dim = dimension(node, integer_at(node, 2, 0), dimensions);
    int64_t start = 0;
    for (size_t i = 0; i < from.output; ++i)
      start += value(node.outputs[i]).shape.at(dim);
    const bool is_even =
      base.shape[dim] == what.shape.at(dim) * static_cast<int64_t>(node.outputs.size());
    if (index.size() != dimensions)
      refuse(node, "changes the number of dimensions");
    index_map inner = index;
    if (start > 0 && is_even && inner[dim].dim >= 0) {
      // Equal parts: the i-th begins at i times the part's size, which is a size of the space.
      const auto& part = kernel_.space[static_cast<size_t>(inner[dim].dim)];
      if (part.traced == what.shape[dim] && !part.size.empty()) {
        inner[dim] = shifted(inner[dim], product_text({fmt::format("{}", from.output), part.size}));
        return read(base.id, inner);
      }
    }
    if (start > 0)
      inner[dim] = shifted(inner[dim], recover(node, start, false));
    return read(base.id, inner);
  }
  if (op == "expand") {
    graph_operand operand;
    operand.kind = operand_kind::value;
    operand.value = base.id;
    return read_operand(operand, what, index);
  }
  // view and its kin: only dimensions of size 1 may come and go.
  index_map inner(dimensions);
  size_t next = 0;
  for (size_t i = 0; i < dimensions; ++i) {
    if (base.shape[i] == 1)
      continue;
    while (next < what.shape.size() && what.shape[next] == 1)
      ++next;
    if (next >= what.shape.size() || what.shape[next] != base.shape[i])
      refuse(node, "merges or splits dimensions, which no template family does yet");
    inner[i] = index.at(next++);
  }
  return read(base.id, inner);
}

} // namespace gristmill
