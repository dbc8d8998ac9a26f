#include "kernels/families/fold.hpp"

#include "kernels/families/family_common.hpp"
#include "kernels/families/fold_code.hpp"
#include "kernels/families/reduction_reader.hpp"
#include "kernels/plan_text.hpp"
#include "kernels/vector_code.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>

namespace gristmill {

namespace {

using json = nlohmann::ordered_json;

/// Threads of a block that stand side by side where rows lie side by side.
constexpr int64_t columns_a_block = 32;

struct fold_point {
  int64_t threads = 256;
  /// Blocks that share a row.
  int64_t splits = 1;
};

/// The rows of a graph: what its reductions have in common, and the order in which they can be
/// computed.
struct fold_plan {
  reduced_shape space;
  std::vector<dim_run> runs;
  /// Numbers that one walk over the row gives, walk by walk.
  std::vector<std::vector<row_number>> passes;
  std::vector<size_t> element_outputs;
  std::vector<size_t> row_outputs;
  /// The last dimension is reduced: threads of a block share a row.
  bool is_by_row = true;
  bool has_integers = false;
  bool has_places = false;

  bool may_split() const {
    return passes.size() == 1 && element_outputs.empty() && !has_integers && !has_places;
  }
};

/// Writes the kernel of one point. Also finds the plan: the first attempt to write the outputs says
/// which numbers are missing.
class fold_writer {
public:
  fold_writer(const problem& target, const op_graph& graph, const size_formulas& sizes)
    : target_(target), graph_(graph), writer_(target, graph, sizes), reader_(writer_) {}

  fold_plan find_plan() {
    for (const auto& node : graph_.nodes) {
      if (!is_written_operator(node.op) && !is_reducing_operator(node.op))
        throw no_template{fmt::format("operator '{}' belongs to no template family yet", node.op)};
    }
    find_space();
    plan_.runs = plan_.space.runs();
    if (plan_.runs.empty())
      throw no_template{"a reduction of single numbers belongs to no template family yet"};
    plan_.is_by_row = plan_.runs.back().is_reduced;
    sort_outputs();
    begin({256, 1});
    find_passes();
    return plan_;
  }

  /// `plan` as `find_plan` gave it for the same graph; its node pointers are this graph's.
  generated_kernel write(const fold_plan& plan, const fold_point& point) {
    plan_ = plan;
    begin(point);
    std::string body = heading(point);
    for (const auto& pass : plan_.passes)
      body += walk(pass, point);
    if (point.splits > 1)
      body += partial_stores();
    else
      body += row_stores();
    if (!plan_.element_outputs.empty())
      body += element_stores();
    const std::string entry =
      fmt::format("\nextern \"C\" __global__ void __launch_bounds__({}) fold_rows(\n  {}) {{\n",
        block_threads(point), writer_.parameters().declarations());
    const std::string sizes = indented_sizes(writer_.parameters());
    const json first_arguments = writer_.parameters().arguments();
    generated_kernel out;
    std::string finish;
    json steps = json::array();
    json step = {{"op", "launch"}, {"entry", "fold_rows"}};
    step["grid"] = {blocks_text(point), point.splits, 1};
    step["block"] = {block_threads(point), 1, 1};
    step["args"] = first_arguments;
    steps.push_back(step);
    json scratch;
    const std::string wide = writer_.wide_expression();
    if (point.splits > 1) {
      scratch["partial"] = {{"dtype", "float32"},
        {"shape", {point.splits, plan_.passes[0].size(), pool().plan_text(rows_)}}};
      finish = finishing_kernel(point, steps);
    }
    out.source = fmt::format("// One fused kernel over {}: {} threads a row, {} walk{} over it.\n",
                   plan_.is_by_row ? "rows" : "columns", row_threads(point),
                   plan_.passes.size() + (plan_.element_outputs.empty() ? 0 : 1),
                   plan_.passes.size() == 1 && plan_.element_outputs.empty() ? "" : "s")
      + writer_.preamble(body + finish)
      + fmt::format("constexpr int row_threads = {};\n", row_threads(point))
      + (plan_.is_by_row ? std::string{}
                         : fmt::format("constexpr int columns = {};\n", columns_a_block))
      + std::string{fold_operators_code()}
      + (plan_.has_places ? std::string{fold_place_code()} : std::string{})
      + std::string{fold_threads_code(plan_.is_by_row)} + entry + sizes + body + "}\n" + finish;
    out.plan = single_variant_plan({{free_name(target_.def, "WIDE"), wide}}, steps, scratch);
    return out;
  }

  index_pool& pool() { return writer_.pool(); }
  std::string rows_text() { return pool().plan_text(rows_); }
  std::string length_text() { return pool().plan_text(length_); }

private:
  /// The rows of the first reduction are those of all.
  void find_space() {
    const std::set<int64_t> live = live_values();
    bool is_found = false;
    for (const auto& node : graph_.nodes) {
      if (!is_reducing_operator(node.op))
        continue;
      for (size_t output = 0; output < node.outputs.size(); ++output) {
        if (!live.contains(node.outputs[output]))
          continue;
        const reduced_shape shape = reader_.shape_of(node, output);
        if (!is_found)
          plan_.space = shape;
        else if (!plan_.space.has_same_runs(shape))
          refuse_node(node, "reduces other rows than the rest of the graph");
        is_found = true;
      }
    }
    if (!is_found)
      throw no_template{"nothing is reduced"};
  }

  std::set<int64_t> live_values() const {
    std::set<int64_t> live(graph_.outputs.begin(), graph_.outputs.end());
    for (auto node = graph_.nodes.rbegin(); node != graph_.nodes.rend(); ++node) {
      if (std::none_of(node->outputs.begin(), node->outputs.end(),
            [&](int64_t id) { return live.contains(id); }))
        continue;
      const auto want = [&](const graph_operand& operand) {
        if (operand.kind == operand_kind::value)
          live.insert(operand.value);
        else if (operand.kind == operand_kind::values)
          live.insert(operand.list.begin(), operand.list.end());
      };
      for (const auto& operand : node->inputs)
        want(operand);
      for (const auto& [key, operand] : node->attrs)
        want(operand);
    }
    return live;
  }

  void sort_outputs() {
    size_pair all;
    size_pair kept;
    for (const dim_run& run : plan_.runs) {
      all = all * run.product();
      if (!run.is_reduced)
        kept = kept * run.product();
    }
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      size_pair count;
      for (size_pair one : traced_shape(writer_.value(graph_.outputs[i])))
        count = count * one;
      if (count == kept)
        plan_.row_outputs.push_back(i);
      else if (count == all)
        plan_.element_outputs.push_back(i);
      else
        throw no_template{"an output has another shape than the rows that are reduced"};
    }
  }

  /// Variables of the kernel: one for each run, of kept runs from the row, of reduced ones from the
  /// place in it.
  void begin(const fold_point& point) {
    point_ = point;
    std::vector<index_id> kept_sizes;
    std::vector<index_id> reduced_sizes;
    for (const dim_run& run : plan_.runs)
      (run.is_reduced ? reduced_sizes : kept_sizes)
        .push_back(pool().product(pool().shape(run.sizes)));
    rows_ = pool().product(kept_sizes);
    length_ = pool().product(reduced_sizes);
    row_ = pool().variable("row", rows_);
    place_ = pool().variable("place", length_);
    const auto kept = pool().unflat(row_, kept_sizes);
    const auto reduced = pool().unflat(place_, reduced_sizes);
    size_t next_kept = 0;
    size_t next_reduced = 0;
    run_indices_.clear();
    for (const dim_run& run : plan_.runs)
      run_indices_.push_back(run.is_reduced ? reduced[next_reduced++] : kept[next_kept++]);
    reader_.set_space(plan_.space, run_indices_);
  }

  std::vector<size_pair> run_sizes(bool with_reduced) const {
    std::vector<size_pair> sizes;
    for (const dim_run& run : plan_.runs) {
      if (with_reduced || !run.is_reduced)
        sizes.push_back(run.product());
    }
    return sizes;
  }

  written_value output_value(size_t output, bool is_element) {
    std::vector<index_id> index;
    for (size_t i = 0; i < plan_.runs.size(); ++i) {
      if (is_element || !plan_.runs[i].is_reduced)
        index.push_back(run_indices_[i]);
    }
    const graph_value& value = writer_.value(graph_.outputs[output]);
    const auto at = through_runs(value, index, is_element);
    return writer_.read(value.id, at);
  }

  /// The runs' indices in an output's own dimensions.
  std::vector<index_id> through_runs(
    const graph_value& value, const std::vector<index_id>& index, bool is_element) {
    // Sizes of runs are products: `through_view` merges and splits them as a view would.
    std::vector<size_pair> flat_dims;
    std::vector<index_id> flat_index;
    size_t next = 0;
    for (const dim_run& run : plan_.runs) {
      if (!is_element && run.is_reduced)
        continue;
      const auto parts = pool().unflat(index[next++], pool().shape(run.sizes));
      for (size_t i = 0; i < parts.size(); ++i) {
        flat_dims.push_back(run.sizes[i]);
        flat_index.push_back(parts[i]);
      }
    }
    return through_view(pool(), traced_shape(value), flat_dims, flat_index);
  }

  void find_passes() {
    std::vector<row_number> wanted;
    const auto want = [&](const row_number& number) {
      if (std::find(wanted.begin(), wanted.end(), number) != wanted.end())
        return;
      if (wanted.size() >= 64)
        throw no_template{"the graph has too many reductions for one kernel"};
      wanted.push_back(number);
    };
    // First, whatever the outputs lack, with numbers that nobody has computed defined as they turn
    // up; then what those numbers lack themselves.
    std::map<row_number, std::vector<row_number>> needs;
    const auto needed_by = [&](const std::function<void()>& attempt) {
      std::vector<row_number> missing;
      while (true) {
        const auto saved = writer_.save();
        try {
          attempt();
          writer_.restore(saved);
          return missing;
        } catch (const missing_number& lacking) {
          writer_.restore(saved);
          missing.push_back(lacking.what);
          reader_.define(lacking.what, {"unknown", number_kind::number});
          if (missing.size() > 64)
            throw no_template{"the graph has too many reductions for one kernel"};
        }
      }
    };
    const auto forget = [&] { reader_.forget_numbers(); };
    for (bool is_element : {false, true}) {
      for (size_t output : is_element ? plan_.element_outputs : plan_.row_outputs) {
        forget();
        for (const auto& number : needed_by([&] { (void)output_value(output, is_element); }))
          want(number);
      }
    }
    for (size_t i = 0; i < wanted.size(); ++i) {
      forget();
      const row_number number = wanted[i];
      needs[number] = needed_by([&] {
        (void)reader_.body(number);
        if (is_place(reader_.kind_of(number)))
          (void)reader_.place(number);
      });
      for (const auto& other : needs[number])
        want(other);
    }
    forget();
    std::set<row_number> done;
    while (done.size() < wanted.size()) {
      std::vector<row_number> pass;
      for (const auto& number : wanted) {
        const auto& others = needs[number];
        if (!done.contains(number)
          && std::all_of(others.begin(), others.end(),
            [&](const row_number& other) { return done.contains(other); }))
          pass.push_back(number);
      }
      if (pass.empty())
        throw no_template{"the reductions of the graph wait for each other"};
      done.insert(pass.begin(), pass.end());
      plan_.passes.push_back(pass);
    }
    for (const auto& number : wanted) {
      plan_.has_places = plan_.has_places || is_place(reader_.kind_of(number));
      plan_.has_integers = plan_.has_integers || reader_.is_integer(number);
    }
    if (plan_.passes.empty())
      throw no_template{"nothing is reduced"};
  }

  int64_t row_threads(const fold_point& point) const {
    return plan_.is_by_row ? point.threads : point.threads / columns_a_block;
  }
  int64_t rows_a_block(const fold_point& point) const {
    return plan_.is_by_row ? (point.threads == 32 ? 4 : 1) : columns_a_block;
  }
  int64_t block_threads(const fold_point& point) const {
    return plan_.is_by_row ? point.threads * rows_a_block(point) : point.threads;
  }

  /// Rows that lie side by side where threads take columns.
  index_id inner_rows() {
    const dim_run& last = plan_.runs.back();
    return pool().product(pool().shape(last.sizes));
  }

  std::string blocks_text(const fold_point& point) {
    if (plan_.is_by_row)
      return fmt::format("ceil_div({}, {})", pool().plan_text(rows_), rows_a_block(point));
    const std::string inner = pool().plan_text(inner_rows());
    return fmt::format(
      "ceil_div({0}, {1}) * ({2} // max(1, {0}))", inner, columns_a_block, pool().plan_text(rows_));
  }

  std::string heading(const fold_point& point) {
    writer_.forget();
    const std::string rows = writer_.text(rows_);
    if (plan_.is_by_row) {
      writer_.line("const int lane = threadIdx.x % row_threads;");
      if (rows_a_block(point) > 1) {
        writer_.line(fmt::format("const index_t row = index_t(blockIdx.x) * {} + threadIdx.x / "
                                 "row_threads;",
          rows_a_block(point)));
        writer_.line(fmt::format("if (row >= {})", rows));
        writer_.line("  return; // A whole warp leaves: no barrier waits for it.");
      } else {
        writer_.line("const index_t row = blockIdx.x;");
      }
      writer_.line("const bool is_inside = true;");
    } else {
      const std::string inner = writer_.text(inner_rows());
      writer_.line("const int lane = threadIdx.x / columns;");
      writer_.line(fmt::format("const index_t tiles = ({} + columns - 1) / columns;", inner));
      writer_.line("const index_t column = index_t(blockIdx.x) % tiles * columns + threadIdx.x % "
                   "columns;");
      writer_.line(fmt::format("const bool is_inside = column < {};", inner));
      writer_.line(fmt::format(
        "const index_t row = index_t(blockIdx.x) / tiles * {} + (is_inside ? column : 0);", inner));
    }
    const std::string length = writer_.text(length_);
    if (point.splits > 1) {
      writer_.line(fmt::format(
        "const index_t part = ({} + {} - 1) / {};", length, point.splits, point.splits));
      writer_.line("const index_t begin = blockIdx.y * part;");
      writer_.line(
        fmt::format("const index_t end = begin + part < {0} ? begin + part : {0};", length));
    } else {
      writer_.line("const index_t begin = 0;");
      writer_.line(fmt::format("const index_t end = {};", length));
    }
    return writer_.take();
  }

  static constexpr std::string_view loop =
    "for (index_t place = begin + lane; is_inside && place < end; place += row_threads)";

  std::string walk(const std::vector<row_number>& pass, const fold_point&) {
    std::vector<std::string> names;
    for (const auto& number : pass) {
      const combine_kind kind = reader_.kind_of(number);
      const bool is_integer = reader_.is_integer(number);
      names.push_back(writer_.fresh("acc"));
      if (is_place(kind))
        writer_.line(fmt::format("placed {} = {{{}, 9223372036854775807LL}};", names.back(),
          kind == combine_kind::place_of_maximum ? "-INFINITY" : "INFINITY"));
      else
        writer_.line(fmt::format("{} {} = {};", is_integer ? "int64_t" : "float", names.back(),
          neutral(kind, is_integer)));
    }
    writer_.line("#pragma unroll 4");
    writer_.open(std::string{loop});
    for (size_t i = 0; i < pass.size(); ++i) {
      const combine_kind kind = reader_.kind_of(pass[i]);
      const written_value body = reader_.body(pass[i]);
      if (is_place(kind))
        writer_.line(fmt::format("{0} = {1}({0}, placed{{{2}, int64_t({3})}});", names[i],
          functor(kind), body.text, writer_.text(reader_.place(pass[i]))));
      else
        writer_.line(fmt::format("{} = {};", names[i],
          combined(kind, reader_.is_integer(pass[i]), names[i], "(" + body.text + ")")));
    }
    writer_.close();
    for (size_t i = 0; i < pass.size(); ++i) {
      const combine_kind kind = reader_.kind_of(pass[i]);
      const std::string name = writer_.fresh("r");
      const bool is_integer = reader_.is_integer(pass[i]);
      writer_.line(
        fmt::format("const {} {} = over_row({}, {}){};", is_integer ? "int64_t" : "float", name,
          names[i], functor(kind), is_place(kind) ? ".place" : ""));
      reader_.define(pass[i], {name, is_integer ? number_kind::integer : number_kind::number});
    }
    return writer_.take();
  }

  std::string row_stores() {
    if (plan_.row_outputs.empty())
      return {};
    writer_.open("if (lane == 0 && is_inside)");
    for (size_t output : plan_.row_outputs)
      writer_.store(output, "row", output_value(output, false));
    writer_.close();
    const std::string text = writer_.take();
    if (mentions_place(text))
      throw no_template{"an output of one number a row depends on single elements"};
    return text;
  }

  std::string element_stores() {
    writer_.line("#pragma unroll 4");
    writer_.open(std::string{loop});
    std::vector<index_id> dims;
    for (const dim_run& run : plan_.runs)
      dims.push_back(pool().product(pool().shape(run.sizes)));
    const std::string position = writer_.text(pool().flat(run_indices_, dims));
    for (size_t output : plan_.element_outputs)
      writer_.store(output, position, output_value(output, true));
    writer_.close();
    return writer_.take();
  }

  std::string partial_stores() {
    const std::string rows = writer_.text(rows_);
    const std::string partial = writer_.parameters().scratch("partial", "float");
    writer_.open("if (lane == 0 && is_inside)");
    for (size_t i = 0; i < plan_.passes[0].size(); ++i)
      writer_.line(fmt::format("{}[(index_t(blockIdx.y) * {} + {}) * {} + row] = {};", partial,
        plan_.passes[0].size(), i, rows, reader_.text_of(plan_.passes[0][i])));
    writer_.close();
    return writer_.take();
  }

  /// A thread a row combines the parts. Writes with a writer of its own: another kernel has other
  /// parameters.
  std::string finishing_kernel(const fold_point& point, json& steps) {
    fold_writer other(target_, graph_, writer_.sizes());
    other.plan_ = plan_;
    other.begin(point);
    value_writer& out = other.writer_;
    const std::string rows = out.text(other.rows_);
    const std::string partial = out.parameters().scratch("partial", "float");
    out.line("const index_t row = index_t(blockIdx.x) * 256 + threadIdx.x;");
    out.line(fmt::format("if (row >= {})\n    return;", rows));
    const auto& pass = plan_.passes[0];
    for (size_t i = 0; i < pass.size(); ++i) {
      const combine_kind kind = other.reader_.kind_of(pass[i]);
      const std::string name = out.fresh("r");
      out.line(fmt::format("float {} = {};", name, neutral(kind, false)));
      out.line(fmt::format("for (int split = 0; split < {}; ++split)", point.splits));
      out.line(fmt::format("  {} = {};", name,
        combined(kind, false, name,
          fmt::format(
            "{}[(index_t(split) * {} + {}) * {} + row]", partial, pass.size(), i, rows))));
      other.reader_.define(pass[i], {name, number_kind::number});
    }
    for (size_t output : plan_.row_outputs)
      out.store(output, "row", other.output_value(output, false));
    const std::string body = out.take();
    if (mentions_place(body))
      throw no_template{"an output of one number a row depends on single elements"};
    json step = {{"op", "launch"}, {"entry", "fold_parts"}};
    step["grid"] = {fmt::format("ceil_div({}, 256)", other.pool().plan_text(other.rows_)), 1, 1};
    step["block"] = {256, 1, 1};
    step["args"] = out.parameters().arguments();
    steps.push_back(step);
    writer_.take_tables(out);
    return fmt::format(
             "\nextern \"C\" __global__ void __launch_bounds__(256) fold_parts(\n  {}) {{\n",
             out.parameters().declarations())
      + indented_sizes(out.parameters()) + body + "}\n";
  }

  const problem& target_;
  const op_graph& graph_;
  value_writer writer_;
  reduction_reader reader_;
  fold_plan plan_;
  fold_point point_;
  index_id rows_ = -1;
  index_id length_ = -1;
  index_id row_ = -1;
  index_id place_ = -1;
  std::vector<index_id> run_indices_;
};

class fold_space : public parameter_space {
public:
  fold_space(const problem& target, const op_graph& graph, size_formulas sizes, bool may_split,
    fold_point first)
    : parameter_space("fold",
      {{"t", "threads a block", "more threads for a row", "more rows at a time"},
        {"s", "blocks a row", "long rows are spread over more SMs", "fewer parts to combine"}},
      all_points(may_split), {first.threads, first.splits == 1 ? 0 : first.splits}),
      target_(target), graph_(graph), sizes_(std::move(sizes)) {}

  generated_kernel generate(size_t point) const override {
    // Plans point to the nodes of a graph, so each writing finds its own.
    const fold_plan plan = fold_writer(target_, graph_, sizes_).find_plan();
    return fold_writer(target_, graph_, sizes_)
      .write(plan, {values(point)[0], std::max<int64_t>(1, values(point)[1])});
  }

private:
  static std::vector<std::vector<int64_t>> all_points(bool may_split) {
    std::vector<std::vector<int64_t>> points;
    for (int64_t threads : {32, 128, 256, 512, 1024}) {
      for (int64_t splits : {0, 4, 16, 64}) {
        if (splits == 0 || may_split)
          points.push_back({threads, splits});
      }
    }
    return points;
  }

  problem target_;
  op_graph graph_;
  size_formulas sizes_;
};

} // namespace

result<stage_space_ptr> read_fold_stage(const problem& target, const op_graph& graph) {
  return read_family(target, graph, [&](const size_formulas& sizes) -> stage_space_ptr {
    fold_writer finder(target, graph, sizes);
    const fold_plan plan = finder.find_plan();
    // The largest workload decides where to begin.
    const auto [rows, length] = largest_sizes(target, finder.rows_text(), finder.length_text());
    fold_point first;
    if (plan.is_by_row)
      first.threads = length <= 128 ? 32 : length <= 1024 ? 128 : length <= 8192 ? 256 : 512;
    const int64_t blocks = plan.is_by_row ? rows : rows / columns_a_block + 1;
    if (plan.may_split() && blocks < 128 && length >= 1024)
      first.splits = length >= 65536 && blocks < 16 ? 64 : 16;
    auto space = std::make_unique<fold_space>(target, graph, sizes, plan.may_split(), first);
    // Points of one kind differ in numbers only: one of each shows that all can be written.
    (void)space->generate(0);
    if (space->size() > 1)
      (void)space->generate(1);
    return space;
  });
}

} // namespace gristmill
