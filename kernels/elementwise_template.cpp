#include "kernels/elementwise_template.hpp"

#include "kernels/addressing.hpp"
#include "kernels/expression_writer.hpp"
#include "kernels/kernel_signature.hpp"
#include "kernels/plan_text.hpp"
#include "kernels/vector_code.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace gristmill {

namespace {

using json = nlohmann::ordered_json;

/// How the elements of a load come to a thread.
enum class load_form : uint8_t {
  /// Side by side: one vector.
  vector,
  /// The same for all elements of a vector.
  one,
  /// Apart: as many reads as elements.
  gather,
};

struct planned_load {
  tensor_access access;
  load_form form = load_form::vector;
  /// Name of the local array.
  std::string local;
  std::string tensor;
};

class elementwise_writer {
public:
  elementwise_writer(const fused_kernel& kernel, const definition& def, const template_point& point)
    : kernel_(kernel), def_(def), point_(point), signature_(kernel, def),
      groups_(group_dims(kernel, 0, kernel.space.size())) {
    for (const ir_load& load : kernel.loads) {
      planned_load planned;
      planned.access = access_of(load, kernel, def, groups_);
      planned.tensor = signature_.input_name(load.input);
      planned.local = signature_.fresh(planned.tensor + "_v");
      planned.form = planned.access.is_identity || planned.access.is_contiguous()
        ? load_form::vector
        : planned.access.is_uniform() ? load_form::one
                                      : load_form::gather;
      loads_.push_back(std::move(planned));
    }
  }

  std::vector<std::string> vector_conditions(const std::string& width) const {
    // With one group for everything, vectors run over the flat index and the rest is a tail.
    if (groups_.size() < 2)
      return {};
    const std::string& inner = groups_.back().size;
    std::vector<std::string> conditions{fmt::format("{} % {} == 0", inner, width)};
    for (const planned_load& load : loads_) {
      if (load.form != load_form::vector || load.access.is_identity)
        continue;
      for (auto& condition : alignment_conditions(load.access, width)) {
        if (std::find(conditions.begin(), conditions.end(), condition) == conditions.end())
          conditions.push_back(std::move(condition));
      }
    }
    return conditions;
  }

  generated_kernel write() {
    const std::string body = run_function();
    generated_kernel out;
    out.source = header() + include_lines(kernel_) + macro_lines(def_, {"VEC", "WIDE"}) + "\n"
      + constants() + vector_code(point_.streaming) + "\n" + rounding_code(kernel_.outputs) + "\n"
      + helper_functions(kernel_, point_.fast) + body + entry();
    out.plan = plan();
    return out;
  }

private:
  std::string header() const {
    return fmt::format(
      "// One fused elementwise kernel: {} threads a block, {} vectors of VEC elements a "
      "thread.\n// VEC and WIDE (64-bit indices) come from the launch plan.\n",
      point_.threads, point_.unroll);
  }

  std::string constants() const {
    return fmt::format("constexpr int threads = {};\nconstexpr int unroll = {};\n\n#if WIDE\nusing "
                       "index_t = uint64_t;\n#else\nusing index_t = uint32_t;\n#endif\n\n",
      point_.threads, point_.unroll);
  }

  bool needs_group_indices() const {
    if (groups_.size() < 2)
      return false;
    for (const planned_load& load : loads_) {
      if (!load.access.is_identity)
        return true;
    }
    return false;
  }

  /// Statements that take the flat index `element` apart.
  std::string group_indices() {
    if (!needs_group_indices())
      return {};
    std::string text;
    std::string rest = "element";
    for (size_t g = groups_.size(); g-- > 1;) {
      const std::string size =
        fmt::format("index_t({})", signature_.integer(fmt::format("size{}", g), groups_[g].size));
      text += fmt::format("const index_t index{} = {} % {};\n", g, rest, size);
      const std::string next = g == 1 ? "index0" : fmt::format("rest{}", g);
      text += fmt::format("const index_t {} = {} / {};\n", next, rest, size);
      rest = next;
    }
    return text;
  }

  /// Element index of a load at the vector's first element.
  std::string address(const planned_load& load) {
    if (load.access.is_identity)
      return "element";
    std::vector<std::string> indices;
    for (size_t g = 0; g < groups_.size(); ++g)
      indices.push_back(groups_.size() == 1 ? "element" : fmt::format("index{}", g));
    return signature_.address(load.access, load.tensor, indices, "index_t");
  }

  std::string_view type_of(size_t load) const { return element_type(kernel_.loads[load].type); }

  /// The two halves of the work on one tile: read everything, then compute and write.
  std::string run_function() {
    std::string locals;
    std::string reads = group_indices();
    for (size_t i = 0; i < loads_.size(); ++i) {
      const planned_load& load = loads_[i];
      const std::string at = address(load);
      if (load.form == load_form::one) {
        locals += fmt::format("{} {}[U];\n", type_of(i), load.local);
        reads += fmt::format("{}[u] = {}[{}];\n", load.local, load.tensor, at);
        continue;
      }
      locals += fmt::format("packed<{}, N> {}[U];\n", type_of(i), load.local);
      if (load.form == load_form::vector) {
        reads += fmt::format("{}[u].{}({} + {});\n", load.local,
          point_.streaming && load.access.is_identity ? "load_once" : "load", load.tensor, at);
      } else {
        const std::string stride = signature_.integer(
          fmt::format("{}_stride{}", load.tensor, groups_.size() - 1), load.access.strides.back());
        reads += fmt::format("#pragma unroll\nfor (int i = 0; i < N; ++i)\n  {}[u].values[i] = "
                             "{}[{} + i * index_t({})];\n",
          load.local, load.tensor, at, stride);
      }
    }
    std::string writes;
    for (const ir_output& output : kernel_.outputs)
      writes += fmt::format("packed<{}, N> {}_v;\n{} {}_f[N];\n", element_type(output.type),
        signature_.output_name(output.output), output.type == dtype::boolean ? "bool" : "float",
        signature_.output_name(output.output));
    writes += "#pragma unroll\nfor (int i = 0; i < N; ++i) {\n" + indented(arithmetic(), 2) + "}\n";
    for (const ir_output& output : kernel_.outputs) {
      const std::string& name = signature_.output_name(output.output);
      writes += fmt::format("round_into({0}_v, {0}_f);\n{0}_v.{1}({0} + element);\n", name,
        point_.streaming ? "store_once" : "store");
    }
    const std::string loop = "#pragma unroll\n  for (int u = 0; u < U; ++u) {\n    const index_t "
                             "vector = first + u * threads;\n";
    run_arguments_ = signature_.names();
    std::string text =
      "// U vectors of N elements, one every `threads`; vectors from `count` on do not exist.\n"
      "template <int N, int U>\n__device__ __forceinline__ void run(index_t first, index_t count, "
      + signature_.declarations() + ") {\n" + indented(locals, 2) + loop
      + "    if (vector < count) {\n      const index_t element = vector * N;\n"
      + indented(reads, 6) + "    }\n  }\n" + loop
      + "    if (vector < count) {\n      const index_t element = vector * N;\n"
      + indented(writes, 6) + "    }\n  }\n}\n\n";
    return text;
  }

  std::string arithmetic() {
    expression_writer expressions(kernel_, signature_.scalar_names(), point_.fast);
    std::vector<int> roots;
    for (const ir_output& output : kernel_.outputs)
      roots.push_back(output.node);
    for (int leaf : expressions.undefined_leaves(roots)) {
      const ir_node& node = kernel_.nodes[static_cast<size_t>(leaf)];
      const planned_load& load = loads_[static_cast<size_t>(node.load)];
      const std::string element = load.form == load_form::one
        ? fmt::format("{}[u]", load.local)
        : fmt::format("{}[u].values[i]", load.local);
      expressions.define(leaf, node.is_bool ? element : fmt::format("float({})", element));
    }
    std::string text;
    for (const auto& line : expressions.statements(roots, ir_level::element))
      text += line + "\n";
    for (const ir_output& output : kernel_.outputs)
      text += fmt::format(
        "{}_f[i] = {};\n", signature_.output_name(output.output), expressions.text_of(output.node));
    return text;
  }

  std::string entry() {
    const std::string total = signature_.integer("total", total_expression());
    std::string text = fmt::format("extern \"C\" __global__ void __launch_bounds__(threads)\n"
                                   "fused_elementwise({}) {{\n",
      signature_.declarations());
    text += fmt::format("  const index_t count = index_t({}) / VEC;\n  run<VEC, "
                        "unroll>(index_t(blockIdx.x) * (threads * "
                        "unroll) + threadIdx.x, count, {});\n",
      total, run_arguments_);
    if (groups_.size() < 2 && point_.width > 1) {
      text +=
        fmt::format("  // Fewer than VEC elements may be left over.\n  if (blockIdx.x == 0)\n    "
                    "run<1, 1>(count * VEC + threadIdx.x, index_t({}), {});\n",
          total, run_arguments_);
    }
    return text + "}\n";
  }

  std::string total_expression() const {
    return fmt::format("numel({})", qualified_name("out", def_.outputs.front().name));
  }

  std::string wide_expression() const {
    std::vector<std::string> parts{total_expression() + " >= 2147483648"};
    for (const ir_load& load : kernel_.loads) {
      const auto part = fmt::format("numel({}) >= 2147483648",
        qualified_name("in", def_.inputs[static_cast<size_t>(load.input)].name));
      if (std::find(parts.begin(), parts.end(), part) == parts.end())
        parts.push_back(part);
    }
    return fmt::format("{}", fmt::join(parts, " or "));
  }

  json variant(const std::string& name, const std::string& when, int width) const {
    json step = {{"op", "launch"}, {"entry", "fused_elementwise"}};
    step["grid"] = {
      fmt::format("ceil_div({}, {})", total_expression(), width * point_.threads * point_.unroll),
      1, 1};
    step["block"] = {point_.threads, 1, 1};
    step["args"] = signature_.plan_arguments();
    json out = {{"name", name}};
    if (!when.empty())
      out["when"] = when;
    out["defines"] = {
      {free_name(def_, "VEC"), width}, {free_name(def_, "WIDE"), wide_expression()}};
    out["steps"] = json::array({step});
    return out;
  }

  std::string plan() const {
    json document = {{"schema", "gristmill.plan/1"}};
    if (!kernel_.conditions.empty())
      document["domain"] = fmt::format("{}", fmt::join(kernel_.conditions, " and "));
    document["variants"] = json::array();
    if (point_.width > 1) {
      const auto conditions = vector_conditions(fmt::format("{}", point_.width));
      document["variants"].push_back(
        variant("vectors", fmt::format("{}", fmt::join(conditions, " and ")), point_.width));
      if (!conditions.empty())
        document["variants"].push_back(variant("scalar", "", 1));
    } else {
      document["variants"].push_back(variant("scalar", "", 1));
    }
    return document.dump(2) + "\n";
  }

  const fused_kernel& kernel_;
  const definition& def_;
  const template_point& point_;
  kernel_signature signature_;
  std::vector<dim_group> groups_;
  std::vector<planned_load> loads_;
  std::string run_arguments_;
};

} // namespace

generated_kernel elementwise_kernel(
  const fused_kernel& kernel, const definition& def, const template_point& point) {
  return elementwise_writer(kernel, def, point).write();
}

std::vector<std::string> elementwise_vector_conditions(
  const fused_kernel& kernel, const definition& def, int width) {
  const template_point point{.width = width};
  return elementwise_writer(kernel, def, point).vector_conditions(fmt::format("{}", width));
}

} // namespace gristmill
