#include "kernels/families/parts_map.hpp"

#include "kernels/expression_writer.hpp"
#include "kernels/families/family_common.hpp"
#include "kernels/families/value_writer.hpp"
#include "kernels/graph_reader.hpp"
#include "kernels/plan_text.hpp"
#include "kernels/pointwise_operators.hpp"
#include "kernels/vector_code.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <nlohmann/json.hpp>

namespace gristmill {

namespace {

using json = nlohmann::ordered_json;

/// Parts of a row that one thread works on.
constexpr size_t parts_max = 4;

/// A point of the family.
struct parts_point {
  int64_t threads = 128;
  int64_t width = 8;
  /// Places along the dimension before the last that a thread works on.
  int64_t repeats = 4;
  bool streaming = false;
};

class parts_writer {
public:
  parts_writer(const problem& target, const op_graph& graph, const size_formulas& sizes)
    : target_(target), graph_(graph), writer_(target, graph, sizes) {
    const graph_value& output = writer_.value(graph.outputs.front());
    shape_ = traced_shape(output);
    if (shape_.size() < 2)
      throw no_template{"a map of one dimension has no parts"};
    root_ = output.id;
    find_join();
    const size_pair whole = shape_.back();
    const auto count = static_cast<int64_t>(joined_ == nullptr ? 1 : joined_parts_.size());
    if (whole.first % count != 0 || whole.second % count != 0)
      throw no_template{"the parts of the output are not of one size"};
    part_ = {whole.first / count, whole.second / count};
    for (int64_t id : joined_parts_) {
      if (traced_shape(writer_.value(id)).back() != part_)
        throw no_template{"the parts of the output are not of one size"};
    }
  }

  /// Launch-plan conditions under which vectors of that width fit.
  std::vector<std::string> conditions(const parts_point& point) {
    (void)write(point);
    return conditions_;
  }

  generated_kernel write(const parts_point& point) {
    point_ = point;
    conditions_.clear();
    index_pool& pool = writer_.pool();
    const size_t last = shape_.size() - 1;
    const index_id part_size = pool.size(part_);
    add_condition(pool.plan_text(part_size));
    const std::vector<index_id> full = pool.shape(shape_);
    const index_id heads = full[last - 1];
    const index_id chunks = pool.over(part_size, pool.constant(point.width));
    std::vector<index_id> outer_shape(full.begin(), full.end() - 2);
    const index_id outer_size = pool.product(outer_shape);

    // Which place of all parts this thread computes.
    chunk_ = pool.variable("chunk", chunks);
    lane_ = pool.variable("i", pool.constant(point.width));
    head_ = pool.variable("head", heads);
    const index_id outer = pool.variable("outer", outer_size);
    std::vector<index_id> index;
    for (index_id one : pool.unflat(outer, outer_shape))
      index.push_back(one);
    index.push_back(head_);
    const index_id in_part = pool.add(pool.times(chunk_, pool.constant(point.width)), lane_);

    std::vector<std::string> values;
    std::vector<std::string> stores;
    for (int64_t p = 0; p < parts(); ++p) {
      std::vector<index_id> at = index;
      at.push_back(pool.add(in_part, pool.times(pool.constant(p), part_size)));
      part_index_ = index;
      part_index_.push_back(in_part);
      whole_index_ = at;
      current_ = static_cast<size_t>(p);
      set_hooks();
      values.push_back(writer_.read_as(root_, at, number_kind::number));
      const index_id position = pool.without(pool.flat(at, full), lane_);
      stores.push_back(writer_.text(position));
    }
    writer_.set_hook({});
    writer_.set_input_hook({});
    const std::string arithmetic = writer_.take();
    const tensor_spec& spec = target_.def.outputs.front();
    const std::string out = writer_.parameters().output(0);
    std::string body = places(heads, chunks, outer_size);
    body += fixed_loads_;
    body += declarations_;
    const std::string heads_text = writer_.text(heads);
    const std::string loop = fmt::format(
      "#pragma unroll\nfor (int u = 0; u < {}; ++u) {{\n  const index_t head = first_head + u * "
      "head_step;\n  if (head < {}) {{\n",
      point.repeats, heads_text);
    body += loop + indented(loads_, 4) + "  }\n}\n";
    std::string work;
    for (int64_t p = 0; p < parts(); ++p)
      work += fmt::format("float part{}[{}];\n", p, point.width);
    work +=
      fmt::format("#pragma unroll\nfor (int i = 0; i < {}; ++i) {{\n", point.width) + arithmetic;
    for (int64_t p = 0; p < parts(); ++p)
      work += fmt::format("  part{}[i] = {};\n", p, values[static_cast<size_t>(p)]);
    work += "}\n";
    for (int64_t p = 0; p < parts(); ++p)
      work +=
        fmt::format("packed<{0}, {1}> out{2};\nround_into(out{2}, part{2});\nout{2}.{3}({4} + "
                    "{5});\n",
          storage_type(spec.type), point.width, p, point.streaming ? "store_once" : "store", out,
          stores[static_cast<size_t>(p)]);
    body += loop + indented(work, 4) + "  }\n}\n";
    body = indented(body, 2);
    return finished(body, heads, chunks, outer_size);
  }

private:
  int64_t parts() const {
    return joined_ == nullptr ? 1 : static_cast<int64_t>(joined_parts_.size());
  }

  void add_condition(const std::string& size) {
    std::string text = fmt::format("{} % {} == 0", size, point_.width);
    if (std::find(conditions_.begin(), conditions_.end(), text) == conditions_.end())
      conditions_.push_back(std::move(text));
  }

  /// The concatenation that makes the output, with a rounding at most in between: storing rounds.
  void find_join() {
    const graph_node* node = writer_.origin(root_).first;
    if (node != nullptr && node->op == "_to_copy" && !node->inputs.empty()
      && node->inputs[0].kind == operand_kind::value) {
      const graph_value& from = writer_.value(node->inputs[0].value);
      if (from.dtype == "float32" && traced_shape(from) == shape_) {
        root_ = from.id;
        node = writer_.origin(root_).first;
      }
    }
    if (node == nullptr || node->op != "cat")
      return;
    if (node->inputs.empty() || node->inputs[0].kind != operand_kind::values
      || node->inputs[0].list.size() < 2 || node->inputs[0].list.size() > parts_max
      || front_dimension(*node, integer_argument(*node, 1, "dim", 0), shape_.size())
        != shape_.size() - 1)
      return;
    for (int64_t id : node->inputs[0].list) {
      if (writer_.value(id).shape.size() != shape_.size())
        return;
    }
    joined_ = node;
    joined_parts_ = node->inputs[0].list;
  }

  void set_hooks() {
    writer_.set_hook([this](const graph_node& node, size_t,
                       const std::vector<index_id>& index) -> std::optional<written_value> {
      if (&node != joined_) {
        // Others read under a condition, or where data say: no load may stand in front of that.
        if (!is_view_operator(node.op) && !is_pointwise(node.op))
          throw no_template{fmt::format("operator '{}' is not read in vectors", node.op)};
        return std::nullopt;
      }
      if (index != whole_index_)
        throw no_template{"the joined parts are read at another place than their own"};
      return writer_.read(joined_parts_[current_], part_index_);
    });
    writer_.set_input_hook(
      [this](size_t input, const std::vector<index_id>& index) { return load(input, index); });
  }

  /// A load that stands before the arithmetic: a vector where the elements lie side by side, one
  /// number where they are the same.
  std::optional<written_value> load(size_t input, const std::vector<index_id>& index) {
    index_pool& pool = writer_.pool();
    const tensor_spec& spec = target_.def.inputs[input];
    const number_kind kind = kind_of(name(spec.type));
    if (kind != number_kind::number)
      throw no_template{"only numbers are read in vectors"};
    const auto shape = writer_.input_shape(spec);
    const index_id position = pool.flat(index, shape);
    const auto step = pool.step_of(position, lane_);
    const auto head_step = pool.step_of(position, head_);
    if (!step || *step < 0 || *step > 1)
      throw no_template{"an input is read apart"};
    const bool is_fixed = head_step && *head_step == 0 && !pool.uses(position, head_);
    const std::string known = fmt::format("{}:{}", input, position);
    std::string& local = locals_[known];
    const std::string at = is_fixed ? "" : "[u]";
    const bool is_vector = *step == 1;
    if (is_vector) {
      // Rows begin at multiples of the width, and so do vectors in them.
      for (size_t i = 0; i + 1 < index.size(); ++i) {
        if (pool.step_of(index[i], lane_) != std::optional<int64_t>{0})
          throw no_template{"an input is read across its rows"};
      }
      if (!pool.is_multiple(pool.without(index.back(), lane_), point_.width))
        throw no_template{"a part of an input begins between vectors"};
      add_condition(pool.plan_text(shape.back()));
    }
    if (local.empty()) {
      local = writer_.fresh("l");
      const std::string type{storage_type(spec.type)};
      const std::string array = is_fixed ? "" : fmt::format("[{}]", point_.repeats);
      const std::string place = writer_.text(pool.without(position, lane_));
      const std::string from = writer_.parameters().input(input);
      std::string& text = is_fixed ? fixed_loads_ : loads_;
      if (is_vector) {
        declarations_of(is_fixed) +=
          fmt::format("packed<{}, {}> {}{};\n", type, point_.width, local, array);
        text += fmt::format("{}{}.{}({} + {});\n", local, at,
          point_.streaming && !is_fixed ? "load_once" : "load", from, place);
      } else {
        declarations_of(is_fixed) += fmt::format("float {}{};\n", local, array);
        text += fmt::format("{}{} = float({}[{}]);\n", local, at, from, place);
      }
    }
    return is_vector ? written_value{fmt::format("float({}{}.values[i])", local, at), kind}
                     : written_value{local + at, kind};
  }

  /// Before the loads, which are in order; fixed ones are declared where they are loaded.
  std::string& declarations_of(bool is_fixed) { return is_fixed ? fixed_loads_ : declarations_; }

  std::string places(index_id heads, index_id chunks, index_id outer) {
    const std::string heads_text = writer_.text(heads);
    const std::string chunks_text = writer_.text(chunks);
    return fmt::format("const index_t place = index_t(blockIdx.x) * {0} + threadIdx.x;\n"
                       "const index_t head_step = ({1} + {2}) / {3};\n"
                       "const index_t chunk = place % {4};\n"
                       "const index_t first_head = place / {4} % head_step;\n"
                       "const index_t outer = place / {4} / head_step;\n"
                       "if (outer >= {5})\n  return;\n",
      point_.threads, heads_text, point_.repeats - 1, point_.repeats, chunks_text,
      writer_.text(outer));
  }

  generated_kernel finished(
    const std::string& body, index_id heads, index_id chunks, index_id outer) {
    const dtype type = target_.def.outputs.front().type;
    generated_kernel out;
    out.source = fmt::format("// One fused map: a thread computes vectors of {} elements of {} "
                             "part{} of a row, at {} places.\n",
                   point_.width, parts(), parts() == 1 ? "" : "s", point_.repeats)
      + writer_.preamble(body) + vector_code(point_.streaming) + "\n"
      + rounding_code({{.type = type}})
      + fmt::format(
        "\nextern \"C\" __global__ void __launch_bounds__({}) mapped_parts(\n  {}) {{\n",
        point_.threads, writer_.parameters().declarations())
      + indented_sizes(writer_.parameters()) + body + "}\n";
    index_pool& pool = writer_.pool();
    json step = {{"op", "launch"}, {"entry", "mapped_parts"}};
    step["grid"] = {
      fmt::format("ceil_div({} * {} * ceil_div({}, {}), {})", pool.plan_text(outer),
        pool.plan_text(chunks), pool.plan_text(heads), point_.repeats, point_.threads),
      1, 1};
    step["block"] = {point_.threads, 1, 1};
    step["args"] = writer_.parameters().arguments();
    json document = {{"schema", "gristmill.plan/1"}};
    document["domain"] = fmt::format("{}", fmt::join(conditions_, " and "));
    document["variants"] = json::array({{{"name", "vectors"},
      {"defines", {{free_name(target_.def, "WIDE"), writer_.wide_expression()}}},
      {"steps", json::array({step})}}});
    out.plan = document.dump(2) + "\n";
    return out;
  }

  const problem& target_;
  const op_graph& graph_;
  value_writer writer_;
  std::vector<size_pair> shape_;
  size_pair part_;
  /// The value that is stored, before the rounding of the store.
  int64_t root_ = 0;
  const graph_node* joined_ = nullptr;
  std::vector<int64_t> joined_parts_;

  parts_point point_;
  index_id chunk_ = -1;
  index_id lane_ = -1;
  index_id head_ = -1;
  size_t current_ = 0;
  std::vector<index_id> whole_index_;
  std::vector<index_id> part_index_;
  std::vector<std::string> conditions_;
  /// Names of loads, by input and position.
  std::map<std::string, std::string> locals_;
  std::string fixed_loads_;
  std::string declarations_;
  std::string loads_;
};

class parts_space : public parameter_space {
public:
  parts_space(const problem& target, const op_graph& graph, size_formulas sizes,
    std::vector<std::vector<int64_t>> points, int64_t width)
    : parameter_space("parts",
      {{"t", "threads a block", "fewer, larger blocks", "more, smaller blocks"},
        {"v", "elements a vector", "wider accesses", "more threads"},
        {"r", "rows a thread", "more reads in flight", "more threads"},
        {"cs", "for data marked as used once", "", ""}},
      std::move(points), {128, width, 1, 0}),
      target_(target), graph_(graph), sizes_(std::move(sizes)),
      promises_(points_with(
        {{256, width, 1, 0}, {512, width, 4, 0}, {64, width, 1, 0}, {128, width, 8, 0}})) {}

  std::vector<size_t> promising() const override { return promises_; }

  generated_kernel generate(size_t point) const override {
    const auto& at = values(point);
    return parts_writer(target_, graph_, sizes_).write({at[0], at[1], at[2], at[3] != 0});
  }

private:
  problem target_;
  op_graph graph_;
  size_formulas sizes_;
  std::vector<size_t> promises_;
};

/// Widths of vectors that every workload can use.
std::vector<int64_t> widths_of(
  const problem& target, const op_graph& graph, const size_formulas& sizes) {
  std::vector<int64_t> out;
  std::string refusal = "no vector fits the rows of every workload";
  for (int64_t width : {2, 4, 8}) {
    try {
      if (hold_everywhere(target, parts_writer(target, graph, sizes).conditions({.width = width})))
        out.push_back(width);
    } catch (const no_template& refused) {
      refusal = refused.reason;
    }
  }
  if (out.empty())
    throw no_template{refusal};
  return out;
}

} // namespace

result<stage_space_ptr> read_parts_map_stage(const problem& target, const op_graph& graph) {
  return read_family(target, graph, [&](const size_formulas& sizes) -> stage_space_ptr {
    if (graph.outputs.size() != 1)
      throw no_template{"a map with several outputs has no parts"};
    const dtype type = target.def.outputs.front().type;
    if (type != dtype::float32 && type != dtype::bfloat16 && type != dtype::float16)
      throw no_template{"only floats are written in vectors"};
    for (const auto& node : graph.nodes) {
      if (!is_written_operator(node.op))
        throw no_template{fmt::format("operator '{}' belongs to no template family yet", node.op)};
    }
    const auto widths = widths_of(target, graph, sizes);
    std::vector<std::vector<int64_t>> points;
    for (int64_t width : widths) {
      for (int64_t threads : {64, 128, 256, 512}) {
        for (int64_t repeats : {1, 2, 4, 8}) {
          for (int64_t streaming : {0, 1})
            points.push_back({threads, width, repeats, streaming});
        }
      }
    }
    // 16 bytes of the narrowest tensor, as far as all rows allow it.
    int64_t bytes = element_bytes(type);
    for (const auto& spec : target.def.inputs) {
      if (!spec.is_scalar)
        bytes = std::min<int64_t>(bytes, element_bytes(spec.type));
    }
    const int64_t width = std::min(16 / std::max<int64_t>(2, bytes), widths.back());
    return std::make_unique<parts_space>(target, graph, sizes, std::move(points), width);
  });
}

} // namespace gristmill
