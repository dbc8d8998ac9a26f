#include "kernels/fusion.hpp"

#include "kernels/graph_reader.hpp"
#include "kernels/plan_text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <unordered_set>

namespace gristmill {

namespace {

/// The nodes that the outputs need, in the graph's order.
std::vector<const graph_node*> live_nodes(const op_graph& graph) {
  std::unordered_set<int64_t> wanted(graph.outputs.begin(), graph.outputs.end());
  std::vector<const graph_node*> live;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    if (std::none_of(node->outputs.begin(), node->outputs.end(),
          [&](int64_t id) { return wanted.contains(id); }))
      continue;
    live.push_back(&*node);
    const auto want = [&](const graph_operand& operand) {
      if (operand.kind == operand_kind::value)
        wanted.insert(operand.value);
      else if (operand.kind == operand_kind::values)
        wanted.insert(operand.list.begin(), operand.list.end());
    };
    for (const auto& operand : node->inputs)
      want(operand);
    for (const auto& [key, operand] : node->attrs)
      want(operand);
  }
  std::reverse(live.begin(), live.end());
  return live;
}

/// Sets family and traced sizes of the space: the shape that is reduced, or that of the outputs.
void set_space(const op_graph& graph, fused_kernel& kernel) {
  const graph_value* shape_of = find_value(graph, graph.outputs.front());
  for (const graph_node* node : live_nodes(graph)) {
    if (!is_row_operator(node->op) || node->inputs.empty()
      || node->inputs[0].kind != operand_kind::value)
      continue;
    shape_of = find_value(graph, node->inputs[0].value);
    kernel.family = template_family::row;
    break;
  }
  if (kernel.family == template_family::row && shape_of->shape.empty())
    throw no_template{"a reduction of a single number belongs to no template family yet"};
  for (int64_t size : shape_of->shape)
    kernel.space.push_back({"", size});
}

enum class output_form : uint8_t { element, row_kept, row_dropped, column };

/// How an output's shape lies in the space; throws when it does not.
output_form form_of(const graph_value& output, const fused_kernel& kernel, bool with_columns) {
  std::vector<int64_t> space;
  for (const auto& dim : kernel.space)
    space.push_back(dim.traced);
  if (output.shape == space)
    return output_form::element;
  if (kernel.family == template_family::row) {
    std::vector<int64_t> leading(space.begin(), space.end() - 1);
    if (output.shape == leading)
      return output_form::row_dropped;
    leading.push_back(1);
    if (output.shape == leading)
      return output_form::row_kept;
    if (with_columns && output.shape == std::vector<int64_t>{space.back()})
      return output_form::column;
    throw no_template{"an output has another shape than the rows that are reduced"};
  }
  throw no_template{"outputs of different shapes belong to no template family yet"};
}

/// Names the sizes of the space after tensors of the definition. Where another tensor's dimension
/// was equally long only in the trace, that becomes a condition of the plan.
class space_namer {
public:
  space_namer(const definition& def, fused_kernel& kernel) : def_(def), kernel_(kernel) {
    labels_.resize(kernel.space.size());
  }

  void add(std::string_view kind, const tensor_spec& spec, size_t tensor_dim, size_t dim) {
    const std::string text = dim_text(kind, spec.name, tensor_dim);
    const std::string& label = spec.shape[tensor_dim];
    if (kernel_.space[dim].size.empty()) {
      kernel_.space[dim].size = text;
      labels_[dim] = label;
    } else if (labels_[dim] != label) {
      std::string condition = fmt::format("{} == {}", text, kernel_.space[dim].size);
      if (std::find(kernel_.conditions.begin(), kernel_.conditions.end(), condition)
        == kernel_.conditions.end())
        kernel_.conditions.push_back(std::move(condition));
    }
  }

  void add_output(const tensor_spec& spec, output_form form) {
    const size_t dimensions = kernel_.space.size();
    if (form == output_form::column) {
      add("out", spec, 0, dimensions - 1);
      return;
    }
    for (size_t i = 0; i < (form == output_form::element ? dimensions : dimensions - 1); ++i)
      add("out", spec, i, i);
  }

  void add_loads() {
    for (const ir_load& load : kernel_.loads) {
      const tensor_spec& spec = def_.inputs[static_cast<size_t>(load.input)];
      for (size_t i = 0; i < load.index.size(); ++i) {
        if (load.is_full[i])
          add("in", spec, i, static_cast<size_t>(load.index[i].dim));
      }
    }
  }

  /// What no tensor names in full is an axis of that traced size.
  void finish(const op_graph& graph) {
    for (auto& dim : kernel_.space) {
      for (const auto& [name, size] : graph.axes) {
        if (dim.size.empty() && size == dim.traced)
          dim.size = qualified_name("axis", name);
      }
      if (dim.size.empty())
        throw no_template{
          fmt::format("no axis of the definition explains a dimension of size {}", dim.traced)};
    }
  }

private:
  const definition& def_;
  fused_kernel& kernel_;
  std::vector<std::string> labels_;
};

void check_output(const tensor_spec& spec, const graph_value& value) {
  if (spec.is_scalar || spec.shape.size() != value.shape.size())
    throw no_template{
      fmt::format("output '{}' has other dimensions than its declaration", spec.name)};
  if (spec.type != dtype::float32 && spec.type != dtype::bfloat16 && spec.type != dtype::float16
    && spec.type != dtype::boolean)
    throw no_template{
      fmt::format("output of type {} belongs to no template family yet", name(spec.type))};
  if (value.dtype != name(spec.type))
    throw no_template{fmt::format(
      "output '{}' is declared {} but traced as {}", spec.name, name(spec.type), value.dtype)};
}

fused_kernel read_kernel(const op_graph& graph, const definition& def, bool with_columns) {
  fused_kernel kernel;
  if (graph.outputs.empty() || graph.outputs.size() != def.outputs.size())
    throw no_template{fmt::format(
      "the graph has {} outputs and the definition {}", graph.outputs.size(), def.outputs.size())};
  for (const graph_node* node : live_nodes(graph)) {
    // Said before the shapes are looked at: the operator is what a reader wants to hear about.
    if (!is_row_operator(node->op) && !is_pointwise(node->op) && !is_view_operator(node->op))
      throw no_template{fmt::format("operator '{}' belongs to no template family yet", node->op)};
  }
  set_space(graph, kernel);
  space_namer names(def, kernel);
  const size_t dimensions = kernel.space.size();
  std::vector<output_form> forms;
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const graph_value& value = *find_value(graph, graph.outputs[i]);
    check_output(def.outputs[i], value);
    forms.push_back(form_of(value, kernel, with_columns));
  }
  // Outputs first: sizes are named after what is written, where possible.
  for (size_t i = 0; i < forms.size(); ++i)
    names.add_output(def.outputs[i], forms[i]);
  graph_reader reader(graph, def, kernel);
  if (with_columns)
    reader.take_factors_out();
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    if (forms[i] == output_form::column) {
      const int node = reader.read_column_sum(graph.outputs[i], def.outputs[i].type);
      kernel.outputs.push_back({static_cast<int>(i), def.outputs[i].type, node, false, true});
      continue;
    }
    const index_map index = forms[i] == output_form::element
      ? reader.identity()
      : reader.row_identity(forms[i] == output_form::row_kept ? dimensions : dimensions - 1);
    int node = reader.read(graph.outputs[i], index);
    const ir_node& last = kernel.nodes[static_cast<size_t>(node)];
    // Storing rounds: once is enough.
    if ((last.op == ir_op::round_bf16 && def.outputs[i].type == dtype::bfloat16)
      || (last.op == ir_op::round_fp16 && def.outputs[i].type == dtype::float16))
      node = last.args[0];
    kernel.outputs.push_back(
      {static_cast<int>(i), def.outputs[i].type, node, forms[i] != output_form::element, false});
  }
  names.add_loads();
  names.finish(graph);
  const auto levels = levels_of(kernel);
  for (const ir_output& output : kernel.outputs) {
    if (output.is_per_row && levels[static_cast<size_t>(output.node)] == ir_level::element)
      throw no_template{"an output of one number a row depends on single elements"};
  }
  return kernel;
}

result<fused_kernel> fuse_graph(const op_graph& graph, const definition& def, bool with_columns) {
  if (auto checked = validate(graph); !checked)
    return pass(checked);
  try {
    return read_kernel(graph, def, with_columns);
  } catch (const no_template& refused) {
    return fail(errc::unsupported, refused.reason);
  }
}

} // namespace

result<fused_kernel> fuse(const op_graph& graph, const definition& def) {
  return fuse_graph(graph, def, false);
}

result<fused_kernel> fuse_with_columns(const op_graph& graph, const definition& def) {
  return fuse_graph(graph, def, true);
}

} // namespace gristmill
