#include "kernels/lowering/program_graph.hpp"

#include "kernels/plan_text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <unordered_set>

namespace gristmill {

namespace {

/// Values and nodes are numbered on from the largest id there is.
class graph_editor {
public:
  explicit graph_editor(const op_graph& graph) : graph_(graph) {
    for (const auto& value : graph_.values)
      next_ = std::max(next_, value.id + 1);
  }

  op_graph run() {
    drop_dead();
    // New nodes stand where the old one stood, so a fresh list is written.
    std::vector<graph_node> before = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (graph_node& node : before)
      add_plain(std::move(node));
    separate_outputs();
    return std::move(graph_);
  }

private:
  void drop_dead() {
    std::unordered_set<int64_t> wanted(graph_.outputs.begin(), graph_.outputs.end());
    std::vector<graph_node> live;
    for (auto node = graph_.nodes.rbegin(); node != graph_.nodes.rend(); ++node) {
      if (std::none_of(node->outputs.begin(), node->outputs.end(),
            [&](int64_t id) { return wanted.contains(id); }))
        continue;
      for (int64_t id : operands_of(*node))
        wanted.insert(id);
      live.push_back(std::move(*node));
    }
    std::reverse(live.begin(), live.end());
    graph_.nodes = std::move(live);
    std::unordered_set<int64_t> kept = wanted;
    for (const auto& node : graph_.nodes)
      kept.insert(node.outputs.begin(), node.outputs.end());
    std::erase_if(graph_.values, [&](const graph_value& value) {
      return value.source == graph_source::computed && !kept.contains(value.id);
    });
  }

  const graph_value& value(int64_t id) const { return *find_value(graph_, id); }

  int64_t add_value(const graph_value& like) {
    graph_value fresh;
    fresh.id = next_++;
    fresh.dtype = like.dtype;
    fresh.shape = like.shape;
    fresh.shape_again = like.shape_again;
    graph_.values.push_back(fresh);
    return fresh.id;
  }

  static graph_operand reference(int64_t id) {
    graph_operand operand;
    operand.kind = operand_kind::value;
    operand.value = id;
    return operand;
  }

  void add_plain(graph_node node) {
    const bool is_in_place =
      node.op.size() > 1 && node.op.ends_with('_') && !node.op.ends_with("__");
    if (!is_in_place) {
      graph_.nodes.push_back(std::move(node));
      return;
    }
    if (node.op == "copy_" && node.inputs.size() >= 2 && node.outputs.size() == 1
      && node.inputs[1].kind == operand_kind::value) {
      add_copy(node);
      return;
    }
    node.op.pop_back();
    if (node.op == "zero")
      node.op = "zeros_like";
    else if (node.op == "fill")
      node.op = "full_like";
    graph_.nodes.push_back(std::move(node));
  }

  /// What is copied, spread and cast to what it overwrites.
  void add_copy(const graph_node& node) {
    const graph_value result = value(node.outputs.front());
    graph_value source = value(node.inputs[1].value);
    int64_t from = source.id;
    if (source.shape != result.shape) {
      source.shape = result.shape;
      source.shape_again = result.shape_again;
      graph_node spread;
      spread.op = "expand";
      spread.inputs = {reference(from), {}};
      spread.inputs[1].kind = operand_kind::integers;
      spread.inputs[1].list = result.shape;
      from = add_value(source);
      spread.outputs = {from};
      graph_.nodes.push_back(std::move(spread));
    }
    graph_node cast;
    cast.op = "_to_copy";
    cast.inputs = {reference(from)};
    cast.outputs = node.outputs;
    graph_operand type;
    type.kind = operand_kind::text;
    type.text = result.dtype;
    cast.attrs.emplace_back("dtype", std::move(type));
    graph_.nodes.push_back(std::move(cast));
  }

  void separate_outputs() {
    std::unordered_map<int64_t, const graph_node*> makers;
    for (const auto& node : graph_.nodes) {
      for (int64_t id : node.outputs)
        makers[id] = &node;
    }
    const auto base = [&](int64_t id) {
      for (auto maker = makers.find(id); maker != makers.end()
           && is_reshape_operator(maker->second->op) && !operands_of(*maker->second).empty();
           maker = makers.find(id))
        id = operands_of(*maker->second).front();
      return id;
    };
    std::set<int64_t> taken;
    std::vector<graph_node> copies;
    for (int64_t& output : graph_.outputs) {
      const int64_t root = base(output);
      if (value(root).source == graph_source::computed && taken.insert(root).second)
        continue;
      graph_node copy;
      copy.op = "clone";
      copy.inputs = {reference(output)};
      const graph_value like = value(output);
      copy.outputs = {add_value(like)};
      output = copy.outputs.front();
      copies.push_back(std::move(copy));
    }
    graph_.nodes.insert(graph_.nodes.end(), copies.begin(), copies.end());
  }

  op_graph graph_;
  int64_t next_ = 0;
};

} // namespace

bool is_reshape_operator(std::string_view op) {
  static const std::set<std::string_view> table = {"view", "_unsafe_view", "reshape",
    "_reshape_alias", "unsqueeze", "squeeze", "flatten", "unflatten", "detach", "alias"};
  return table.contains(op);
}

std::vector<int64_t> operands_of(const graph_node& node) {
  std::vector<int64_t> out;
  const auto add = [&](const graph_operand& operand) {
    if (operand.kind == operand_kind::value)
      out.push_back(operand.value);
    else if (operand.kind == operand_kind::values)
      out.insert(out.end(), operand.list.begin(), operand.list.end());
  };
  for (const auto& operand : node.inputs)
    add(operand);
  for (const auto& [key, operand] : node.attrs)
    add(operand);
  return out;
}

op_graph normalised_graph(const op_graph& graph) {
  return graph_editor(graph).run();
}

result<std::unique_ptr<const program_graph>> program_graph::make(
  const problem& target, const op_graph& graph) {
  if (auto checked = validate(graph); !checked)
    return pass(checked);
  std::unique_ptr<program_graph> made{new program_graph(target, normalised_graph(graph))};
  auto shapes = infer_shapes(made->graph_, target);
  if (!shapes)
    return pass(shapes);
  made->shapes_ = std::move(*shapes);
  if (auto indexed = made->index(); !indexed)
    return pass(indexed);
  return std::unique_ptr<const program_graph>{std::move(made)};
}

result<void> program_graph::index() {
  for (const auto& value : graph_.values)
    values_[value.id] = &value;
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    for (int64_t id : graph_.nodes[i].outputs)
      producers_[id] = i;
  }
  for (size_t i = 0; i < graph_.outputs.size(); ++i)
    outputs_[base(graph_.outputs[i])] = i;
  size_t count = 0;
  for (const auto& value : graph_.values) {
    for (const symbolic_size& size : sizes(value.id)) {
      if (size.as_number() || size.as_axis() || extra_.contains(size.plan_text()))
        continue;
      const auto expression = size.axis_text();
      const auto first = size.value_at(graph_.axes);
      const auto again = size.value_at(graph_.axes_again.empty() ? graph_.axes : graph_.axes_again);
      if (!expression || !first || !again)
        continue; // Said by `label` where such a size is needed.
      extra_axis extra{
        free_name(target_.def, fmt::format("size{}", count++)), size, *expression, *first, *again};
      extra_.emplace(size.plan_text(), std::move(extra));
    }
  }
  return {};
}

std::optional<size_t> program_graph::producer(int64_t id) const {
  const auto found = producers_.find(id);
  return found == producers_.end() ? std::nullopt : std::optional{found->second};
}

int64_t program_graph::base(int64_t id) const {
  for (auto at = producer(id); at && is_reshape_operator(node(*at).op); at = producer(id)) {
    const auto operands = operands_of(node(*at));
    if (operands.empty())
      break;
    id = operands.front();
  }
  return id;
}

std::optional<size_t> program_graph::output_of(int64_t base) const {
  const auto found = outputs_.find(base);
  return found == outputs_.end() ? std::nullopt : std::optional{found->second};
}

result<std::string> program_graph::label(const symbolic_size& size) const {
  if (const auto number = size.as_number())
    return fmt::format("{}", *number);
  if (const auto name = size.as_axis())
    return *name;
  if (const auto found = extra_.find(size.plan_text()); found != extra_.end())
    return found->second.name;
  const auto text = size.axis_text();
  return fail(errc::unsupported,
    text ? fmt::format("the size {} has no value in the trace", size.plan_text())
         : text.error().what);
}

} // namespace gristmill
