#include "kernels/row_kernel_writer.hpp"

#include "kernels/plan_text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace gristmill {

namespace {

/// The leading dimensions, and the row itself as the last group.
std::vector<dim_group> row_groups(const fused_kernel& kernel) {
  const size_t last = kernel.space.size() - 1;
  std::vector<dim_group> groups = group_dims(kernel, 0, last);
  groups.push_back({last, last, kernel.space[last].size});
  return groups;
}

std::string row_count_text(const fused_kernel& kernel) {
  std::vector<std::string> leading;
  for (size_t i = 0; i + 1 < kernel.space.size(); ++i)
    leading.push_back(kernel.space[i].size);
  return product_text(leading);
}

bool is_gathered(const ir_load& load, const tensor_access& access) {
  return load.uses_last && !access.is_contiguous();
}

std::string_view neutral_of(reduction_kind kind) {
  switch (kind) {
  case reduction_kind::sum:
    return "0.0f";
  case reduction_kind::maximum:
    return "-INFINITY";
  case reduction_kind::minimum:
    return "INFINITY";
  }
  return "0.0f";
}

} // namespace

std::vector<std::string> row_vector_conditions(
  const fused_kernel& kernel, const definition& def, int width) {
  const auto groups = row_groups(kernel);
  const std::string width_text = fmt::format("{}", width);
  std::vector<std::string> conditions{fmt::format("{} % {} == 0", groups.back().size, width)};
  for (const ir_load& load : kernel.loads) {
    const tensor_access access = access_of(load, kernel, def, groups);
    if (!load.uses_last || is_gathered(load, access))
      continue;
    for (auto& condition : alignment_conditions(access, width_text)) {
      if (std::find(conditions.begin(), conditions.end(), condition) == conditions.end())
        conditions.push_back(std::move(condition));
    }
  }
  return conditions;
}

bool has_contiguous_rows(const ir_load& load, const fused_kernel& kernel, const definition& def) {
  return !is_gathered(load, access_of(load, kernel, def, row_groups(kernel)));
}

row_kernel_writer::row_kernel_writer(const fused_kernel& kernel, const definition& def,
  std::vector<row_pass> passes, bool reuses, bool fast)
  : kernel_(kernel), def_(def), fast_(fast), signature_(kernel, def), groups_(row_groups(kernel)),
    passes_(std::move(passes)),
    reused_(reuses ? reusable_nodes(kernel, passes_) : std::vector<int>{}),
    expressions_(kernel, signature_.scalar_names(), fast), rows_text_(row_count_text(kernel)),
    cols_text_(groups_.back().size) {}

std::string_view row_kernel_writer::operator_of(reduction_kind kind) {
  switch (kind) {
  case reduction_kind::sum:
    return "add_op";
  case reduction_kind::maximum:
    return "max_op";
  case reduction_kind::minimum:
    return "min_op";
  }
  return "add_op";
}

void row_kernel_writer::fill(row_load& out, size_t load) {
  const ir_load& from = kernel_.loads[load];
  out.access = access_of(from, kernel_, def_, groups_);
  out.is_gather = is_gathered(from, out.access);
  out.tensor = signature_.input_name(from.input);
  out.local = signature_.fresh(out.tensor + "_v");
}

void row_kernel_writer::add_stride(row_load& load) {
  if (load.is_gather)
    load.stride = signature_.integer(load.tensor + "_step", load.access.strides.back());
}

std::vector<std::string> row_kernel_writer::row_indices(
  const std::string& row, const std::string& prefix, std::string& text) {
  const size_t leading = groups_.size() - 1;
  std::vector<std::string> indices(groups_.size(), "0");
  if (leading == 1)
    indices[0] = fmt::format("int64_t({})", row);
  std::string rest = row;
  for (size_t g = leading; leading > 1 && g-- > 0;) {
    const std::string name = fmt::format("{}index{}", prefix, g);
    indices[g] = fmt::format("int64_t({})", name);
    if (g == 0) {
      text += fmt::format("const int {} = {};\n", name, rest);
      break;
    }
    const std::string size =
      signature_.integer(fmt::format("size{}", g), groups_[g].size, "int32_t");
    text += fmt::format("const int {0} = {1} % {2};\nconst int {3}rest{4} = {1} / {2};\n", name,
      rest, size, prefix, g);
    rest = fmt::format("{}rest{}", prefix, g);
  }
  return indices;
}

std::string row_kernel_writer::place_of(
  const row_load& load, const std::string& row, const std::vector<std::string>& indices) {
  if (load.access.is_identity)
    return fmt::format("int64_t({}) * {}", row, cols_);
  tensor_access to_row = load.access;
  to_row.strides.back().clear();
  return signature_.address(to_row, load.tensor, indices, "int64_t");
}

std::string row_kernel_writer::pointer_line(
  size_t load, const std::string& name, const std::string& tensor, const std::string& place) const {
  return fmt::format("const {}* const {} = {} + {};\n", type_of(load), name, tensor, place);
}

std::string row_kernel_writer::read_number(
  size_t load, const row_load& from, const std::string& place) {
  for (size_t n = 0; n < kernel_.nodes.size(); ++n) {
    if (kernel_.nodes[n].op == ir_op::load && kernel_.nodes[n].load == static_cast<int>(load))
      expressions_.define(static_cast<int>(n), from.local);
  }
  const std::string_view type = kernel_.loads[load].type == dtype::boolean ? "bool" : "float";
  return fmt::format("const {0} {1} = {0}({2}[{3}]);\n", type, from.local, from.tensor, place);
}

std::string row_kernel_writer::gather(
  const row_load& load, const std::string& vector, const std::string& row) {
  return fmt::format(
    "#pragma unroll\nfor (int i = 0; i < VEC; ++i)\n  {}.values[i] = {}[(column + i) * {}];\n",
    vector, row, load.stride);
}

std::string row_kernel_writer::output_pointers() const {
  std::string text;
  for (const ir_output& output : kernel_.outputs) {
    if (!output.is_per_row && !output.is_per_column)
      text += fmt::format("{0}* const {1}_row = {1} + int64_t(row) * {2};\n",
        element_type(output.type), signature_.output_name(output.output), cols_);
  }
  return text;
}

void row_kernel_writer::define_row_length() {
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    if (kernel_.nodes[i].op == ir_op::row_length)
      expressions_.define(static_cast<int>(i), fmt::format("float({})", cols_));
  }
}

std::string row_kernel_writer::begin_pass(const row_pass& pass, const std::vector<int>& roots) {
  std::string text = "\n";
  for (const auto& line : expressions_.statements(roots, ir_level::row))
    text += line + "\n";
  for (const auto& line : expressions_.reciprocals(roots))
    text += line + "\n";
  for (int reduction : pass.reductions)
    text += fmt::format(
      "float acc{0}[VEC];\n#pragma unroll\nfor (int i = 0; i < VEC; ++i)\n  acc{0}[i] = {1};\n",
      reduction, neutral_of(kernel_.nodes[static_cast<size_t>(reduction)].reduction));
  return text;
}

std::string row_kernel_writer::kept_arrays(std::string_view count) const {
  std::string text;
  for (int node : reused_)
    text += fmt::format("float kept{}[{}][VEC];\n", node, count);
  return text;
}

void row_kernel_writer::define_result(int node) {
  expressions_.define(node, fmt::format("r{}", node));
}

std::string row_kernel_writer::row_outputs() {
  std::vector<int> roots;
  for (const ir_output& output : kernel_.outputs) {
    if (output.is_per_row)
      roots.push_back(output.node);
  }
  if (roots.empty())
    return {};
  std::string text;
  for (const auto& line : expressions_.statements(roots, ir_level::row))
    text += line + "\n";
  text += "if (lane == 0) {\n";
  for (const ir_output& output : kernel_.outputs) {
    if (output.is_per_row)
      text += fmt::format("  {}[row] = {}({});\n", signature_.output_name(output.output),
        element_type(output.type), expressions_.text_of(output.node));
  }
  return text + "}\n";
}

} // namespace gristmill
