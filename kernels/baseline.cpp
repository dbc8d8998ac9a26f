#include "kernels/baseline.hpp"

#include "kernels/addressing.hpp"
#include "kernels/expression_writer.hpp"
#include "kernels/families/gemm.hpp"
#include "kernels/fusion.hpp"
#include "kernels/kernel_signature.hpp"
#include "kernels/lowering/plain_program.hpp"
#include "kernels/plan_text.hpp"
#include "kernels/row_passes.hpp"
#include "kernels/vector_code.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <nlohmann/json.hpp>

// FROZEN. Every T_b rests on these texts: a change needs a new version name and a page in
// docs/decisions.
namespace gristmill {

namespace {

using json = nlohmann::ordered_json;

constexpr int block_threads = 256;
constexpr int warp_rows = block_threads / 32;

json plan_frame(const fused_kernel& kernel) {
  json plan = {{"schema", "gristmill.plan/1"}};
  if (!kernel.conditions.empty())
    plan["domain"] = fmt::format("{}", fmt::join(kernel.conditions, " and "));
  return plan;
}

std::string finished(json plan, json defines, json step) {
  json variant = json::object();
  if (!defines.empty())
    variant["defines"] = std::move(defines);
  variant["steps"] = json::array({std::move(step)});
  plan["variants"] = json::array({std::move(variant)});
  return plan.dump(2) + "\n";
}

std::string element_text(const ir_node& node, const std::string& at) {
  return node.is_bool ? at : fmt::format("float({})", at);
}

/// One thread an element.
baseline_kernel plain_elementwise(const fused_kernel& kernel, const definition& def) {
  kernel_signature signature(kernel, def);
  const auto groups = group_dims(kernel, 0, kernel.space.size());
  const std::string total = fmt::format("numel({})", qualified_name("out", def.outputs[0].name));
  const std::string count = signature.integer("total", total);
  std::string body =
    fmt::format("const index_t element = index_t(blockIdx.x) * {} + threadIdx.x;\nif "
                "(element >= index_t({}))\n  return;\n",
      block_threads, count);
  std::vector<std::string> indices(groups.size(), "element");
  std::string rest = "element";
  for (size_t g = groups.size(); groups.size() > 1 && g-- > 0;) {
    indices[g] = fmt::format("index{}", g);
    if (g == 0) {
      body += fmt::format("const index_t index0 = {};\n", rest);
      break;
    }
    const std::string size = signature.integer(fmt::format("size{}", g), groups[g].size);
    body +=
      fmt::format("const index_t index{0} = {1} % index_t({2});\nconst index_t rest{0} = {1} / "
                  "index_t({2});\n",
        g, rest, size);
    rest = fmt::format("rest{}", g);
  }
  expression_writer expressions(kernel, signature.scalar_names(), false);
  std::vector<int> roots;
  for (const ir_output& output : kernel.outputs)
    roots.push_back(output.node);
  std::string wide = total + " >= 2147483648";
  for (int leaf : expressions.undefined_leaves(roots)) {
    const ir_node& node = kernel.nodes[static_cast<size_t>(leaf)];
    const ir_load& load = kernel.loads[static_cast<size_t>(node.load)];
    const tensor_access access = access_of(load, kernel, def, groups);
    const std::string& tensor = signature.input_name(load.input);
    const std::string at =
      access.is_identity ? "element" : signature.address(access, tensor, indices, "index_t");
    expressions.define(leaf, element_text(node, fmt::format("{}[{}]", tensor, at)));
    const std::string is_long = fmt::format(" or numel({}) >= 2147483648",
      qualified_name("in", def.inputs[static_cast<size_t>(load.input)].name));
    if (wide.find(is_long) == std::string::npos)
      wide += is_long;
  }
  for (const auto& line : expressions.statements(roots, ir_level::element))
    body += line + "\n";
  for (const ir_output& output : kernel.outputs)
    body += fmt::format("{}[element] = {}({});\n", signature.output_name(output.output),
      element_type(output.type), expressions.text_of(output.node));
  baseline_kernel out;
  out.source = "// Plain kernel: one thread an element.\n" + include_lines(kernel)
    + macro_lines(def, {"WIDE"})
    + "\n#if WIDE\nusing index_t = uint64_t;\n#else\nusing index_t = uint32_t;\n#endif\n\n"
    + helper_functions(kernel, false) + "extern \"C\" __global__ void plain_elementwise("
    + signature.declarations() + ") {\n" + indented(body, 2) + "}\n";
  json step = {{"op", "launch"}, {"entry", "plain_elementwise"}};
  step["grid"] = {fmt::format("ceil_div({}, {})", total, block_threads), 1, 1};
  step["block"] = {block_threads, 1, 1};
  step["args"] = signature.plan_arguments();
  out.plan = finished(plan_frame(kernel), {{free_name(def, "WIDE"), wide}}, std::move(step));
  return out;
}

/// One warp a row, a walk over memory for each pass.
class plain_row_writer {
public:
  plain_row_writer(const fused_kernel& kernel, const definition& def)
    : kernel_(kernel), def_(def), signature_(kernel, def),
      groups_(group_dims(kernel, 0, kernel.space.size() - 1)),
      expressions_(kernel, signature_.scalar_names(), false) {
    const size_t last = kernel.space.size() - 1;
    std::vector<std::string> leading;
    for (size_t i = 0; i < last; ++i)
      leading.push_back(kernel.space[i].size);
    rows_text_ = product_text(leading);
    groups_.push_back({last, last, kernel.space[last].size});
    rows_ = signature_.integer("rows", rows_text_, "int32_t");
    cols_ = signature_.integer("cols", kernel.space[last].size, "int32_t");
  }

  baseline_kernel write() {
    std::string body =
      fmt::format("const int lane = threadIdx.x % 32;\nconst int row = blockIdx.x * {} + "
                  "threadIdx.x / 32;\nif (row >= {})\n  return;\n",
        warp_rows, rows_);
    body += row_indices();
    body += row_values();
    for (const row_pass& pass : passes_of(kernel_, false))
      body += one_pass(pass);
    body += row_outputs();
    baseline_kernel out;
    out.source = "// Plain kernel: one warp a row, which it reads once a pass.\n"
      + include_lines(kernel_) + "\n" + helper_functions(kernel_, false)
      + "extern \"C\" __global__ void plain_rows(" + signature_.declarations() + ") {\n"
      + indented(body, 2) + "}\n";
    json step = {{"op", "launch"}, {"entry", "plain_rows"}};
    step["grid"] = {fmt::format("ceil_div({}, {})", rows_text_, warp_rows), 1, 1};
    step["block"] = {block_threads, 1, 1};
    step["args"] = signature_.plan_arguments();
    out.plan = finished(plan_frame(kernel_), json::object(), std::move(step));
    return out;
  }

private:
  std::string row_indices() {
    std::string text;
    const size_t leading = groups_.size() - 1;
    indices_.assign(groups_.size(), "int64_t(column)");
    std::string rest = "row";
    for (size_t g = leading; g-- > 0;) {
      indices_[g] = fmt::format("int64_t(index{})", g);
      if (g == 0) {
        text += fmt::format("const int index0 = {};\n", rest);
        break;
      }
      const std::string size =
        signature_.integer(fmt::format("size{}", g), groups_[g].size, "int32_t");
      text += fmt::format(
        "const int index{0} = {1} % {2};\nconst int rest{0} = {1} / {2};\n", g, rest, size);
      rest = fmt::format("rest{}", g);
    }
    return text;
  }

  /// Loads and lengths that are the same along the row; addresses of the others.
  std::string row_values() {
    std::string text;
    for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
      const ir_node& node = kernel_.nodes[i];
      const auto index = static_cast<int>(i);
      if (node.op == ir_op::row_length)
        expressions_.define(index, fmt::format("float({})", cols_));
      if (node.op != ir_op::load)
        continue;
      const ir_load& load = kernel_.loads[static_cast<size_t>(node.load)];
      const tensor_access access = access_of(load, kernel_, def_, groups_);
      const std::string& tensor = signature_.input_name(load.input);
      addresses_[index] = fmt::format("{}[{}]", tensor,
        access.is_identity ? fmt::format("int64_t(row) * {} + column", cols_)
                           : signature_.address(access, tensor, indices_, "int64_t"));
      if (load.uses_last)
        continue;
      text += fmt::format("const {} v{} = {};\n", node.is_bool ? "bool" : "float", i,
        element_text(node, addresses_[index]));
      expressions_.define(index, fmt::format("v{}", i));
    }
    return text;
  }

  std::string one_pass(const row_pass& pass) {
    const std::vector<int> roots = roots_of(kernel_, pass);
    std::string text;
    for (const auto& line : expressions_.statements(roots, ir_level::row))
      text += line + "\n";
    for (int reduction : pass.reductions)
      text += fmt::format("float r{} = {};\n", reduction, neutral(reduction));
    expression_writer inner = expressions_;
    for (int leaf : inner.undefined_leaves(roots))
      inner.define(leaf, element_text(kernel_.nodes[static_cast<size_t>(leaf)], addresses_[leaf]));
    std::string work;
    for (const auto& line : inner.statements(roots, ir_level::element))
      work += line + "\n";
    for (int reduction : pass.reductions)
      work +=
        combined(reduction, inner.text_of(kernel_.nodes[static_cast<size_t>(reduction)].args[0]));
    for (int index : pass.outputs) {
      const ir_output& output = kernel_.outputs[static_cast<size_t>(index)];
      work += fmt::format("{}[int64_t(row) * {} + column] = {}({});\n",
        signature_.output_name(output.output), cols_, element_type(output.type),
        inner.text_of(output.node));
    }
    text += fmt::format("for (int column = lane; column < {}; column += 32) {{\n", cols_)
      + indented(work, 2) + "}\n";
    for (int reduction : pass.reductions) {
      text += "for (int distance = 16; distance > 0; distance /= 2)\n  "
        + combined(
          reduction, fmt::format("__shfl_xor_sync(0xffffffffu, r{}, distance)", reduction));
      expressions_.define(reduction, fmt::format("r{}", reduction));
    }
    return text;
  }

  std::string row_outputs() {
    std::string text;
    for (const ir_output& output : kernel_.outputs) {
      if (!output.is_per_row)
        continue;
      for (const auto& line : expressions_.statements({output.node}, ir_level::row))
        text += line + "\n";
      text +=
        fmt::format("if (lane == 0)\n  {}[row] = {}({});\n", signature_.output_name(output.output),
          element_type(output.type), expressions_.text_of(output.node));
    }
    return text;
  }

  std::string_view neutral(int reduction) const {
    switch (kernel_.nodes[static_cast<size_t>(reduction)].reduction) {
    case reduction_kind::maximum:
      return "-INFINITY";
    case reduction_kind::minimum:
      return "INFINITY";
    case reduction_kind::sum:
      break;
    }
    return "0.0f";
  }

  std::string combined(int reduction, const std::string& value) const {
    switch (kernel_.nodes[static_cast<size_t>(reduction)].reduction) {
    case reduction_kind::maximum:
      return fmt::format("r{0} = fmaxf(r{0}, {1});\n", reduction, value);
    case reduction_kind::minimum:
      return fmt::format("r{0} = fminf(r{0}, {1});\n", reduction, value);
    case reduction_kind::sum:
      break;
    }
    return fmt::format("r{} += {};\n", reduction, value);
  }

  const fused_kernel& kernel_;
  const definition& def_;
  kernel_signature signature_;
  std::vector<dim_group> groups_;
  expression_writer expressions_;
  std::string rows_text_;
  std::string rows_;
  std::string cols_;
  std::vector<std::string> indices_;
  std::map<int, std::string> addresses_;
};

} // namespace

result<baseline_kernel> plain_baseline(const op_graph& graph, const definition& def) {
  const auto kernel = fuse(graph, def);
  if (!kernel)
    return pass(kernel);
  if (kernel->family == template_family::elementwise)
    return plain_elementwise(*kernel, def);
  return plain_row_writer(*kernel, def).write();
}

result<baseline_kernel> plain_baseline(const problem& target, const op_graph& graph) {
  auto one = plain_baseline(graph, target.def);
  if (one)
    return one;
  const auto frozen = [](const problem& stage, const op_graph& part) -> result<generated_kernel> {
    // A product of matrices is a tile kernel in eager execution, too.
    if (auto product = plain_product(stage, part))
      return product;
    auto kernel = plain_baseline(part, stage.def);
    if (!kernel)
      return pass(kernel);
    return generated_kernel{std::move(kernel->source), std::move(kernel->plan)};
  };
  auto many = plain_program(target, graph, frozen);
  if (!many)
    return pass(many);
  return baseline_kernel{std::move(many->source), std::move(many->plan), "plain/2"};
}

} // namespace gristmill
