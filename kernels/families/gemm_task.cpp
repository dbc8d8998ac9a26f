#include "kernels/families/gemm_task.hpp"

#include "kernels/expression_writer.hpp"
#include "kernels/plan_text.hpp"
#include "kernels/vector_code.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tuple>

namespace gristmill {

namespace {

std::string as_float(dtype type, const std::string& raw) {
  switch (type) {
  case dtype::bfloat16:
    return fmt::format("__bfloat162float({})", raw);
  case dtype::float16:
    return fmt::format("__half2float({})", raw);
  default:
    return raw;
  }
}

std::string from_float(dtype type, const std::string& number) {
  switch (type) {
  case dtype::bfloat16:
    return fmt::format("__float2bfloat16_rn({})", number);
  case dtype::float16:
    return fmt::format("__float2half_rn({})", number);
  default:
    return number;
  }
}

std::string line(int indent, const std::string& text) {
  return std::string(static_cast<size_t>(indent), ' ') + text + "\n";
}

} // namespace

bool vector_rule::fits(int width, const axis_values& axes) const {
  return width == 1
    || (width <= widest
      && std::all_of(multiples.begin(), multiples.end(),
        [&](const size_product& size) { return size.at(axes) % width == 0; }));
}

bool vector_rule::always_fits(int width) const {
  return width == 1
    || (width <= widest
      && std::all_of(multiples.begin(), multiples.end(),
        [&](const size_product& size) { return size.number % width == 0; }));
}

std::vector<std::string> vector_rule::conditions(int width) const {
  std::vector<std::string> list;
  if (width == 1)
    return list;
  for (const size_product& size : multiples) {
    std::string text = fmt::format("{} % {} == 0", size.text(), width);
    if (size.number % width != 0 && std::find(list.begin(), list.end(), text) == list.end())
      list.push_back(std::move(text));
  }
  return list;
}

gemm_task::gemm_task(
  const contraction& what, const definition& def, bool is_wide, bool has_partial, bool many_is_left)
  : what_(what), def_(def), is_wide_(is_wide), has_partial_(has_partial),
    identifiers_(cpp_identifiers(def)), scalar_names_(def.inputs.size()) {
  for (size_t i = 0; i < identifiers_.size(); ++i)
    identifiers_[i] = (i < def.inputs.size() ? "in_" : "out_") + identifiers_[i];
  for (size_t i = 0; i < def.inputs.size(); ++i)
    scalar_names_[i] = "s_" + identifiers_[i];
  left_ = read_side(what.left, "left", index_group::row);
  right_ = read_side(what.right, "right", index_group::column);
  std::vector<size_product> multiples{what.size(index_group::column)};
  output_rule_.widest = 4;
  std::vector<int> roots;
  for (const ir_output& output : what.values.outputs)
    roots.push_back(output.node);
  for (int node : needed_nodes(what.values, roots)) {
    const ir_node& one = what.values.nodes[static_cast<size_t>(node)];
    if (one.op == ir_op::load
      && what.layouts[static_cast<size_t>(one.load)].is_contiguous(index_group::column))
      add_multiples(what.layouts[static_cast<size_t>(one.load)], index_group::column, multiples);
  }
  for (const index_layout& layout : what.output_layouts) {
    if (layout.is_contiguous(index_group::column))
      add_multiples(layout, index_group::column, multiples);
  }
  output_rule_.multiples = std::move(multiples);
  std::string members =
    side_code(left_) + side_code(right_) + finish_code() + orientation_code(many_is_left);
  const auto size_function = [&](std::string_view name, index_group group) {
    members += line(2,
      fmt::format("__device__ __forceinline__ index_t {}() const {{ return {}; }}", name,
        size_code(what_.size(group))));
  };
  size_function("batches", index_group::batch);
  size_function("rows", index_group::row);
  size_function("columns", index_group::column);
  size_function("depth", index_group::depth);
  body_ = std::move(members);
}

bool gemm_task::can_use_tensor_cores() const {
  return what_.left.type == what_.right.type && what_.left.type != dtype::float32;
}

void gemm_task::add_multiples(
  const index_layout& layout, index_group along, std::vector<size_product>& multiples) const {
  multiples.push_back(layout.of(along).back().size);
  for (size_t g = 0; g < index_groups; ++g) {
    const auto& segments = layout.groups[g];
    for (size_t i = 0; i < segments.size(); ++i) {
      const bool is_vector = g == static_cast<size_t>(along) && i + 1 == segments.size();
      if (!is_vector && !segments[i].stride.is(0))
        multiples.push_back(segments[i].stride);
    }
  }
  multiples.insert(multiples.end(), layout.base.begin(), layout.base.end());
}

vector_rule gemm_task::rule_of(const std::vector<int>& loads, index_group along) const {
  vector_rule rule;
  int bytes = 0;
  for (int load : loads) {
    const index_layout& layout = what_.layouts[static_cast<size_t>(load)];
    if (layout.of(along).empty())
      continue;
    if (!layout.is_contiguous(along) || !layout.before.empty())
      return {};
    bytes = std::max(bytes, element_bytes(what_.values.loads[static_cast<size_t>(load)].type));
    add_multiples(layout, along, rule.multiples);
  }
  rule.widest = bytes == 0 ? 1 : bytes <= 2 ? 8 : 4;
  return rule;
}

gemm_task::side gemm_task::read_side(
  const contraction_operand& operand, std::string name, index_group outer) const {
  side which;
  which.operand = &operand;
  which.name = std::move(name);
  which.outer = outer;
  for (int node : needed_nodes(what_.values, {operand.node})) {
    const ir_node& one = what_.values.nodes[static_cast<size_t>(node)];
    if (one.op == ir_op::load)
      which.loads.push_back(one.load);
  }
  const bool has_windows = !operand.windows.empty();
  const vector_rule by_depth = rule_of(which.loads, index_group::depth);
  const vector_rule by_outer = rule_of(which.loads, outer);
  // A vector that fits no known size is none.
  const auto useful = [&](const vector_rule& rule) {
    return !has_windows && rule.widest > 1
      && std::none_of(rule.multiples.begin(), rule.multiples.end(),
        [](const size_product& size) { return size.is_known() && size.number % 2 != 0; });
  };
  if (useful(by_depth)) {
    which.rule = by_depth;
  } else if (useful(by_outer)) {
    which.rule = by_outer;
    which.along_depth = false;
  } else {
    // One by one: neighbouring threads at least should read neighbours.
    which.along_depth = std::none_of(which.loads.begin(), which.loads.end(), [&](int load) {
      const auto& segments = what_.layouts[static_cast<size_t>(load)].of(outer);
      return !segments.empty() && segments.back().stride.is_known()
        && segments.back().stride.number <= 4;
    });
    if (by_depth.widest > 1)
      which.along_depth = true;
  }
  return which;
}

std::string gemm_task::size_code(const size_product& size) {
  if (size.is_known())
    return fmt::format("{}{}", size.number, size.number < (int64_t{1} << 31) ? "u" : "ull");
  const std::string text = size.text();
  for (const auto& [expression, name] : sizes_) {
    if (expression == text)
      return name;
  }
  sizes_.emplace_back(text, fmt::format("n{}", sizes_.size()));
  return sizes_.back().second;
}

std::string gemm_task::digits(
  const std::vector<index_segment>& segments, const std::string& index) {
  std::string text;
  size_product inner;
  std::vector<std::string> terms;
  for (size_t i = segments.size(); i-- > 0;) {
    const index_segment& one = segments[i];
    if (!one.stride.is(0)) {
      std::string digit = inner.is(1) ? index : fmt::format("{} / {}", index, size_code(inner));
      if (i > 0)
        digit =
          fmt::format("{} % {}", inner.is(1) ? digit : "(" + digit + ")", size_code(one.size));
      const bool is_simple = digit == index;
      terms.push_back(one.stride.is(1)
          ? (is_simple ? digit : "(" + digit + ")")
          : fmt::format("{} * {}", is_simple ? digit : "(" + digit + ")", size_code(one.stride)));
    }
    inner = inner * one.size;
  }
  std::reverse(terms.begin(), terms.end());
  return fmt::format("{}", fmt::join(terms, " + "));
}

std::string gemm_task::part(
  const index_layout& layout, index_group group, const std::string& index) {
  return digits(layout.of(group), index);
}

std::string gemm_task::base(const index_layout& layout) {
  std::string text;
  for (const auto& term : layout.base)
    text += " + " + size_code(term);
  for (const auto& term : layout.before)
    text += " - " + size_code(term);
  return text;
}

std::string gemm_task::load_text(size_t load, const std::string& raw) const {
  return as_float(what_.values.loads[load].type, raw);
}

std::string gemm_task::input_of(size_t load) const {
  return identifiers_[static_cast<size_t>(what_.values.loads[load].input)];
}

std::string gemm_task::side_code(const side& which) {
  const auto& windows = which.operand->windows;
  const index_group along = which.along_depth ? index_group::depth : which.outer;
  std::string code;
  code += line(2,
    fmt::format("// The {} operand: vectors run along the {}.", which.name,
      which.along_depth                   ? "depth"
        : which.outer == index_group::row ? "rows"
                                          : "columns"));
  code += line(
    2, fmt::format("static constexpr bool {}_along_depth = {};", which.name, which.along_depth));
  const bool is_plain = which.operand->plain_load >= 0 && windows.empty();
  code += line(2, fmt::format("static constexpr bool {}_is_plain = {};", which.name, is_plain));
  // What a row or a column alone decides of the addresses.
  code += line(2, fmt::format("struct {}_place {{", which.name));
  for (size_t i = 0; i < which.loads.size(); ++i)
    code += line(4, fmt::format("index_t start{};", i));
  for (size_t i = 0; i < windows.size(); ++i)
    code += line(4, fmt::format("index_t window{};", i));
  code += line(2, "};");
  code += line(2,
    fmt::format(
      "__device__ __forceinline__ {0}_place {0}_at(index_t batch, index_t outer) const {{",
      which.name));
  code += line(4, fmt::format("{}_place at;", which.name));
  const auto outer_sum = [&](const index_layout& layout) {
    std::string sum = "index_t(0)";
    for (const auto& [group, index] :
      {std::pair{index_group::batch, "batch"}, std::pair{which.outer, "outer"}}) {
      if (const std::string text = part(layout, group, index); !text.empty())
        sum += " + " + text;
    }
    return sum + base(layout);
  };
  for (size_t i = 0; i < which.loads.size(); ++i)
    code += line(4,
      fmt::format(
        "at.start{} = {};", i, outer_sum(what_.layouts[static_cast<size_t>(which.loads[i])])));
  for (size_t i = 0; i < windows.size(); ++i)
    code += line(4, fmt::format("at.window{} = {};", i, outer_sum(windows[i].place)));
  code += line(4, "return at;");
  code += line(2, "}");
  const auto address = [&](size_t i) {
    const std::string inner =
      part(what_.layouts[static_cast<size_t>(which.loads[i])], index_group::depth, "k");
    return fmt::format("{} + (at.start{}{})", input_of(static_cast<size_t>(which.loads[i])), i,
      inner.empty() ? "" : " + " + inner);
  };
  code += line(2, "template <int V>");
  code += line(2,
    fmt::format("__device__ __forceinline__ void load_{0}(const {0}_place& at, index_t "
                "k, float (&to)[V]) const {{",
      which.name));
  if (!windows.empty()) {
    std::vector<std::string> inside;
    for (size_t i = 0; i < windows.size(); ++i) {
      const std::string inner = part(windows[i].place, index_group::depth, "k");
      inside.push_back(fmt::format("index_t(at.window{}{}) < {}", i,
        inner.empty() ? "" : " + " + inner, size_code(windows[i].length)));
    }
    code += line(4, "// The padding is zero.");
    code += line(4, fmt::format("if (!({})) {{", fmt::join(inside, " && ")));
    code += line(6, "to[0] = 0.0f;");
    code += line(6, "return;");
    code += line(4, "}");
  }
  expression_writer writer(what_.values, scalar_names_, false);
  for (size_t i = 0; i < which.loads.size(); ++i) {
    const auto load = static_cast<size_t>(which.loads[i]);
    const std::string type{element_type(what_.values.loads[load].type)};
    std::string raw;
    if (what_.layouts[load].is_contiguous(along) && which.rule.widest > 1) {
      code += line(4, fmt::format("packed<{}, V> x{};", type, i));
      code += line(4, fmt::format("x{}.load({});", i, address(i)));
      raw = fmt::format("x{}.values[e]", i);
    } else {
      code += line(4, fmt::format("const {} x{} = *({});", type, i, address(i)));
      raw = fmt::format("x{}", i);
    }
    for (size_t n = 0; n < what_.values.nodes.size(); ++n) {
      const ir_node& node = what_.values.nodes[n];
      if (node.op == ir_op::load && static_cast<size_t>(node.load) == load)
        writer.define(static_cast<int>(n), load_text(load, raw));
    }
  }
  code += "#pragma unroll\n";
  code += line(4, "for (int e = 0; e < V; ++e) {");
  for (const auto& statement : writer.statements({which.operand->node}, ir_level::element))
    code += line(6, statement);
  code += line(6, fmt::format("to[e] = {};", writer.text_of(which.operand->node)));
  code += line(4, "}");
  code += line(2, "}");
  if (!can_use_tensor_cores())
    return code;
  if (is_plain) {
    code += line(2,
      fmt::format("__device__ __forceinline__ const unsigned short* {0}_address(const "
                  "{0}_place& at, index_t k) const {{",
        which.name));
    code += line(4, fmt::format("return reinterpret_cast<const unsigned short*>({});", address(0)));
    code += line(2, "}");
  }
  code += line(2, "template <int V>");
  code += line(2,
    fmt::format("__device__ __forceinline__ void load_{0}_bits(const {0}_place& at, "
                "index_t k, packed<unsigned short, V>& to) const {{",
      which.name));
  if (is_plain && which.rule.widest > 1) {
    code += line(4, fmt::format("to.load({}_address(at, k));", which.name));
  } else {
    code += line(4, "float numbers[V];");
    code += line(4, fmt::format("load_{}<V>(at, k, numbers);", which.name));
    code += "#pragma unroll\n";
    code += line(4, "for (int e = 0; e < V; ++e)");
    const std::string bits = which.operand->type == dtype::bfloat16
      ? "__bfloat16_as_ushort(__float2bfloat16_rn(numbers[e]))"
      : "__half_as_ushort(__float2half_rn(numbers[e]))";
    code += line(6, fmt::format("to.values[e] = {};", bits));
  }
  code += line(2, "}");
  return code;
}

std::string gemm_task::finish_code() {
  std::string code;
  code += line(2, "// What follows the sum of products, for W neighbouring columns.");
  code += line(2, "template <int W>");
  code += line(2,
    "__device__ __forceinline__ void finish(index_t batch, index_t row, index_t "
    "column, const float (&sum)[W]) const {");
  const auto start_of = [&](const index_layout& layout) {
    std::string sum = "index_t(0)";
    for (const auto& [group, index] :
      {std::pair{index_group::batch, "batch"}, std::pair{index_group::row, "row"}}) {
      if (const std::string text = part(layout, group, index); !text.empty())
        sum += " + " + text;
    }
    return sum + base(layout);
  };
  const auto element = [&](const index_layout& layout, const std::string& start,
                         const std::string& column) {
    const std::string inner = part(layout, index_group::column, column);
    return inner.empty() ? start : start + " + " + inner;
  };
  expression_writer writer(what_.values, scalar_names_, false);
  std::vector<int> roots;
  for (const ir_output& output : what_.values.outputs)
    roots.push_back(output.node);
  std::string inner_lines;
  for (int index : needed_nodes(what_.values, roots)) {
    const ir_node& node = what_.values.nodes[static_cast<size_t>(index)];
    if (node.op == ir_op::given)
      writer.define(index, "sum[e]");
    if (node.op != ir_op::load)
      continue;
    const auto load = static_cast<size_t>(node.load);
    const index_layout& layout = what_.layouts[load];
    const std::string type{element_type(what_.values.loads[load].type)};
    code += line(4, fmt::format("const index_t at{} = {};", load, start_of(layout)));
    const std::string at = fmt::format("at{}", load);
    if (layout.is_contiguous(index_group::column)) {
      code += line(4, fmt::format("packed<{}, W> x{};", type, load));
      code += line(4,
        fmt::format("x{}.load({} + ({}));", load, input_of(load), element(layout, at, "column")));
      writer.define(index, load_text(load, fmt::format("x{}.values[e]", load)));
    } else if (layout.of(index_group::column).empty()) {
      code += line(4, fmt::format("const {} x{} = {}[{}];", type, load, input_of(load), at));
      writer.define(index, load_text(load, fmt::format("x{}", load)));
    } else {
      inner_lines += line(6,
        fmt::format("const {} x{} = {}[{}];", type, load, input_of(load),
          element(layout, at, "(column + e)")));
      writer.define(index, load_text(load, fmt::format("x{}", load)));
    }
  }
  std::string stores;
  std::string after;
  std::string statements;
  for (const auto& statement : writer.statements(roots, ir_level::element))
    statements += line(6, statement);
  for (size_t i = 0; i < what_.values.outputs.size(); ++i) {
    const ir_output& output = what_.values.outputs[i];
    const index_layout& layout = what_.output_layouts[i];
    const std::string& pointer =
      identifiers_[def_.inputs.size() + static_cast<size_t>(output.output)];
    const std::string number = from_float(output.type, writer.text_of(output.node));
    code += line(4, fmt::format("const index_t to{} = {};", i, start_of(layout)));
    const std::string to = fmt::format("to{}", i);
    if (layout.is_contiguous(index_group::column)) {
      code += line(4, fmt::format("packed<{}, W> y{};", element_type(output.type), i));
      stores += line(6, fmt::format("y{}.values[e] = {};", i, number));
      after +=
        line(4, fmt::format("y{}.store({} + ({}));", i, pointer, element(layout, to, "column")));
    } else {
      stores +=
        line(6, fmt::format("{}[{}] = {};", pointer, element(layout, to, "(column + e)"), number));
    }
  }
  code += "#pragma unroll\n";
  code += line(4, "for (int e = 0; e < W; ++e) {");
  code += inner_lines + statements + stores;
  code += line(4, "}");
  code += after;
  code += line(2, "}");
  return code;
}

std::string gemm_task::orientation_code(bool many_is_left) {
  const std::string many = many_is_left ? "left" : "right";
  const std::string few = many_is_left ? "right" : "left";
  std::string code;
  code += line(2, fmt::format("static constexpr bool many_is_left = {};", many_is_left));
  for (const auto& [name, side_name, count] :
    {std::tuple{"many", many, many_is_left ? "rows()" : "columns()"},
      std::tuple{"few", few, many_is_left ? "columns()" : "rows()"}}) {
    code += line(2, fmt::format("using {}_place = {}_place;", name, side_name));
    code += line(2,
      fmt::format("__device__ __forceinline__ {0}_place {0}_at(index_t batch, index_t "
                  "outer) const {{ return {1}_at(batch, outer); }}",
        name, side_name));
    code += line(2,
      fmt::format("__device__ __forceinline__ index_t {}() const {{ return {}; }}", name, count));
    code += line(2, "template <int V>");
    code += line(2,
      fmt::format("__device__ __forceinline__ void load_{0}(const {0}_place& at, "
                  "index_t k, float (&to)[V]) const {{ load_{1}<V>(at, k, to); }}",
        name, side_name));
  }
  return code;
}

std::string gemm_task::parameters() const {
  std::vector<std::string> list;
  if (has_partial_)
    list.push_back("float* __restrict__ partial");
  for (size_t i = 0; i < def_.inputs.size(); ++i) {
    const bool is_read = std::any_of(what_.values.loads.begin(), what_.values.loads.end(),
      [&](const ir_load& load) { return load.input == static_cast<int>(i); });
    if (is_read)
      list.push_back(fmt::format(
        "const {}* __restrict__ {}", element_type(def_.inputs[i].type), identifiers_[i]));
  }
  for (size_t i = 0; i < def_.outputs.size(); ++i)
    list.push_back(fmt::format("{}* __restrict__ {}", element_type(def_.outputs[i].type),
      identifiers_[def_.inputs.size() + i]));
  for (size_t i = 0; i < def_.inputs.size(); ++i) {
    const bool is_used =
      std::any_of(what_.values.nodes.begin(), what_.values.nodes.end(), [&](const ir_node& node) {
        return node.op == ir_op::scalar && node.scalar == static_cast<int>(i);
      });
    if (is_used)
      list.push_back("float " + scalar_names_[i]);
  }
  for (const auto& [expression, size_name] : sizes_)
    list.push_back("index_t " + size_name);
  return fmt::format("{}", fmt::join(list, ", "));
}

std::string gemm_task::names() const {
  // The last word of each declaration; no partial sums are a null pointer.
  std::string text = has_partial_ ? "" : "nullptr";
  const std::string declarations = parameters() + ",";
  for (size_t at = 0; at < declarations.size();) {
    const size_t comma = declarations.find(',', at);
    const size_t space = declarations.rfind(' ', comma);
    text += (text.empty() ? "" : ", ") + declarations.substr(space + 1, comma - space - 1);
    at = comma + 1;
  }
  return text;
}

std::vector<std::string> gemm_task::plan_arguments() const {
  std::vector<std::string> list;
  if (has_partial_)
    list.push_back("scratch.partial");
  for (size_t i = 0; i < def_.inputs.size(); ++i) {
    const bool is_read = std::any_of(what_.values.loads.begin(), what_.values.loads.end(),
      [&](const ir_load& load) { return load.input == static_cast<int>(i); });
    if (is_read)
      list.push_back(qualified_name("in", def_.inputs[i].name));
  }
  for (const auto& spec : def_.outputs)
    list.push_back(qualified_name("out", spec.name));
  for (size_t i = 0; i < def_.inputs.size(); ++i) {
    const bool is_used =
      std::any_of(what_.values.nodes.begin(), what_.values.nodes.end(), [&](const ir_node& node) {
        return node.op == ir_op::scalar && node.scalar == static_cast<int>(i);
      });
    if (is_used)
      list.push_back(fmt::format("{}:f32", qualified_name("in", def_.inputs[i].name)));
  }
  for (const auto& [expression, size_name] : sizes_)
    list.push_back(fmt::format("{}:{}", expression, is_wide_ ? "u64" : "u32"));
  return list;
}

std::string gemm_task::source() const {
  // Helpers are looked for from the outputs, and operands are no outputs.
  fused_kernel all = what_.values;
  for (const contraction_operand* operand : {&what_.left, &what_.right})
    all.outputs.push_back({0, operand->type, operand->node, false});
  std::string members = has_partial_ ? "" : line(2, "float* partial;");
  const std::string declarations = parameters() + ", ";
  size_t at = 0;
  while (at < declarations.size()) {
    const size_t comma = declarations.find(", ", at);
    std::string member = declarations.substr(at, comma - at);
    if (const size_t restricted = member.find(" __restrict__"); restricted != std::string::npos)
      member.erase(restricted, std::string_view{" __restrict__"}.size());
    members += line(2, member + ";");
    at = comma + 2;
  }
  return include_lines(all)
    + fmt::format("\nusing index_t = {};\n\n", is_wide_ ? "uint64_t" : "uint32_t")
    + vector_code(false) + "\n" + helper_functions(all, false)
    + "// The arguments of a call, and all that depends on its tensors.\nstruct task {\n" + members
    + "\n" + body_ + "};\n\n";
}

} // namespace gristmill
