#include "kernels/families/transpose.hpp"

#include "kernels/families/family_common.hpp"
#include "kernels/families/value_writer.hpp"
#include "kernels/plan_text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace gristmill {

namespace {

using json = nlohmann::ordered_json;

/// Numbers along each side of a tile, unless a point says otherwise.
constexpr int64_t usual_tile = 32;

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

  /// `tile` is a multiple of `rows`.
  generated_kernel write(int64_t rows, int64_t tile) {
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
    writer_.line(fmt::format("const int x = threadIdx.x % {};", tile));
    writer_.line(fmt::format("const int y = threadIdx.x / {};", tile));
    // In: neighbouring threads along the dimension that is last in memory.
    step(rows, tile, fmt::format("i{}_", moved_), "first_moved + x", fmt::format("i{}_", last),
      "first_last + j", moved_size, last_size, [&] {
        writer_.line(fmt::format(
          "staged[j][x] = {};", writer_.read_as(base_->id, base_index_, number_kind::number)));
      });
    writer_.line("__syncthreads();");
    step(rows, tile, fmt::format("i{}_", last), "first_last + x", fmt::format("i{}_", moved_),
      "first_moved + j", last_size, moved_size, [&] {
        writer_.set_hook([&](const graph_node& node, size_t,
                           const std::vector<index_id>& index) -> std::optional<written_value> {
          if (&node != node_ || index != node_index_)
            return std::nullopt;
          return written_value{"staged[x][j]", number_kind::number};
        });
        writer_.store(
          0, writer_.text(pool.flat(index_, shape_)), writer_.read(graph_.outputs.front(), index_));
        writer_.set_hook({});
      });
    const std::string body = writer_.take();
    generated_kernel out;
    out.source = fmt::format("// One fused map that turns its operand round: tiles of {0} x {0} go "
                             "through shared memory.\n",
                   tile)
      + writer_.preamble(body)
      + fmt::format("\nextern \"C\" __global__ void __launch_bounds__({}) turned_map(\n  {}) {{\n",
        tile * rows, writer_.parameters().declarations())
      + indented_sizes(writer_.parameters()) + body + "}\n";
    json launch = {{"op", "launch"}, {"entry", "turned_map"}};
    launch["grid"] = {
      fmt::format("ceil_div({}, {}) * ceil_div({}, {}) * {}", pool.plan_text(shape_[last]), tile,
        pool.plan_text(shape_[moved_]), tile, pool.plan_text(pool.product(outer_shape))),
      1, 1};
    launch["block"] = {tile * rows, 1, 1};
    launch["args"] = writer_.parameters().arguments();
    out.plan = single_variant_plan(
      {{free_name(target_.def, "WIDE"), writer_.wide_expression()}}, json::array({launch}), {});
    return out;
  }

private:
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
};

class transpose_space : public parameter_space {
public:
  transpose_space(const problem& target, const op_graph& graph, size_formulas sizes)
    : parameter_space("transpose",
      {{"r", "rows of threads a block", "more threads for a tile", "more elements a thread"},
        {"t", "numbers along a side of a tile", "longer runs of memory", "less shared memory"}},
      {{4, 0}, {8, 0}, {16, 0}, {32, 0}, {4, 64}, {8, 64}, {16, 64}}, {8, 0}),
      target_(target), graph_(graph), sizes_(std::move(sizes)) {}

  generated_kernel generate(size_t point) const override {
    return transpose_writer(target_, graph_, sizes_)
      .write(values(point)[0], values(point)[1] == 0 ? usual_tile : values(point)[1]);
  }

private:
  problem target_;
  op_graph graph_;
  size_formulas sizes_;
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
    auto space = std::make_unique<transpose_space>(target, graph, sizes);
    (void)space->generate(0);
    return space;
  });
}

} // namespace gristmill
