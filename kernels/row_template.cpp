#include "kernels/row_template.hpp"

#include "kernels/plan_text.hpp"
#include "kernels/row_kernel_writer.hpp"
#include "kernels/vector_code.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <set>

namespace gristmill {

namespace {

using json = nlohmann::ordered_json;

/// Bytes of registers that a thread may spend on its part of the row.
int register_budget(int block_threads) {
  return block_threads > 512 ? 96 : block_threads > 256 ? 192 : 256;
}

/// Shared memory of a block beside the rows: partial results of the warps.
constexpr int shared_reserve = 2048;

/// A load that changes with the column.
struct column_load : row_load {
  bool is_kept = false;
  /// Names: the pointer to the row's first column, the copy in shared memory.
  std::string row;
  std::string shared;
};

class row_writer : row_kernel_writer {
public:
  row_writer(const fused_kernel& kernel, const definition& def, const template_point& point)
    : row_kernel_writer(kernel, def, passes_of(kernel, point.online), point.reuse, point.fast),
      point_(point) {
    const auto reads = reads_per_load(kernel, passes_);
    for (size_t i = 0; i < kernel.loads.size(); ++i) {
      column_load load;
      fill(load, i);
      load.is_kept = reads[i] > 1;
      load.row = signature_.fresh(load.tensor + "_row");
      load.shared = signature_.fresh(load.tensor + "_kept");
      loads_.push_back(std::move(load));
    }
  }

  generated_kernel write() {
    // The body adds parameters, so it is written before what stands above it.
    if (point_.rows > 1)
      rows_ = signature_.integer("rows", rows_text_, "int32_t");
    cols_ = signature_.integer("cols", cols_text_, "int32_t");
    std::string body = prologue();
    body += all_passes();
    generated_kernel out;
    out.source = header() + include_lines(kernel_) + macro_lines(def_, macros()) + "\n"
      + constants() + vector_code(point_.streaming) + "\n" + rounding_code(kernel_.outputs) + "\n"
      + std::string{reduction_operators()} + "\n" + std::string{row_reduction_code()} + "\n"
      + helper_functions(kernel_, point_.fast)
      + "extern \"C\" __global__ void __launch_bounds__(row_threads * block_rows)\nfused_rows("
      + signature_.declarations() + ") {\n" + indented(body, 2) + "}\n";
    out.plan = plan();
    return out;
  }

private:
  bool keeps_anything() const {
    return std::any_of(
      loads_.begin(), loads_.end(), [](const column_load& l) { return l.is_kept; });
  }
  bool uses_shared() const { return point_.keep == row_keep::shared && keeps_anything(); }
  bool uses_registers() const { return point_.keep == row_keep::registers && keeps_anything(); }

  std::vector<std::string> macros() const {
    return uses_shared() ? std::vector<std::string>{"VEC", "CHUNKS", "SHARED"}
                         : std::vector<std::string>{"VEC", "CHUNKS"};
  }

  std::string header() const {
    return fmt::format(
      "// One fused kernel over rows: {} threads a row, {} row{} a block, {} passes over "
      "each row.\n// VEC (elements of a vector), CHUNKS (vectors of a thread that stay "
      "in registers, 0 for none)\n// and SHARED (the row stays in shared memory) come "
      "from the launch plan.\n",
      point_.threads, point_.rows, point_.rows == 1 ? "" : "s", passes_.size());
  }

  std::string constants() const {
    return fmt::format("constexpr int row_threads = {};\nconstexpr int block_rows = {};\n"
                       "constexpr int loop_unroll = CHUNKS > 0 ? CHUNKS : 4;\n\n",
      point_.threads, point_.rows);
  }

  /// Which row this is, where its data lie, and what does not change along it.
  std::string prologue() {
    std::string text = "const int lane = threadIdx.x % row_threads;\n";
    if (point_.rows > 1)
      text +=
        fmt::format("const int row = blockIdx.x * block_rows + threadIdx.x / row_threads;\n"
                    "if (row >= {})\n  return; // A whole warp leaves: no barrier waits for it.\n",
          rows_);
    else
      text += "const int row = blockIdx.x;\n";
    text += fmt::format("const int chunks = CHUNKS > 0 ? CHUNKS : ({0} + row_threads * VEC - 1) / "
                        "(row_threads * VEC);\n",
      cols_);
    const auto indices = row_indices("row", "", text);
    for (size_t i = 0; i < loads_.size(); ++i)
      text += row_pointer(i, indices);
    text += output_pointers();
    define_row_length();
    text += partial_arrays();
    text += kept_memory();
    text += reused_values();
    return text;
  }

  std::string row_pointer(size_t i, const std::vector<std::string>& indices) {
    column_load& load = loads_[i];
    const std::string place = place_of(load, "row", indices);
    if (!kernel_.loads[i].uses_last)
      return read_number(i, load, place);
    add_stride(load);
    return pointer_line(i, load.row, load.tensor, place);
  }

  std::string partial_arrays() {
    size_t count = 0;
    for (const row_pass& pass : passes_)
      count += pass.reductions.size() + 2 * pass.pairs.size();
    if (count == 0)
      return {};
    return fmt::format("__shared__ float partial[{}][row_threads / 32];\n", count);
  }

  std::string kept_memory() {
    std::string text;
    if (uses_shared())
      text +=
        "extern __shared__ uint4 row_memory[];\nchar* at = reinterpret_cast<char*>(row_memory) + "
        "threadIdx.x / row_threads * "
        + signature_.integer("row_bytes", row_bytes_expression(), "int32_t") + ";\n";
    for (size_t i = 0; i < loads_.size(); ++i) {
      if (!loads_[i].is_kept)
        continue;
      const std::string size = uses_registers() ? "CHUNKS > 0 ? CHUNKS : 1" : "1";
      text += fmt::format("packed<{}, VEC> {}[{}];\n", type_of(i), loads_[i].local, size);
      if (uses_shared())
        text +=
          fmt::format("{0}* const {1} = reinterpret_cast<{0}*>(at);\nat += ({2} * {3} + 15) / 16 * "
                      "16;\n",
            type_of(i), loads_[i].shared, cols_, element_bytes(kernel_.loads[i].type));
    }
    return text;
  }

  /// Registers for the values that a later pass needs again.
  std::string reused_values() const {
    if (reused_.empty())
      return {};
    return "#if CHUNKS > 0\n" + kept_arrays("CHUNKS") + "#endif\n";
  }

  std::string row_bytes_expression() const {
    std::vector<std::string> parts;
    for (size_t i = 0; i < loads_.size(); ++i) {
      if (loads_[i].is_kept)
        parts.push_back(
          fmt::format("align_up({} * {}, 16)", cols_text_, element_bytes(kernel_.loads[i].type)));
    }
    return fmt::format("({})", fmt::join(parts, " + "));
  }

  std::string all_passes() {
    std::string text;
    std::set<int> known_loads;
    for (const row_pass& pass : passes_)
      text += one_pass(pass, known_loads);
    text += row_outputs();
    return text;
  }

  /// Brings a load's vector of this chunk into a local, from wherever it is by now.
  std::string read_vector(size_t i, std::set<int>& known_loads) {
    const column_load& load = loads_[i];
    const bool is_first = known_loads.insert(static_cast<int>(i)).second;
    const std::string vector = !load.is_kept ? load.local
      : uses_registers()                     ? fmt::format("{}[CHUNKS > 0 ? chunk : 0]", load.local)
                                             : load.local + "[0]";
    std::string text;
    if (!load.is_kept)
      text += fmt::format("packed<{}, VEC> {};\n", type_of(i), load.local);
    const bool is_once = point_.streaming && !load.is_gather && load.access.is_identity;
    const std::string from_memory = load.is_gather
      ? gather(load, vector, load.row)
      : fmt::format("{}.{}({} + column);\n", vector, is_once ? "load_once" : "load", load.row);
    if (!load.is_kept || (is_first && !uses_shared()))
      return text + from_memory;
    if (is_first)
      return text + from_memory
        + fmt::format("if (SHARED)\n  {}.store({} + column);\n", vector, load.shared);
    if (uses_shared())
      return text
        + fmt::format("if (SHARED) {{\n  {}.load({} + column);\n}} else {{\n", vector, load.shared)
        + indented(from_memory, 2) + "}\n";
    if (uses_registers())
      return text + "if (CHUNKS == 0) {\n" + indented(from_memory, 2) + "}\n";
    return text + from_memory;
  }

  std::string one_pass(const row_pass& pass, std::set<int>& known_loads) {
    const std::vector<int> roots = roots_of(kernel_, pass);
    std::string text = begin_pass(pass, roots);
    for (const online_pair& pair : pass.pairs)
      text +=
        fmt::format("// Running maximum, and the sum of exponentials below it.\nfloat top{0} = "
                    "-3.402823466e38f;\nfloat below{0} = 0.0f;\n",
          pair.sum);
    text += fmt::format(
      "#pragma unroll loop_unroll\nfor (int chunk = 0; chunk < chunks; ++chunk) {{\n"
      "  const int column = (chunk * row_threads + lane) * VEC;\n  if (column < {}) {{\n",
      cols_);
    std::set<int> needed;
    for (int node : expressions_.undefined_nodes(roots)) {
      if (std::find(reused_.begin(), reused_.end(), node) != reused_.end())
        needed.insert(node);
    }
    std::set<int> loads_before = known_loads;
    std::string work = column_work(pass, roots, known_loads, {});
    if (!needed.empty()) {
      // With the row in registers, a value is computed once; without, every pass computes it again.
      work = "#if CHUNKS > 0\n" + column_work(pass, roots, loads_before, needed) + "#else\n" + work
        + "#endif\n";
      left_behind_.insert(needed.begin(), needed.end());
    }
    text += indented(work, 4) + "  }\n}\n";
    return text + combine(pass);
  }

  std::string column_work(const row_pass& pass, const std::vector<int>& roots,
    std::set<int>& known_loads, const std::set<int>& reused) {
    expression_writer inner = expressions_;
    for (int node : reused) {
      if (left_behind_.contains(node))
        inner.define(node, fmt::format("kept{}[chunk][i]", node));
    }
    std::string reads;
    std::set<int> read_here;
    for (int leaf : inner.undefined_leaves(roots)) {
      const ir_node& node = kernel_.nodes[static_cast<size_t>(leaf)];
      const auto i = static_cast<size_t>(node.load);
      const column_load& load = loads_[i];
      if (read_here.insert(node.load).second)
        reads += read_vector(i, known_loads);
      const std::string element = !load.is_kept ? fmt::format("{}.values[i]", load.local)
        : uses_registers() ? fmt::format("{}[CHUNKS > 0 ? chunk : 0].values[i]", load.local)
                           : fmt::format("{}[0].values[i]", load.local);
      inner.define(leaf, node.is_bool ? element : fmt::format("float({})", element));
    }
    std::string before = reads;
    std::string after;
    std::string body;
    for (const auto& line : inner.statements(roots, ir_level::element))
      body += line + "\n";
    for (int node : reused) {
      if (!left_behind_.contains(node))
        body += fmt::format("kept{}[chunk][i] = {};\n", node, inner.text_of(node));
    }
    for (int reduction : pass.reductions) {
      const ir_node& node = kernel_.nodes[static_cast<size_t>(reduction)];
      const std::string value = inner.text_of(node.args[0]);
      body += node.reduction == reduction_kind::sum
        ? fmt::format("acc{}[i] += {};\n", reduction, value)
        : fmt::format("acc{0}[i] = {1}(acc{0}[i], {2});\n", reduction,
          node.reduction == reduction_kind::maximum ? "fmaxf" : "fminf", value);
    }
    for (const online_pair& pair : pass.pairs) {
      before += fmt::format("float value{}[VEC];\n", pair.sum);
      body += fmt::format("value{}[i] = {};\n", pair.sum, inner.text_of(pair.body));
      after += online_step(pair);
    }
    for (int index : pass.outputs) {
      const ir_output& output = kernel_.outputs[static_cast<size_t>(index)];
      const std::string& name = signature_.output_name(output.output);
      before += fmt::format("packed<{}, VEC> {}_v;\n{} {}_f[VEC];\n", element_type(output.type),
        name, output.type == dtype::boolean ? "bool" : "float", name);
      body += fmt::format("{}_f[i] = {};\n", name, inner.text_of(output.node));
      after += fmt::format("round_into({0}_v, {0}_f);\n{0}_v.{1}({0}_row + column);\n", name,
        point_.streaming ? "store_once" : "store");
    }
    return before + "#pragma unroll\nfor (int i = 0; i < VEC; ++i) {\n" + indented(body, 2) + "}\n"
      + after;
  }

  std::string online_step(const online_pair& pair) const {
    return fmt::format(
      "const float before{0} = top{0};\n#pragma unroll\nfor (int i = 0; i < VEC; ++i)\n"
      "  top{0} = fmaxf(top{0}, value{0}[i]);\nbelow{0} *= {1}(before{0} - top{0});\n"
      "#pragma unroll\nfor (int i = 0; i < VEC; ++i)\n  below{0} += {1}(value{0}[i] - "
      "top{0});\n",
      pair.sum, exponential());
  }

  /// Behind the walk: the results of the whole row.
  std::string combine(const row_pass& pass) {
    std::string text;
    for (int reduction : pass.reductions) {
      const std::string_view op =
        operator_of(kernel_.nodes[static_cast<size_t>(reduction)].reduction);
      text += fmt::format(
        "const float r{0} = reduce_row(reduce_places(acc{0}, {1}{{}}), {1}{{}}, partial[{2}]);\n",
        reduction, op, partial_++);
      define_result(reduction);
    }
    for (const online_pair& pair : pass.pairs) {
      text +=
        fmt::format("const float r{0} = reduce_row(top{1}, max_op{{}}, partial[{2}]);\n"
                    "const float r{1} = reduce_row(below{1} * {4}(top{1} - r{0}), add_op{{}}, "
                    "partial[{3}]);\n",
          pair.maximum, pair.sum, partial_, partial_ + 1, exponential());
      partial_ += 2;
      define_result(pair.maximum);
      define_result(pair.sum);
    }
    return text;
  }

  enum class keeping : uint8_t { none, registers, shared };

  json variant(
    const std::string& name, std::vector<std::string> conditions, int width, keeping kept) const {
    const int span = width * point_.threads;
    std::string chunks = "0";
    json step = {{"op", "launch"}, {"entry", "fused_rows"}};
    step["grid"] = {
      point_.rows == 1 ? rows_text_ : fmt::format("ceil_div({}, {})", rows_text_, point_.rows), 1,
      1};
    step["block"] = {point_.threads * point_.rows, 1, 1};
    if (kept == keeping::registers) {
      template_point at = point_;
      at.width = width;
      conditions.push_back(fmt::format(
        "{} <= {}", cols_text_, register_columns_max(keeping_of(kernel_, at.online), at)));
      chunks = fmt::format("max(1, ceil_div({}, {}))", cols_text_, span);
    }
    if (kept == keeping::shared) {
      const std::string bytes = fmt::format("{} * {}", point_.rows, row_bytes_expression());
      conditions.push_back(fmt::format("{} + {} <= smem_per_block", bytes, shared_reserve));
      step["shared"] = bytes;
    }
    step["args"] = signature_.plan_arguments();
    json out = {{"name", name}};
    if (!conditions.empty())
      out["when"] = fmt::format("{}", fmt::join(conditions, " and "));
    out["defines"] = {{free_name(def_, "VEC"), width}, {free_name(def_, "CHUNKS"), chunks}};
    if (uses_shared())
      out["defines"][free_name(def_, "SHARED")] = kept == keeping::shared ? 1 : 0;
    out["steps"] = json::array({step});
    return out;
  }

  std::string plan() const {
    json document = {{"schema", "gristmill.plan/1"}};
    if (!kernel_.conditions.empty())
      document["domain"] = fmt::format("{}", fmt::join(kernel_.conditions, " and "));
    json variants = json::array();
    const auto add_both = [&](const std::string& name, const std::vector<std::string>& conditions,
                            int width) {
      const keeping kept = uses_registers() ? keeping::registers
        : uses_shared()                     ? keeping::shared
                                            : keeping::none;
      if (kept != keeping::none)
        variants.push_back(
          variant(name + (kept == keeping::registers ? ", in registers" : ", in shared memory"),
            conditions, width, kept));
      variants.push_back(variant(name, conditions, width, keeping::none));
    };
    if (point_.width > 1)
      add_both("vectors", row_vector_conditions(kernel_, def_, point_.width), point_.width);
    add_both("scalar", {}, 1);
    document["variants"] = std::move(variants);
    return document.dump(2) + "\n";
  }

  const template_point& point_;
  std::vector<column_load> loads_;
  int partial_ = 0;
};

} // namespace

generated_kernel row_kernel(
  const fused_kernel& kernel, const definition& def, const template_point& point) {
  return row_writer(kernel, def, point).write();
}

row_keeping keeping_of(const fused_kernel& kernel, bool online) {
  const auto passes = passes_of(kernel, online);
  const auto reads = reads_per_load(kernel, passes);
  row_keeping keeping;
  for (size_t i = 0; i < reads.size(); ++i) {
    if (reads[i] > 1)
      keeping.bytes += element_bytes(kernel.loads[i].type);
  }
  keeping.reusable = static_cast<int>(reusable_nodes(kernel, passes).size());
  return keeping;
}

int64_t register_columns_max(const row_keeping& keeping, const template_point& point) {
  if (keeping.bytes == 0 || point.keep != row_keep::registers)
    return 0;
  const int bytes = (keeping.bytes + (point.reuse ? 4 * keeping.reusable : 0)) * point.width;
  const int64_t chunks = register_budget(point.threads * point.rows) / bytes;
  return chunks * point.threads * point.width;
}

} // namespace gristmill
