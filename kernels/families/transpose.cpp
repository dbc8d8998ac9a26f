#include "kernels/families/transpose.hpp"

#include "kernels/expression_writer.hpp"
#include "kernels/families/family_common.hpp"
#include "kernels/families/value_writer.hpp"
#include "kernels/graph_reader.hpp"
#include "kernels/plan_text.hpp"
#include "kernels/vector_code.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace gristmill {

namespace {

using json = nlohmann::ordered_json;

/// Numbers along each side of a tile, unless a point says otherwise.
constexpr int64_t usual_tile = 32;

bool is_copy(std::string_view op) {
  return op == "clone" || op == "contiguous" || op == "_to_copy" || op == "alias" || op == "detach";
}

class transpose_writer {
public:
  transpose_writer(const problem& target, const op_graph& graph, const size_formulas& sizes)
    : target_(target), graph_(graph), writer_(target, graph, sizes) {
    const graph_value& output = writer_.value(graph.outputs.front());
    sizes_ = traced_shape(output);
    shape_ = writer_.pool().shape(sizes_);
    for (size_t i = 0; i < shape_.size(); ++i)
      index_.push_back(writer_.pool().variable(fmt::format("i{}_", i), shape_[i]));
    find_permutation();
  }

  /// Numbers that one access of 16 bytes moves on both sides; 1 where an input and the output do
  /// not allow more. Launch-plan conditions on sizes come with it.
  int64_t vector_width(std::vector<std::string>& conditions) {
    // Other operands beside the turned one would be read at places of their own.
    const bool is_alone = std::all_of(graph_.nodes.begin(), graph_.nodes.end(),
      [](const graph_node& node) { return is_view_operator(node.op) || is_copy(node.op); });
    if (base_->source != graph_source::input || !is_alone)
      return 1;
    const dtype type = target_.def.outputs.front().type;
    const size_t input = base_input();
    const auto is_float = [](dtype one) {
      return one == dtype::float32 || one == dtype::bfloat16 || one == dtype::float16;
    };
    if (input == target_.def.inputs.size() || !is_float(type)
      || !is_float(target_.def.inputs[input].type))
      return 1;
    const int64_t width =
      16 / std::max(element_bytes(type), element_bytes(target_.def.inputs[input].type));
    index_pool& pool = writer_.pool();
    for (index_id size : {shape_[moved_], shape_.back()})
      conditions.push_back(fmt::format("{} % {} == 0", pool.plan_text(size), width));
    return width;
  }

  /// `tile` is a multiple of `rows` and of `width`. With `width` above 1 every access is a vector.
  generated_kernel write(int64_t rows, int64_t tile, int64_t width = 1) {
    width_ = width;
    index_pool& pool = writer_.pool();
    const size_t last = shape_.size() - 1;
    std::vector<index_id> outer_shape;
    std::vector<size_t> outer_dims;
    for (size_t i = 0; i < last; ++i) {
      if (i != moved_) {
        outer_shape.push_back(shape_[i]);
        outer_dims.push_back(i);
      }
    }
    const std::string moved_size = writer_.text(shape_[moved_]);
    const std::string last_size = writer_.text(shape_[last]);
    writer_.line(fmt::format("__shared__ float staged[{}][{}];", tile, tile + 1));
    writer_.line(fmt::format("const index_t across = ({} + {}) / {};", last_size, tile - 1, tile));
    writer_.line(fmt::format("const index_t down = ({} + {}) / {};", moved_size, tile - 1, tile));
    writer_.line("const index_t block = blockIdx.x;");
    writer_.line(fmt::format("const index_t first_last = block % across * {};", tile));
    writer_.line(fmt::format("const index_t first_moved = block / across % down * {};", tile));
    const index_id outer = pool.variable("outer", pool.product(outer_shape));
    if (!outer_dims.empty())
      writer_.line("const index_t outer = block / across / down;");
    const auto parts = pool.unflat(outer, outer_shape);
    for (size_t i = 0; i < parts.size(); ++i)
      writer_.line(fmt::format("const index_t i{}_ = {};", outer_dims[i], writer_.text(parts[i])));
    const std::string along = width == 1 ? "x" : fmt::format("x * {}", width);
    writer_.line(fmt::format("const int x = threadIdx.x % {};", tile / width));
    writer_.line(fmt::format("const int y = threadIdx.x / {};", tile / width));
    // In: neighbouring threads along the dimension that is last in memory.
    step(rows, tile, fmt::format("i{}_", moved_), "first_moved + " + along,
      fmt::format("i{}_", last), "first_last + j", moved_size, last_size, [&] { stage(); });
    writer_.line("__syncthreads();");
    step(rows, tile, fmt::format("i{}_", last), "first_last + " + along,
      fmt::format("i{}_", moved_), "first_moved + j", last_size, moved_size, [&] { leave(); });
    const std::string body = writer_.take();
    generated_kernel out;
    out.source = fmt::format("// One fused map that turns its operand round: tiles of {0} x {0} go "
                             "through shared memory.\n",
                   tile)
      + writer_.preamble(body)
      + (width == 1
          ? std::string{}
          : vector_code(false) + "\n" + rounding_code({{.type = target_.def.outputs.front().type}}))
      + fmt::format("\nextern \"C\" __global__ void __launch_bounds__({}) turned_map(\n  {}) {{\n",
        tile / width * rows, writer_.parameters().declarations())
      + indented_sizes(writer_.parameters()) + body + "}\n";
    json launch = {{"op", "launch"}, {"entry", "turned_map"}};
    launch["grid"] = {
      fmt::format("ceil_div({}, {}) * ceil_div({}, {}) * {}", pool.plan_text(shape_[last]), tile,
        pool.plan_text(shape_[moved_]), tile, pool.plan_text(pool.product(outer_shape))),
      1, 1};
    launch["block"] = {tile / width * rows, 1, 1};
    launch["args"] = writer_.parameters().arguments();
    out.plan = single_variant_plan(
      {{free_name(target_.def, "WIDE"), writer_.wide_expression()}}, json::array({launch}), {});
    if (width > 1) {
      std::vector<std::string> conditions;
      (void)vector_width(conditions);
      json document = json::parse(out.plan);
      document["domain"] = fmt::format("{}", fmt::join(conditions, " and "));
      out.plan = document.dump(2) + "\n";
    }
    return out;
  }

private:
  /// The definition's input that is turned, or the number of inputs where it is none.
  size_t base_input() const {
    const auto& inputs = target_.def.inputs;
    const auto found = std::find_if(inputs.begin(), inputs.end(),
      [&](const tensor_spec& spec) { return spec.name == base_->name && !spec.is_scalar; });
    return static_cast<size_t>(found - inputs.begin());
  }

  /// What one thread reads goes into the tile.
  void stage() {
    if (width_ == 1) {
      writer_.line(fmt::format(
        "staged[j][x] = {};", writer_.read_as(base_->id, base_index_, number_kind::number)));
      return;
    }
    const size_t input = base_input();
    const tensor_spec& spec = target_.def.inputs[input];
    writer_.line(fmt::format("packed<{}, {}> some;", storage_type(spec.type), width_));
    writer_.line(fmt::format("some.load({} + {});", writer_.parameters().input(input),
      writer_.address(spec, base_index_)));
    writer_.line("#pragma unroll");
    writer_.line(fmt::format("for (int i = 0; i < {}; ++i)", width_));
    writer_.line(fmt::format("  staged[j][x * {} + i] = float(some.values[i]);", width_));
  }

  /// What one thread writes comes out of it.
  void leave() {
    writer_.set_hook([&](const graph_node& node, size_t,
                       const std::vector<index_id>& index) -> std::optional<written_value> {
      if (&node != node_ || index != node_index_)
        return std::nullopt;
      return written_value{
        width_ == 1 ? "staged[x][j]" : fmt::format("staged[x * {} + i][j]", width_),
        number_kind::number};
    });
    const std::string place = writer_.text(writer_.pool().flat(index_, shape_));
    if (width_ == 1) {
      writer_.store(0, place, writer_.read(graph_.outputs.front(), index_));
      writer_.set_hook({});
      return;
    }
    writer_.line(fmt::format("float some[{}];", width_));
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int i = 0; i < {}; ++i)", width_));
    writer_.line(fmt::format(
      "some[i] = {};", writer_.read_as(graph_.outputs.front(), index_, number_kind::number)));
    writer_.close();
    writer_.set_hook({});
    writer_.line(
      fmt::format("packed<{}, {}> out;", storage_type(target_.def.outputs.front().type), width_));
    writer_.line("round_into(out, some);");
    writer_.line(fmt::format("out.store({} + {});", writer_.parameters().output(0), place));
  }

  /// One pass over the tile; `work` is written for one element of it.
  void step(int64_t rows, int64_t tile, const std::string& fast, const std::string& fast_at,
    const std::string& slow, const std::string& slow_at, const std::string& fast_size,
    const std::string& slow_size, const std::function<void()>& work) {
    // A known number of rounds, so that all of a thread's loads are under way at once.
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int round = 0; round < {}; ++round)", tile / rows));
    writer_.line(fmt::format("const int j = y + round * {};", rows));
    writer_.line(fmt::format("const index_t {} = {};", fast, fast_at));
    writer_.line(fmt::format("const index_t {} = {};", slow, slow_at));
    writer_.open(fmt::format("if ({} < {} && {} < {})", fast, fast_size, slow, slow_size));
    work();
    writer_.close();
    writer_.close();
  }

  void find_permutation() {
    const auto saved = writer_.save();
    writer_.set_hook([&](const graph_node& node, size_t,
                       const std::vector<index_id>& index) -> std::optional<written_value> {
      if (node_ == nullptr && (node.op == "permute" || node.op == "transpose" || node.op == "t"))
        consider(node, index);
      return std::nullopt;
    });
    (void)writer_.read(graph_.outputs.front(), index_);
    writer_.set_hook({});
    writer_.restore(saved);
    if (node_ == nullptr)
      throw no_template{"no permutation of the graph moves the last dimension"};
    // Only numbers that a float holds exactly go through the tile.
    if (kind_of(base_->dtype) != number_kind::number)
      throw no_template{
        fmt::format("a tile of {} belongs to no template family yet", base_->dtype)};
  }

  /// Takes the first permutation after which the operand's last dimension is another one of the
  /// output's.
  void consider(const graph_node& node, const std::vector<index_id>& index) {
    if (node.inputs.empty() || node.inputs[0].kind != operand_kind::value || index.size() < 2)
      return;
    const graph_value& base = writer_.value(node.inputs[0].value);
    std::vector<index_id> inner = index;
    if (node.op == "permute") {
      if (node.inputs.size() < 2 || node.inputs[1].list.size() != index.size())
        return;
      for (size_t i = 0; i < index.size(); ++i)
        inner[front_dimension(node, node.inputs[1].list[i], index.size())] = index[i];
    } else {
      const int64_t a = node.op == "t" ? 0 : integer_argument(node, 1, "dim0", 0);
      const int64_t b = node.op == "t" ? 1 : integer_argument(node, 2, "dim1", 1);
      std::swap(inner[front_dimension(node, a, index.size())],
        inner[front_dimension(node, b, index.size())]);
    }
    for (size_t i = 0; i + 1 < index_.size(); ++i) {
      const size_pair unit{1, 1};
      const bool is_used = std::find(inner.begin(), inner.end(), index_.back()) != inner.end();
      if (inner.back() == index_[i] && is_used && sizes_[i] != unit && sizes_.back() != unit) {
        node_ = &node;
        node_index_ = index;
        base_ = &base;
        base_index_ = inner;
        moved_ = i;
        return;
      }
    }
  }

  const problem& target_;
  const op_graph& graph_;
  value_writer writer_;
  std::vector<size_pair> sizes_;
  std::vector<index_id> shape_;
  std::vector<index_id> index_;
  const graph_node* node_ = nullptr;
  std::vector<index_id> node_index_;
  const graph_value* base_ = nullptr;
  std::vector<index_id> base_index_;
  /// The output's dimension that is the operand's last.
  size_t moved_ = 0;
  int64_t width_ = 1;
};

class transpose_space : public parameter_space {
public:
  transpose_space(const problem& target, const op_graph& graph, size_formulas sizes, int64_t width)
    : parameter_space("transpose",
      {{"r", "rows of threads a block", "more threads for a tile", "more elements a thread"},
        {"t", "numbers along a side of a tile", "longer runs of memory", "less shared memory"},
        {"v", "numbers an access", "fewer and wider memory instructions", "more of them"}},
      all_points(width),
      width > 1 ? std::vector<int64_t>{16, 64, width} : std::vector<int64_t>{8, 0, 0}),
      target_(target), graph_(graph), sizes_(std::move(sizes)),
      promises_(points_with({{32, 64, width}, {8, 64, width}, {4, 64, 0}, {8, 64, 0}})) {}

  std::vector<size_t> promising() const override { return promises_; }

  generated_kernel generate(size_t point) const override {
    return transpose_writer(target_, graph_, sizes_)
      .write(values(point)[0], values(point)[1] == 0 ? usual_tile : values(point)[1],
        std::max<int64_t>(1, values(point)[2]));
  }

private:
  static std::vector<std::vector<int64_t>> all_points(int64_t width) {
    std::vector<std::vector<int64_t>> points{
      {4, 0, 0}, {8, 0, 0}, {16, 0, 0}, {32, 0, 0}, {4, 64, 0}, {8, 64, 0}, {16, 64, 0}};
    if (width > 1)
      points.insert(points.end(),
        {{8, 64, width}, {16, 64, width}, {32, 64, width}, {16, 32, width}, {32, 32, width}});
    return points;
  }

  problem target_;
  op_graph graph_;
  size_formulas sizes_;
  std::vector<size_t> promises_;
};

} // namespace

result<stage_space_ptr> read_transpose_stage(const problem& target, const op_graph& graph) {
  return read_family(target, graph, [&](const size_formulas& sizes) -> stage_space_ptr {
    if (graph.outputs.size() != 1)
      throw no_template{"a map with several outputs is not turned round"};
    for (const auto& node : graph.nodes) {
      if (!is_written_operator(node.op))
        throw no_template{fmt::format("operator '{}' belongs to no template family yet", node.op)};
    }
    // Vectors only where they fit every workload.
    std::vector<std::string> conditions;
    int64_t width = transpose_writer(target, graph, sizes).vector_width(conditions);
    if (!hold_everywhere(target, conditions))
      width = 1;
    auto space = std::make_unique<transpose_space>(target, graph, sizes, width);
    (void)space->generate(0);
    return space;
  });
}

} // namespace gristmill
