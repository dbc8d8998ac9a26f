#include "kernels/naive/naive_stage.hpp"

#include "kernels/naive/naive_operators.hpp"
#include "kernels/naive/naive_types.hpp"
#include "kernels/naive/naive_views.hpp"
#include "kernels/plan_text.hpp"
#include "kernels/pointwise_operators.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>
#include <utility>

namespace gristmill {

namespace {

using json = nlohmann::ordered_json;

constexpr int warp = 32;

/// One launch; `threads` is a plan expression.
struct naive_launch {
  std::string entry;
  std::string threads;
  std::string source;
  std::vector<std::string> arguments;
};

class naive_space : public parameter_space {
public:
  explicit naive_space(std::vector<naive_launch> launches)
    : parameter_space("naive",
      {{"t", "threads a block", "fewer and longer blocks", "more blocks for small shapes"}},
      {{64}, {128}, {256}}, {128}),
      launches_(std::move(launches)) {}

  generated_kernel generate(size_t point) const override {
    const int64_t block = values(point)[0];
    std::string text;
    json steps = json::array();
    for (const naive_launch& one : launches_) {
      text += "\n" + one.source;
      json step = {{"op", "launch"}, {"entry", one.entry}};
      step["grid"] = {fmt::format("ceil_div({}, {})", one.threads, block), 1, 1};
      step["block"] = {block, 1, 1};
      step["args"] = one.arguments;
      steps.push_back(std::move(step));
    }
    std::string head = "// Naive kernel: right for every shape, and nothing more.\n";
    const auto has = [&](std::string_view word) { return text.find(word) != std::string::npos; };
    if (has("bfloat16"))
      head += "#include <cuda_bf16.h>\n";
    if (has("half"))
      head += "#include <cuda_fp16.h>\n";
    if (has("__nv_fp8"))
      head += "#include <cuda_fp8.h>\n";
    head += "#include <cstdint>\n#include <math.h>\n";
    json plan = {{"schema", "gristmill.plan/1"}};
    plan["variants"] = json::array({json{{"steps", std::move(steps)}}});
    return {head + text, plan.dump(2) + "\n"};
  }

private:
  std::vector<naive_launch> launches_;
};

/// Operators that change no element's value but by rounding: any number of them is free.
bool is_copy(std::string_view op) {
  return op == "clone" || op == "contiguous" || op == "_to_copy" || op == "lift_fresh_copy";
}

/// Why an operator has no naive kernel, where there is more to say than that it has none.
std::string refusal_of(std::string_view op) {
  if (op == "nonzero" || op == "masked_select" || op == "_unique2" || op == "unique_dim"
    || op == "unique_consecutive")
    return "has a result whose shape depends on the data";
  if (op == "bernoulli" || op == "multinomial" || op.starts_with("rand") || op.starts_with("normal")
    || op == "uniform")
    return "draws random numbers, which no kernel repeats";
  if (op.starts_with("_fft") || op.starts_with("view_as_"))
    return "works with complex numbers, which the launch plan has no buffers for";
  if (op.starts_with("linalg_"))
    return "is an algorithm of linear algebra, which has no naive kernel";
  return "has no naive kernel";
}

/// The one operator of a stage; null where there are but views and copies.
const graph_node* only_operator(const op_graph& graph) {
  std::unordered_set<int64_t> wanted(graph.outputs.begin(), graph.outputs.end());
  const graph_node* only = nullptr;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    if (std::none_of(node->outputs.begin(), node->outputs.end(),
          [&](int64_t id) { return wanted.contains(id); }))
      continue;
    const auto want = [&](const graph_operand& operand) {
      if (operand.kind == operand_kind::value)
        wanted.insert(operand.value);
      else if (operand.kind == operand_kind::values)
        wanted.insert(operand.list.begin(), operand.list.end());
    };
    std::for_each(node->inputs.begin(), node->inputs.end(), want);
    for (const auto& attr : node->attrs)
      want(attr.second);
    const std::string& op = node->op;
    if (is_naive_view(op) || is_copy(op))
      continue;
    if (find_naive_operator(op) == nullptr && find_naive_row_operator(op) == nullptr
      && find_naive_scan_operator(op) == nullptr)
      throw no_template{fmt::format("operator '{}' {}", node->op, refusal_of(op))};
    if (only != nullptr)
      throw no_template{
        fmt::format("operators '{}' and '{}' make two stages: a naive kernel computes one",
          node->op, only->op)};
    only = &*node;
  }
  return only;
}

/// The same graph with every in-place operator under its plain name.
op_graph without_in_place(op_graph graph) {
  for (graph_node& node : graph.nodes) {
    if (node.op.ends_with('_') && !node.op.ends_with("__"))
      node.op.pop_back();
  }
  return graph;
}

class naive_reader {
public:
  naive_reader(const op_graph& graph, const definition& def)
    : graph_(without_in_place(graph)), def_(def), sizes_(graph_, def) {}

  std::vector<naive_launch> read() {
    check();
    only_ = only_operator(graph_);
    if (only_ != nullptr) {
      naive_writer none(graph_, def_, sizes_, 1);
      if (const auto* scan = find_naive_scan_operator(naive_call(none, *only_, 0).op()))
        return {scan_launch(*scan)};
    }
    std::vector<naive_launch> launches;
    for (size_t place = 0; place < graph_.outputs.size(); ++place)
      launches.push_back(output_launch(place));
    return launches;
  }

private:
  void check() const {
    if (graph_.outputs.empty() || graph_.outputs.size() != def_.outputs.size())
      throw no_template{fmt::format("the graph has {} outputs and the definition {}",
        graph_.outputs.size(), def_.outputs.size())};
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      const graph_value* what = find_value(graph_, graph_.outputs[i]);
      const tensor_spec& spec = def_.outputs[i];
      if (what == nullptr || spec.is_scalar || what->dtype != name(spec.type))
        throw no_template{
          fmt::format("output '{}' was traced as {}, which is not how it is declared", spec.name,
            what == nullptr ? "nothing" : what->dtype)};
    }
  }

  std::string entry_of(size_t place) const {
    const std::string op = only_ == nullptr ? "copy" : only_->op;
    return graph_.outputs.size() == 1 ? fmt::format("naive_{}", op)
                                      : fmt::format("naive_{}_{}", op, place);
  }

  static naive_launch finished(
    naive_writer& writer, const std::string& entry, const naive_size& elements) {
    naive_launch out;
    out.entry = entry;
    out.threads =
      writer.lanes() == 1 ? elements.plan : fmt::format("{} * {}", elements.plan, writer.lanes());
    out.source = fmt::format("extern \"C\" __global__ void {}({}) {{\n{}}}\n", entry,
      writer.declarations(), writer.body());
    out.arguments = writer.arguments();
    return out;
  }

  /// The lines that find the thread's place; false threads leave.
  static void begin(naive_writer& writer, const naive_size& elements) {
    const std::string thread = "(int64_t(blockIdx.x) * blockDim.x + threadIdx.x)";
    if (writer.lanes() == 1) {
      writer.line(fmt::format("const int64_t element = {};", thread));
    } else {
      writer.line(fmt::format("const int64_t element = {} / {};", thread, warp));
      writer.line(fmt::format("const int lane = threadIdx.x % {};", warp));
    }
    writer.line(fmt::format("if (element >= {})", writer.amount(elements)));
    writer.line("  return;");
  }

  naive_launch output_launch(size_t place) {
    const int64_t id = graph_.outputs[place];
    if (only_ != nullptr) {
      naive_writer trial(graph_, def_, sizes_, 1);
      const auto at = std::find(only_->outputs.begin(), only_->outputs.end(), id);
      const naive_call call(trial, *only_, static_cast<size_t>(at - only_->outputs.begin()));
      if (const auto* row = find_naive_row_operator(call.op());
          row != nullptr && at != only_->outputs.end() && !row->dims(call).empty())
        return row_launch(place, call.output, *row, row->dims(call));
    }
    return element_launch(place);
  }

  bool is_shared() {
    if (only_ == nullptr)
      return false;
    naive_writer trial(graph_, def_, sizes_, 1);
    const std::string op = naive_call(trial, *only_, 0).op();
    const auto* element = find_naive_operator(op);
    return element == nullptr || element->is_shared;
  }

  naive_launch element_launch(size_t place) {
    const int64_t id = graph_.outputs[place];
    const int lanes = is_shared() ? warp : 1;
    naive_writer writer(graph_, def_, sizes_, lanes);
    const naive_size elements = naive_product(sizes_.shape(id));
    begin(writer, elements);
    const naive_index index = writer.unravelled(writer.shape(id), "element");
    const std::string value = writer.read(id, index);
    if (lanes > 1)
      writer.line("if (lane == 0)");
    writer.line(fmt::format("{}{}[element] = {};", lanes > 1 ? "  " : "", writer.output(place),
      naive_stored(value, def_.outputs[place].type)));
    return finished(writer, entry_of(place), elements);
  }

  naive_launch row_launch(
    size_t place, size_t output, const naive_row_operator& row, const std::vector<size_t>& dims) {
    const int64_t id = graph_.outputs[place];
    naive_writer writer(graph_, def_, sizes_, warp);
    const naive_call call(writer, *only_, output);
    std::vector<naive_size> outer_sizes;
    std::vector<std::string> outer_shape;
    std::vector<std::string> inner_shape;
    const auto sizes = sizes_.shape(id);
    const auto is_inner = [&](size_t dim) {
      return std::find(dims.begin(), dims.end(), dim) != dims.end();
    };
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (!is_inner(i))
        outer_sizes.push_back(sizes[i]);
      (is_inner(i) ? inner_shape : outer_shape).push_back(writer.amount(sizes[i]));
    }
    const naive_size rows = naive_product(outer_sizes);
    begin(writer, rows);
    const naive_index outer = writer.unravelled(outer_shape, "element");
    naive_index index(sizes.size());
    for (size_t i = 0, next = 0; i < sizes.size(); ++i) {
      if (!is_inner(i))
        index[i] = outer[next++];
    }
    const auto names = row.prologue(call, index);
    std::string length = "int64_t(1)";
    for (const std::string& size : inner_shape)
      length = length == "int64_t(1)" ? size : fmt::format("{} * {}", length, size);
    const std::string number = writer.shared_loop(length);
    const naive_index inner = writer.unravelled(inner_shape, number);
    for (size_t i = 0, next = 0; i < sizes.size(); ++i) {
      if (is_inner(i))
        index[i] = inner[next++];
    }
    const std::string value =
      naive_rounded(row.element(call, names, index), writer.value(id).dtype);
    writer.line(fmt::format("{}[{}] = {};", writer.output(place),
      writer.linear(writer.shape(id), index), naive_stored(value, def_.outputs[place].type)));
    writer.close();
    return finished(writer, entry_of(place), rows);
  }

  naive_launch scan_launch(const naive_scan_operator& scan) {
    naive_writer writer(graph_, def_, sizes_, 1);
    const naive_call call(writer, *only_, 0);
    const int64_t from = call.tensor(0);
    std::vector<std::string> outputs(only_->outputs.size());
    for (size_t place = 0; place < graph_.outputs.size(); ++place) {
      const auto at =
        std::find(only_->outputs.begin(), only_->outputs.end(), graph_.outputs[place]);
      if (at == only_->outputs.end())
        call.refuse("is followed by something else, which a naive kernel does not join to it");
      outputs[static_cast<size_t>(at - only_->outputs.begin())] = writer.output(place);
    }
    const auto sizes = sizes_.shape(from);
    const size_t dim = scan.dim(call);
    std::vector<naive_size> outer_sizes;
    std::vector<std::string> outer_shape;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (i == dim && !scan.is_by_element)
        continue;
      outer_sizes.push_back(sizes[i]);
      outer_shape.push_back(writer.amount(sizes[i]));
    }
    const naive_size elements = naive_product(outer_sizes);
    begin(writer, elements);
    naive_index index = writer.unravelled(outer_shape, "element");
    if (!scan.is_by_element && !sizes.empty())
      index = inserted(index, dim, "");
    scan.write(call, index, outputs);
    return finished(writer, entry_of(0), elements);
  }

  const op_graph graph_;
  const definition& def_;
  naive_sizes sizes_;
  const graph_node* only_ = nullptr;
};

} // namespace

result<stage_space_ptr> read_naive_stage(const problem& target, const op_graph& graph) {
  try {
    return std::make_unique<naive_space>(naive_reader(graph, target.def).read());
  } catch (const no_template& refusal) {
    return fail(errc::unsupported, refusal.reason);
  } catch (const std::out_of_range&) {
    return fail(
      errc::unsupported, "an operator of the graph lacks arguments that its kernel needs");
  }
}

std::vector<std::string> naive_operator_names() {
  std::vector<std::string> names;
  for (const auto& [op, code] : naive_operators())
    names.push_back(op);
  for (const auto& [op, code] : naive_row_operators())
    names.push_back(op);
  for (const auto& [op, code] : naive_scan_operators())
    names.push_back(op);
  for (std::string_view op : naive_view_operators())
    names.emplace_back(op);
  std::sort(names.begin(), names.end());
  return names;
}

} // namespace gristmill
