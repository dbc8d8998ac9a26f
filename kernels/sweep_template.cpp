#include "kernels/sweep_template.hpp"

#include "kernels/plan_text.hpp"
#include "kernels/row_kernel_writer.hpp"
#include "kernels/sweep_code.hpp"
#include "kernels/sweep_ring.hpp"
#include "kernels/vector_code.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace gristmill {

namespace {

using json = nlohmann::ordered_json;

struct swept_load : row_load {
  load_role role = load_role::element;
  /// What holds the vectors of the next row.
  std::string next;
};

class sweep_writer : row_kernel_writer {
public:
  sweep_writer(const fused_kernel& kernel, const definition& def, const sweep_point& point)
    : row_kernel_writer(kernel, def, passes_of(kernel, true), true, point.fast), point_(point) {
    for (size_t i = 0; i < kernel.loads.size(); ++i) {
      swept_load load;
      fill(load, i);
      load.role = role_of(kernel.loads[i]);
      load.next = signature_.fresh(load.tensor + "_next");
      loads_.push_back(std::move(load));
    }
    for (const row_pass& pass : passes_)
      numbers_ += static_cast<int>(pass.reductions.size() + 2 * pass.pairs.size());
  }

  generated_kernel write() {
    rows_ = signature_.integer("rows", rows_text_, "int32_t");
    cols_ = signature_.integer("cols", cols_text_, "int32_t");
    for (const ir_output& output : kernel_.outputs) {
      if (output.is_per_column)
        sums_[output.output] = signature_.buffer(fmt::format("sums{}", output.output), "float",
          qualified_name("scratch", scratch_name(output.output)));
    }
    std::string body = setup();
    body += is_ring() ? ring_loop() : row_loop();
    body += leave_sums();
    generated_kernel out;
    out.source = header() + include_lines(kernel_) + macro_lines(def_, macros()) + "\n"
      + constants() + (is_ring() ? ring_functions() : std::string{}) + vector_code(point_.streaming)
      + "\n" + rounding_code(kernel_.outputs) + "\n"
      + (numbers_ > 0 ? sweep_reduction_code(point_.fast) + "\n" : std::string{})
      + helper_functions(kernel_, point_.fast)
      + fmt::format("extern \"C\" __global__ void __launch_bounds__({})\nswept_rows("
                    "{}) {{\n{}}}\n",
        is_ring() ? fmt::format("{}, 1", ring_threads(point_))
                  : fmt::format("block_threads, {}", point_.blocks),
        signature_.declarations(), indented(body, 2));
    for (const ir_output& output : kernel_.outputs) {
      if (output.is_per_column)
        out.source += "\n"
          + (is_ring() ? early_column_sum_code : column_sum_code)(
            finish_name(output.output), element_type(output.type));
    }
    out.plan = plan();
    return out;
  }

private:
  bool is_ahead() const { return point_.walk == row_walk::ahead; }
  bool is_ring() const { return point_.walk == row_walk::ring; }

  static std::string finish_name(int output) { return fmt::format("column_sums{}", output); }

  std::string scratch_name(int output) const {
    return free_name(def_, fmt::format("partial_sums{}", output));
  }

  std::string header() const {
    if (is_ring())
      return fmt::format(
        "// One fused kernel that walks over rows: one block a multiprocessor, in which {} groups\n"
        "// of {} threads have a row each, and a warp that brings rows into shared memory ahead.\n"
        "// VEC (elements of a vector), CHUNKS (vectors of a thread that stay in registers, 0 for\n"
        "// none and no ring) and STAGES (rows of the ring) come from the launch plan.\n",
        point_.blocks, point_.threads);
    return fmt::format(
      "// One fused kernel that walks over rows: {} threads a block, {} blocks a "
      "multiprocessor{}.\n"
      "// VEC (elements of a vector), CHUNKS (vectors of a thread that stay in registers, 0 for "
      "none)\n// and CLUSTER (blocks that share a row) come from the launch plan{}.\n",
      point_.threads, point_.blocks, is_ahead() ? ", the next row loaded ahead" : "",
      point_.full ? ", and so does FULL (1 where\n// all of these lie inside the row)" : "");
  }

  std::string constants() const {
    return fmt::format("constexpr int block_threads = {};\n"
                       "constexpr int row_threads = block_threads * CLUSTER;\n"
                       "constexpr int held = CHUNKS > 0 ? CHUNKS : 1;\n"
                       "constexpr int numbers = {};\n{}\n",
      point_.threads, std::max(1, numbers_),
      is_ring() ? fmt::format("constexpr int groups = CHUNKS > 0 ? {} : 1;\n", point_.blocks)
                : std::string{});
  }

  std::vector<std::string> macros() const {
    std::vector<std::string> names{"VEC", "CHUNKS", "CLUSTER"};
    if (point_.full)
      names.emplace_back("FULL");
    if (is_ring())
      names.emplace_back("STAGES");
    return names;
  }

  /// "for" over the chunks of a thread, with `column` and the guard, around `work`. Unrolled, so
  /// that arrays of chunks are registers. A guard costs registers for what it may leave as it was;
  /// without guards all loads may come first, which costs registers, too.
  std::string chunk_loop(const std::string& work) const {
    return fmt::format("#pragma unroll\nfor (int chunk = 0; chunk < held; ++chunk) {{\n"
                       "  const int column = (chunk * row_threads + lane) * VEC;\n"
                       "  if ({}column < {}) {{\n{}  }}\n}}\n",
      point_.full ? "FULL || " : "", cols_, indented(work, 4));
  }

  /// Loads the vector at `column` into `vector`; `from` points to the row's first column.
  std::string load_vector(size_t i, const std::string& vector, const std::string& from) const {
    const swept_load& load = loads_[i];
    if (load.is_gather)
      return gather(load, vector, from);
    const bool is_once = point_.streaming && load.role == load_role::element;
    return fmt::format("{}.{}({} + column);\n", vector, is_once ? "load_once" : "load", from);
  }

  /// The vectors of a row into arrays of that name, one for each load that changes with both.
  std::string load_row(const std::string& row, const std::string swept_load::*into) {
    std::string text;
    const auto indices = row_indices(row, row + "_", text);
    std::string work;
    for (size_t i = 0; i < loads_.size(); ++i) {
      if (loads_[i].role != load_role::element)
        continue;
      const std::string from = fmt::format("{}_of_{}", loads_[i].tensor, row);
      const std::string pointer = fmt::format("{}_{}", from, i);
      text += pointer_line(i, pointer, loads_[i].tensor, place_of(loads_[i], row, indices));
      work += load_vector(i, fmt::format("{}[chunk]", loads_[i].*into), pointer);
    }
    return work.empty() ? std::string{} : text + chunk_loop(work);
  }

  std::string setup() {
    std::string text = is_ring() ? ring_setup()
        + (numbers_ == 0
            ? std::string{}
            : "__shared__ __align__(16) float parts[groups + 1][2][numbers][row_threads / 32];\n"
              "float (&partial)[2][numbers][row_threads / 32] = parts[group];\nint turn = 0;\n")
      : numbers_ == 0
      ? "const int lane = threadIdx.x;\n"
      : "#if CLUSTER > 1\nconst int rank = cluster_rank();\nmeet_cluster(); // Its blocks are "
        "there "
        "before anyone writes into their memory.\n#else\nconst int rank = 0;\n#endif\n"
        "const int lane = rank * block_threads + threadIdx.x;\n"
        "__shared__ float partial[2][numbers][row_threads / 32];\nint turn = 0;\n";
    text +=
      "const int first_row = blockIdx.x / CLUSTER;\nconst int row_step = gridDim.x / CLUSTER;\n";
    std::string columns;
    for (size_t i = 0; i < loads_.size(); ++i) {
      swept_load& load = loads_[i];
      if (load.role == load_role::row_number)
        continue;
      add_stride(load);
      text += fmt::format("packed<{}, VEC> {}[held];\n", type_of(i), load.local);
      if (load.role == load_role::element && is_ahead())
        text += fmt::format("packed<{}, VEC> {}[held];\n", type_of(i), load.next);
      if (load.role == load_role::column) {
        const std::vector<std::string> nowhere(groups_.size(), "0");
        tensor_access to_row = load.access;
        to_row.strides.back().clear();
        text += pointer_line(i, load.tensor + fmt::format("_all{}", i), load.tensor,
          signature_.address(to_row, load.tensor, nowhere, "int64_t"));
        if (holds_columns(point_.walk))
          columns += load_vector(
            i, fmt::format("{}[chunk]", load.local), load.tensor + fmt::format("_all{}", i));
      }
    }
    if (!columns.empty())
      text += "if (CHUNKS > 0) {\n" + indented(chunk_loop(columns), 2) + "}\n";
    text += start_sums();
    define_row_length();
    if (is_ahead())
      text += fmt::format("if (CHUNKS > 0 && first_row < {}) {{\n", rows_)
        + indented(load_row("first_row", &swept_load::next), 2) + "}\n";
    return text;
  }

  /// Sums over all rows: in registers, or in the block's part of the scratch.
  std::string start_sums() const {
    std::string text;
    for (const auto& [output, sum] : sums_)
      text +=
        fmt::format("float {0}_v[held][VEC];\n#pragma unroll\nfor (int chunk = 0; chunk < "
                    "held; ++chunk)\n#pragma unroll\n  for (int i = 0; i < VEC; ++i)\n    "
                    "{0}_v[chunk][i] = 0.0f;\nfloat* const {0}_row = {0} + int64_t(first_row) "
                    "* {1};\n",
          sum, cols_);
    if (sums_.empty())
      return text;
    text += fmt::format(
      "if (CHUNKS == 0) {{\n  for (int column = lane; column < {}; column += row_threads) {{\n",
      cols_);
    for (const auto& [output, sum] : sums_)
      text += fmt::format("    {}_row[column] = 0.0f;\n", sum);
    return text + "  }\n}\n";
  }

  std::string leave_sums() const {
    if (sums_.empty())
      return {};
    if (is_ring())
      return leave_ring_sums();
    std::string work;
    for (const auto& [output, sum] : sums_)
      work += fmt::format("packed<float, VEC> {0}_out;\n#pragma unroll\nfor (int i = 0; i < VEC; "
                          "++i)\n  {0}_out.values[i] = {0}_v[chunk][i];\n{0}_out.store({0}_row + "
                          "column);\n",
        sum);
    return "if (CHUNKS > 0) {\n" + indented(chunk_loop(work), 2) + "}\n";
  }

  /// The groups of the block add up their sums, one after the other, where the rows were.
  std::string leave_ring_sums() const {
    std::string text = "#if CHUNKS > 0\nfloat* const added = reinterpret_cast<float*>(ring);\n";
    for (const auto& [output, sum] : sums_)
      text += fmt::format("for (int turn_of = 0; turn_of < groups; ++turn_of) {{\n"
                          "  __syncthreads();\n  if (group == turn_of) {{\n{}  }}\n}}\n",
        indented(chunk_loop(fmt::format(
                   "packed<float, VEC> {0}_out;\n#pragma unroll\nfor (int i = 0; i < VEC; ++i) {{\n"
                   "  float* const place = added + (chunk * VEC + i) * block_threads + lane;\n"
                   "  {0}_out.values[i] = {0}_v[chunk][i] + (turn_of > 0 ? *place : 0.0f);\n"
                   "  if (turn_of + 1 < groups)\n    *place = {0}_out.values[i];\n}}\n"
                   "if (turn_of + 1 == groups)\n  {0}_out.store({0}_row + column);\n",
                   sum)),
          4));
    return text + "#endif\n";
  }

  std::string row_loop() {
    std::string text;
    if (is_ahead()) {
      std::string take;
      for (const swept_load& load : loads_) {
        if (load.role == load_role::element)
          take += fmt::format("{}[chunk] = {}[chunk];\n", load.local, load.next);
      }
      const std::string copied = take.empty()
        ? std::string{}
        : "#pragma unroll\nfor (int chunk = 0; chunk < held; ++chunk) {\n" + indented(take, 2)
          + "}\n";
      text += "if (CHUNKS > 0) {\n" + indented(copied, 2)
        + fmt::format("  const int next_row = row + row_step;\n  if (next_row < {}) {{\n", rows_)
        + indented(load_row("next_row", &swept_load::next), 4) + "  }\n}\n";
    } else if (is_ring()) {
      text += "#if CHUNKS > 0\n{\n" + indented(load_from_ring(), 2) + "}\n#endif\n";
    } else {
      text += "if (CHUNKS > 0) {\n" + indented(load_row("row", &swept_load::local), 2) + "}\n";
    }
    text += row_values();
    text += kept_arrays("held");
    for (const row_pass& pass : passes_) {
      for (const online_pair& pair : pass.pairs)
        text += fmt::format("float raised{}[held][VEC];\n", pair.sum);
    }
    for (const row_pass& pass : passes_)
      text += one_pass(pass);
    text += row_outputs();
    const std::string turns = numbers_ > 0 ? "turn ^= 1;\n" : "";
    const std::string_view head = is_ring()
      ? "for (int row = first_row + group * row_step; row < {}; row += row_step * groups) {{\n"
      : "for (int row = first_row; row < {}; row += row_step) {{\n";
    return fmt::format(fmt::runtime(head), rows_) + indented(text + turns, 2) + "}\n";
  }

  /// The tensors of a row, in the order in which they lie in the ring.
  std::vector<ring_part> ring_parts() const {
    std::vector<ring_part> parts;
    for (size_t i = 0; i < loads_.size(); ++i) {
      if (loads_[i].role == load_role::element)
        parts.push_back({i, std::string(type_of(i)),
          fmt::format("{}_of_row_{}", loads_[i].tensor, i), element_bytes(kernel_.loads[i].type)});
    }
    return parts;
  }

  std::string ring_loop() {
    std::string pointers;
    const auto indices = row_indices("row", "row_", pointers);
    const auto parts = ring_parts();
    for (const ring_part& part : parts)
      pointers += pointer_line(part.load, part.pointer, loads_[part.load].tensor,
        place_of(loads_[part.load], "row", indices));
    return fmt::format("#if CHUNKS > 0\nconst int stage_bytes = {} * {};\n", cols_, row_bytes_)
      + ring_producer(pointers, parts, rows_, cols_)
      + "int stage = group; // The next row of the group.\nunsigned int parity = 0;\n#endif\n"
      + "if (group < groups) {\n" + indented(row_loop(), 2) + "}\n";
  }

  std::string load_from_ring() const {
    const auto parts = ring_parts();
    std::string loads;
    for (const ring_part& part : parts)
      loads += load_vector(part.load, loads_[part.load].local + "[chunk]", part.pointer);
    return ring_row(parts, cols_) + chunk_loop(loads) + ring_row_read();
  }

  /// What does not change along the row, and where the row lies.
  std::string row_values() {
    std::string text;
    const auto indices = row_indices("row", "row_", text);
    std::string pointers;
    for (size_t i = 0; i < loads_.size(); ++i) {
      const swept_load& load = loads_[i];
      if (load.role == load_role::column)
        continue;
      const std::string place = place_of(load, "row", indices);
      if (load.role == load_role::element)
        pointers += pointer_line(i, fmt::format("{}_row{}", load.tensor, i), load.tensor, place);
      else
        text += read_number(i, load, place);
    }
    if (!pointers.empty())
      text += "#if CHUNKS == 0\n" + pointers + "#endif\n";
    return text + output_pointers();
  }

  std::string one_pass(const row_pass& pass) {
    const std::vector<int> roots = roots_of(kernel_, pass);
    std::string text = begin_pass(pass, roots);
    for (const online_pair& pair : pass.pairs)
      text += fmt::format("// The thread's own maximum, and the sum of exponentials below it.\n"
                          "float tops{0}[VEC];\nfloat below{0}[VEC];\n#pragma unroll\nfor (int i = "
                          "0; i < VEC; ++i) {{\n  tops{0}[i] = -3.402823466e38f;\n  below{0}[i] = "
                          "0.0f;\n}}\n",
        pair.sum);
    // In registers every chunk has its place; else the row is read again in each pass.
    text += "#if CHUNKS > 0\n" + chunk_loop(column_work(pass, roots, true)) + "#else\n"
      + memory_loop(column_work(pass, roots, false)) + "#endif\n";
    text += raise_powers(pass);
    for (int node : roots_reused(roots))
      left_behind_.insert(node);
    return text + combine(pass);
  }

  /// A walk that reads the row again.
  std::string memory_loop(const std::string& work) const {
    return fmt::format(
             "for (int column = lane * VEC; column < {}; column += row_threads * VEC) {{\n", cols_)
      + "  constexpr int chunk = 0;\n" + indented(work, 2) + "}\n";
  }

  /// Exponentials below the thread's own maximum, which one factor for the thread corrects later.
  std::string raise_powers(const row_pass& pass) {
    std::string text;
    for (const online_pair& pair : pass.pairs) {
      text += fmt::format(
        "const float top{0} = over_places(tops{0}, max_op{{}});\n#if CHUNKS > 0\n", pair.sum);
      text += chunk_loop(fmt::format("#pragma unroll\nfor (int i = 0; i < VEC; ++i) {{\n  "
                                     "raised{0}[chunk][i] = {1}(raised{0}[chunk][i] - top{0});\n  "
                                     "below{0}[i] += raised{0}[chunk][i];\n}}\n",
        pair.sum, exponential()));
      row_pass again;
      again.pairs.push_back(pair);
      text += "#else\n" + memory_loop(column_work(again, {pair.body}, false, true)) + "#endif\n";
    }
    return text;
  }

  std::vector<int> roots_reused(const std::vector<int>& roots) const {
    std::vector<int> out;
    for (int node : needed_nodes(kernel_, roots)) {
      if (std::find(reused_.begin(), reused_.end(), node) != reused_.end())
        out.push_back(node);
    }
    return out;
  }

  /// `is_second`: the pairs' maxima are known and the exponentials are summed.
  std::string column_work(const row_pass& pass, const std::vector<int>& roots, bool in_registers,
    bool is_second = false) {
    expression_writer inner = expressions_;
    if (in_registers) {
      for (int node : left_behind_)
        inner.define(node, fmt::format("kept{}[chunk][i]", node));
      for (const auto& [power, sum] : raised_)
        inner.define(power, fmt::format("(raised{0}[chunk][i] * share{0})", sum));
    }
    std::string before;
    std::set<int> read_here;
    for (int leaf : inner.undefined_leaves(roots)) {
      const ir_node& node = kernel_.nodes[static_cast<size_t>(leaf)];
      const auto i = static_cast<size_t>(node.load);
      const swept_load& load = loads_[i];
      const bool is_held =
        in_registers && (load.role != load_role::column || holds_columns(point_.walk));
      if (!is_held && read_here.insert(node.load).second)
        before += load_vector(i, load.local + "[chunk]",
          load.role == load_role::column ? fmt::format("{}_all{}", load.tensor, i)
                                         : fmt::format("{}_row{}", load.tensor, i));
      const std::string element = load.local + "[chunk].values[i]";
      inner.define(leaf, node.is_bool ? element : fmt::format("float({})", element));
    }
    std::string body;
    std::string after;
    for (const auto& line : inner.statements(roots, ir_level::element))
      body += line + "\n";
    if (in_registers) {
      for (int node : roots_reused(roots)) {
        if (!left_behind_.contains(node))
          body += fmt::format("kept{}[chunk][i] = {};\n", node, inner.text_of(node));
      }
    }
    for (int reduction : pass.reductions) {
      const ir_node& node = kernel_.nodes[static_cast<size_t>(reduction)];
      body += fmt::format("acc{0}[i] = {1}{{}}(acc{0}[i], {2});\n", reduction,
        operator_of(node.reduction), inner.text_of(node.args[0]));
    }
    for (const online_pair& pair : pass.pairs) {
      const std::string value = inner.text_of(pair.body);
      if (is_second)
        body += fmt::format("below{0}[i] += {1}({2} - top{0});\n", pair.sum, exponential(), value);
      else if (in_registers)
        body += fmt::format("raised{}[chunk][i] = {};\n", pair.sum, value);
      if (!is_second)
        body += fmt::format("tops{0}[i] = fmaxf(tops{0}[i], {1});\n", pair.sum, value);
    }
    for (int index : pass.columns) {
      const ir_output& output = kernel_.outputs[static_cast<size_t>(index)];
      const std::string& sum = sums_.at(output.output);
      body += fmt::format("{}_{} += {};\n", sum, in_registers ? "v[chunk][i]" : "row[column + i]",
        inner.text_of(output.node));
    }
    for (int index : pass.outputs) {
      const ir_output& output = kernel_.outputs[static_cast<size_t>(index)];
      const std::string& name = signature_.output_name(output.output);
      before +=
        fmt::format("{} {}_f[VEC];\n", output.type == dtype::boolean ? "bool" : "float", name);
      body += fmt::format("{}_f[i] = {};\n", name, inner.text_of(output.node));
      after +=
        fmt::format("packed<{0}, VEC> {1}_v;\nround_into({1}_v, {1}_f);\n{1}_v.{2}({1}_row + "
                    "column);\n",
          element_type(output.type), name, point_.streaming ? "store_once" : "store");
    }
    return before + "#pragma unroll\nfor (int i = 0; i < VEC; ++i) {\n" + indented(body, 2) + "}\n"
      + after;
  }

  /// Behind the walk: the results of the whole row, with one meeting for all of a pass.
  std::string combine(const row_pass& pass) {
    if (pass.reductions.empty() && pass.pairs.empty())
      return {};
    std::string leave;
    std::string fetch;
    for (const online_pair& pair : pass.pairs) {
      leave += fmt::format(
        "const float warp_top{0} = over_warp(top{0}, max_op{{}});\n"
        "leave_part(warp_top{0}, partial, turn, {1}, rank);\n"
        "leave_part(over_warp(over_places(below{0}, add_op{{}}) * {3}(top{0} - warp_top{0}), "
        "add_op{{}}), partial, turn, {2}, rank);\n",
        pair.sum, partial_, partial_ + 1, exponential());
      fetch += fmt::format(
        "const float r{0} = over_parts(partial[turn][{2}], max_op{{}});\n"
        "const float r{1} = over_scaled_parts(partial[turn][{3}], partial[turn][{2}], r{0});\n"
        "const float share{1} = {4}(top{1} - r{0});\n",
        pair.maximum, pair.sum, partial_, partial_ + 1, exponential());
      partial_ += 2;
      define_result(pair.maximum);
      define_result(pair.sum);
      raised_[kernel_.nodes[static_cast<size_t>(pair.sum)].args[0]] = pair.sum;
    }
    for (int reduction : pass.reductions) {
      const auto kind = kernel_.nodes[static_cast<size_t>(reduction)].reduction;
      leave += fmt::format("leave_part(over_warp(over_places(acc{0}, {1}{{}}), {1}{{}}), partial, "
                           "turn, {2}, rank);\n",
        reduction, operator_of(kind), partial_);
      fetch += fmt::format("const float r{0} = over_parts(partial[turn][{1}], {2}{{}});\n",
        reduction, partial_++, operator_of(kind));
      define_result(reduction);
    }
    return leave + "meet_row();\n" + fetch;
  }

  /// Rows (or clusters of blocks) that are worked on at the same time.
  std::string walkers_text(int cluster) const {
    if (point_.walk == row_walk::one)
      return rows_text_;
    if (is_ring())
      return fmt::format("max(1, min({}, sm_count))", rows_text_);
    const std::string per_device = cluster == 1
      ? fmt::format("sm_count * {}", point_.blocks)
      : fmt::format("sm_count * {} // {}", point_.blocks, cluster);
    return fmt::format("max(1, min({}, {}))", rows_text_, per_device);
  }

  json variant(const std::string& name, const std::vector<std::string>& conditions, int width,
    const std::string& chunks, const std::string& full, int cluster) const {
    json steps = json::array();
    json step = {{"op", "launch"}, {"entry", "swept_rows"}};
    const std::string walkers = walkers_text(cluster);
    step["grid"] = {cluster == 1 ? walkers : fmt::format("{} * {}", walkers, cluster), 1, 1};
    step["block"] = {point_.threads, 1, 1};
    if (cluster > 1)
      step["cluster"] = {cluster, 1, 1};
    step["args"] = signature_.plan_arguments();
    const bool has_ring = is_ring() && chunks != "0";
    const ring_plan ring = ring_plan_of(point_, row_bytes_, cols_text_, chunks);
    if (has_ring) {
      step["block"] = {ring_threads(point_), 1, 1};
      step["shared"] = ring.shared;
    }
    steps.push_back(step);
    for (const ir_output& output : kernel_.outputs) {
      if (!output.is_per_column)
        continue;
      json finish = {{"op", "launch"}, {"entry", finish_name(output.output)}};
      finish["grid"] = {fmt::format("ceil_div({}, 32)", cols_text_), 1, 1};
      finish["block"] = {is_ring() ? 256 : 1024, 1, 1};
      // Its launch is on its way while the rows are worked on.
      if (has_ring)
        finish["pdl"] = true;
      finish["args"] = {qualified_name("scratch", scratch_name(output.output)),
        qualified_name("out", def_.outputs[static_cast<size_t>(output.output)].name),
        walkers + ":i32", cols_text_ + ":i32"};
      steps.push_back(finish);
    }
    json out = {{"name", name}};
    if (!conditions.empty())
      out["when"] = fmt::format("{}", fmt::join(conditions, " and "));
    out["defines"] = {{free_name(def_, "VEC"), width}, {free_name(def_, "CHUNKS"), chunks},
      {free_name(def_, "CLUSTER"), cluster}};
    if (point_.full)
      out["defines"][free_name(def_, "FULL")] = full;
    if (is_ring())
      out["defines"][free_name(def_, "STAGES")] = has_ring ? ring.stages : "0";
    out["steps"] = std::move(steps);
    return out;
  }

  std::string plan() const {
    json document = {{"schema", "gristmill.plan/1"}};
    if (!kernel_.conditions.empty())
      document["domain"] = fmt::format("{}", fmt::join(kernel_.conditions, " and "));
    for (const ir_output& output : kernel_.outputs) {
      if (output.is_per_column)
        document["scratch"][scratch_name(output.output)] = {
          {"dtype", "float32"}, {"shape", {walkers_text(1), cols_text_}}, {"init", "undefined"}};
    }
    auto conditions = row_vector_conditions(kernel_, def_, point_.width);
    conditions.push_back(
      fmt::format("{} <= {}", cols_text_, sweep_columns_max(sweep_load_of(kernel_), point_)));
    if (point_.cluster > 1 || is_ring())
      conditions.emplace_back("arch >= 90");
    if (is_ring())
      conditions.push_back(ring_condition(point_, row_bytes_, cols_text_));
    const int span = point_.width * point_.threads * point_.cluster;
    document["variants"] =
      json::array({variant("rows in registers", conditions, point_.width,
                     fmt::format("max(1, ceil_div({}, {}))", cols_text_, span),
                     fmt::format("1 - min(1, {} % {})", cols_text_, span), point_.cluster),
        variant("any row", {}, 1, "0", "0", 1)});
    return document.dump(2) + "\n";
  }

  const sweep_point& point_;
  /// Exponentials that a pair has left in registers, and the pair's sum.
  std::map<int, int> raised_;
  std::vector<swept_load> loads_;
  /// Parameters for the shares of sums over all rows, by output.
  std::map<int, std::string> sums_;
  /// Of the tensors of a row, for one column.
  int row_bytes_ = sweep_load_of(kernel_).row_bytes;
  /// Reductions over a row.
  int numbers_ = 0;
  int partial_ = 0;
};

} // namespace

generated_kernel sweep_kernel(
  const fused_kernel& kernel, const definition& def, const sweep_point& point) {
  return sweep_writer(kernel, def, point).write();
}

} // namespace gristmill
