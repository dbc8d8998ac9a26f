#include "kernels/families/scan.hpp"

#include "kernels/families/family_common.hpp"
#include "kernels/families/value_writer.hpp"
#include "kernels/plan_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace gristmill {

namespace {

using json = nlohmann::ordered_json;

constexpr std::string_view block_code = R"(
__device__ __forceinline__ number from_below(number x, int distance) {
#if IS_INTEGER
  return number(__shfl_up_sync(0xffffffffu, (unsigned long long)(x), unsigned(distance)));
#else
  return __shfl_up_sync(0xffffffffu, x, unsigned(distance));
#endif
}

// The combination of a thread's value with those of all threads below it; `all` is that of the
// whole block.
__device__ __forceinline__ number scanned(number value, number& all) {
  __shared__ number sums[warps];
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const number other = from_below(value, distance);
    if (lane >= distance)
      value = combined(other, value);
  }
  __syncthreads(); // The sums of the step before may still be read.
  if (lane == 31)
    sums[threadIdx.x / 32] = value;
  __syncthreads();
  number below = neutral;
  all = neutral;
#pragma unroll 1
  for (int warp = 0; warp < warps; ++warp) {
    if (warp == int(threadIdx.x / 32))
      below = all;
    all = combined(all, sums[warp]);
  }
  return combined(below, value);
}
)";

class scan_space : public parameter_space {
public:
  scan_space(const problem& target, const op_graph& graph, size_formulas sizes)
    : parameter_space("scan", {{"t", "threads a row", "fewer steps along a row", "cheaper steps"}},
      {{32}, {128}, {256}, {512}}, {256}),
      target_(target), graph_(graph), sizes_(std::move(sizes)) {}

  generated_kernel generate(size_t point) const override {
    const int64_t threads = values(point)[0];
    value_writer writer(target_, graph_, sizes_);
    index_pool& pool = writer.pool();
    const graph_node& scan = only_scan();
    const graph_value& x = writer.value(scan.inputs[0].value);
    const graph_value& y = writer.value(scan.outputs[0]);
    const number_kind kind = kind_of(y.dtype);
    if (kind == number_kind::truth || x.shape.empty())
      refuse_node(scan, "of that form belongs to no template family yet");
    if (front_dimension(scan, integer_argument(scan, 1, "dim", -1), x.shape.size()) + 1
      != x.shape.size())
      refuse_node(scan, "along another dimension than the last belongs to no template family yet");
    const auto sizes = traced_shape(y);
    const auto shape = pool.shape(sizes);
    const std::vector<index_id> leading(shape.begin(), shape.end() - 1);
    const index_id rows = pool.product(leading);
    auto index = pool.unflat(pool.variable("row", rows), leading);
    index.push_back(pool.variable("place", shape.back()));
    const std::string length = writer.text(shape.back());

    writer.line("const index_t row = blockIdx.x;");
    writer.line("number carry = neutral;");
    writer.open(fmt::format("for (index_t start = 0; start < {}; start += {})", length, threads));
    writer.line("const index_t place = start + threadIdx.x;");
    writer.line("number value = neutral;");
    writer.open(fmt::format("if (place < {})", length));
    writer.line(fmt::format("value = {};", writer.read_as(x.id, index, kind)));
    writer.close();
    writer.line("number all;");
    writer.line("value = combined(carry, scanned(value, all));");
    writer.line("carry = combined(carry, all);");
    writer.set_hook([&](const graph_node& node, size_t,
                      const std::vector<index_id>& at) -> std::optional<written_value> {
      if (&node != &scan)
        return std::nullopt;
      if (at != index)
        refuse_node(node, "is used at other places than its own, which no template does yet");
      return writer.rounded(y.dtype, {"value", kind});
    });
    writer.open(fmt::format("if (place < {})", length));
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      const graph_value& output = writer.value(graph_.outputs[i]);
      writer.store(i, writer.text(pool.flat(index, shape)),
        writer.read(output.id, through_view(pool, traced_shape(output), sizes, index)));
    }
    writer.close();
    writer.close();
    const std::string body = writer.take();
    const bool is_sum = plain_op(scan.op) == "cumsum";
    const bool is_integer = kind == number_kind::integer;
    generated_kernel out;
    out.source = fmt::format("// Running {} along rows: {} threads a row.\n",
                   is_sum ? "sums" : "products", threads)
      + writer.preamble(body)
      + fmt::format("#define IS_INTEGER {}\nusing number = {};\nconstexpr int warps = {};\n"
                    "constexpr number neutral = {};\n"
                    "__device__ __forceinline__ number combined(number a, number b) {{\n"
                    "  return a {} b;\n}}\n",
        is_integer ? 1 : 0, is_integer ? "int64_t" : "float", threads / 32, is_sum ? 0 : 1,
        is_sum ? "+" : "*")
      + std::string{block_code}
      + fmt::format("\nextern \"C\" __global__ void __launch_bounds__({}) scan_rows(\n  {}) {{\n",
        threads, writer.parameters().declarations())
      + indented_sizes(writer.parameters()) + body + "}\n";
    json step = {{"op", "launch"}, {"entry", "scan_rows"}};
    step["grid"] = {pool.plan_text(rows), 1, 1};
    step["block"] = {threads, 1, 1};
    step["args"] = writer.parameters().arguments();
    out.plan = single_variant_plan(
      {{free_name(target_.def, "WIDE"), writer.wide_expression()}}, json::array({step}), {});
    return out;
  }

private:
  const graph_node& only_scan() const {
    const graph_node* found = nullptr;
    for (const auto& node : graph_.nodes) {
      const std::string_view op = plain_op(node.op);
      if (op != "cumsum" && op != "cumprod") {
        if (!is_written_operator(op))
          throw no_template{
            fmt::format("operator '{}' belongs to no template family yet", node.op)};
        continue;
      }
      if (found != nullptr)
        throw no_template{"two scans in one kernel belong to no template family yet"};
      if (node.inputs.empty() || node.inputs[0].kind != operand_kind::value)
        refuse_node(node, "has no tensor");
      found = &node;
    }
    if (found == nullptr)
      throw no_template{"nothing is scanned"};
    return *found;
  }

  problem target_;
  op_graph graph_;
  size_formulas sizes_;
};

} // namespace

result<stage_space_ptr> read_scan_stage(const problem& target, const op_graph& graph) {
  return read_family(target, graph, [&](const size_formulas& sizes) -> stage_space_ptr {
    auto space = std::make_unique<scan_space>(target, graph, sizes);
    (void)space->generate(space->first());
    return space;
  });
}

} // namespace gristmill
