#include "kernels/families/indexed_map.hpp"

#include "kernels/families/family_common.hpp"
#include "kernels/families/value_writer.hpp"
#include "kernels/plan_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace gristmill {

namespace {

using json = nlohmann::ordered_json;

class indexed_map_space : public parameter_space {
public:
  indexed_map_space(const problem& target, const op_graph& graph, size_formulas sizes)
    : parameter_space("index",
      {{"t", "threads a block", "fewer, larger blocks", "more, smaller blocks"},
        {"e", "elements a thread", "more reads in flight", "more threads"}},
      all_points(), {256, 4}),
      target_(target), graph_(graph), sizes_(std::move(sizes)) {}

  generated_kernel generate(size_t point) const override {
    const int64_t threads = values(point)[0];
    const int64_t unroll = values(point)[1];
    value_writer writer(target_, graph_, sizes_);
    index_pool& pool = writer.pool();
    const graph_value& first = writer.value(graph_.outputs.front());
    const auto shape = pool.shape(traced_shape(first));
    const index_id total = pool.product(shape);
    const std::string count = writer.text(total);
    writer.line(fmt::format(
      "const index_t first = index_t(blockIdx.x) * {} + threadIdx.x;", threads * unroll));
    writer.line("#pragma unroll");
    writer.open(fmt::format("for (int u = 0; u < {}; ++u)", unroll));
    writer.line(fmt::format("const index_t element = first + u * {};", threads));
    writer.open(fmt::format("if (element < {})", count));
    const auto index = pool.unflat(pool.variable("element", total), shape);
    for (size_t i = 0; i < graph_.outputs.size(); ++i)
      writer.store(i, "element", writer.read(graph_.outputs[i], index));
    writer.close();
    writer.close();
    const std::string body = writer.take();
    generated_kernel out;
    out.source = fmt::format("// One fused kernel over the elements of the output: {} threads a "
                             "block, {} elements a thread.\n",
                   threads, unroll)
      + writer.preamble(body)
      + fmt::format("\nextern \"C\" __global__ void __launch_bounds__({}) indexed_map(\n  {}) {{\n",
        threads, writer.parameters().declarations())
      + indented_sizes(writer.parameters()) + body + "}\n";
    json step = {{"op", "launch"}, {"entry", "indexed_map"}};
    step["grid"] = {fmt::format("ceil_div({}, {})", pool.plan_text(total), threads * unroll), 1, 1};
    step["block"] = {threads, 1, 1};
    step["args"] = writer.parameters().arguments();
    out.plan = single_variant_plan(
      {{free_name(target_.def, "WIDE"), writer.wide_expression()}}, json::array({step}), {});
    return out;
  }

private:
  static std::vector<std::vector<int64_t>> all_points() {
    std::vector<std::vector<int64_t>> points;
    for (int64_t threads : {128, 256, 512}) {
      for (int64_t unroll : {1, 2, 4, 8})
        points.push_back({threads, unroll});
    }
    return points;
  }

  problem target_;
  op_graph graph_;
  size_formulas sizes_;
};

} // namespace

result<stage_space_ptr> read_indexed_map_stage(const problem& target, const op_graph& graph) {
  return read_family(target, graph, [&](const size_formulas& sizes) -> stage_space_ptr {
    for (int64_t id : graph.outputs) {
      if (traced_shape(*find_value(graph, id))
        != traced_shape(*find_value(graph, graph.outputs.front())))
        throw no_template{"outputs of different shapes belong to no template family yet"};
    }
    for (const auto& node : graph.nodes) {
      if (!is_written_operator(node.op))
        throw no_template{fmt::format("operator '{}' belongs to no template family yet", node.op)};
    }
    auto space = std::make_unique<indexed_map_space>(target, graph, sizes);
    (void)space->generate(space->first());
    return space;
  });
}

} // namespace gristmill
