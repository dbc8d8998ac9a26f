#include "examples/kernel_family/running_product.hpp"

#include "kernels/plan_text.hpp"

#include <fmt/format.h>
#include <utility>

namespace gristmill {

namespace {

class running_product_space final : public parameter_space {
public:
  running_product_space(const definition& def)
    : parameter_space("running_product", {{"t", "threads a block", "fewer blocks", "more blocks"}},
      {{32}, {64}, {128}, {256}}, {64}),
      def_(def) {}

  generated_kernel generate(size_t point) const override {
    const std::string& x = def_.inputs[0].name;
    const std::string rows = dim_text("in", x, 0);
    const int64_t threads = values(point)[0];
    generated_kernel out;
    out.source = R"(extern "C" __global__ void running_product(
  const float* __restrict__ x, float* __restrict__ y, int rows, int columns) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  float product = 1.0f;
  for (int i = 0; i < columns; ++i) {
    product *= x[(long long)row * columns + i];
    y[(long long)row * columns + i] = product;
  }
}
)";
    out.plan = fmt::format(R"plan({{"schema": "gristmill.plan/1", "variants": [{{"steps": [
  {{"op": "launch", "id": "products", "entry": "running_product",
   "grid": ["ceil_div({0}, {1})", 1, 1], "block": [{1}, 1, 1],
   "args": ["{2}", "{3}", "{0}", "{4}"]}}]}}]}})plan",
      rows, threads, qualified_name("in", x), qualified_name("out", def_.outputs[0].name),
      dim_text("in", x, 1));
    return out;
  }

private:
  definition def_;
};

} // namespace

result<stage_space_ptr> read_running_product_stage(const problem& target, const op_graph& graph) {
  const definition& def = target.def;
  const auto is_matrix = [](const tensor_spec& t) {
    return t.type == dtype::float32 && !t.is_scalar && t.shape.size() == 2;
  };
  if (graph.nodes.size() != 1 || graph.nodes[0].op != "cumprod" || graph.nodes[0].inputs.size() < 2)
    return fail(errc::unsupported, "not one running product");
  const graph_operand& dim = graph.nodes[0].inputs[1];
  if (dim.kind != operand_kind::integer || (dim.integer != 1 && dim.integer != -1))
    return fail(errc::unsupported, "the running product is not along the last dimension");
  if (def.inputs.size() != 1 || def.outputs.size() != 1 || !is_matrix(def.inputs[0])
    || !is_matrix(def.outputs[0]))
    return fail(errc::unsupported, "only float32 matrices have running products here");
  return stage_space_ptr{std::make_unique<running_product_space>(def)};
}

} // namespace gristmill
