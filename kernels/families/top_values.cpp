#include "kernels/families/top_values.hpp"

#include "kernels/families/family_common.hpp"
#include "kernels/families/value_writer.hpp"
#include "kernels/plan_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace gristmill {

namespace {

using json = nlohmann::ordered_json;

/// Each element that is wanted costs a walk over the row.
constexpr int64_t wanted_max = 32;

constexpr std::string_view order_code = R"(
// Numbers in an order of unsigned integers, the place behind: the greater comes first, and of equal
// numbers the one with the smaller place.
__device__ __forceinline__ unsigned long long packed_number(float x, unsigned place) {
  const unsigned bits = __float_as_uint(x);
  unsigned key = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  if (x != x)
    key = 0xffffffffu;
  return (unsigned long long)(largest_first ? key : ~key) << 32 | (0xffffffffu - place);
}
__device__ __forceinline__ float unpacked_number(unsigned long long packed) {
  const unsigned upper = unsigned(packed >> 32);
  const unsigned key = largest_first ? upper : ~upper;
  return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}
)";

class top_values_space : public parameter_space {
public:
  top_values_space(const problem& target, const op_graph& graph, size_formulas sizes)
    : parameter_space("topk", {{"r", "rows a block", "fewer blocks", "rows for more SMs"}},
      {{1}, {2}, {4}, {8}}, {4}),
      target_(target), graph_(graph), sizes_(std::move(sizes)) {}

  generated_kernel generate(size_t point) const override {
    const int64_t block_rows = values(point)[0];
    value_writer writer(target_, graph_, sizes_);
    index_pool& pool = writer.pool();
    const graph_node& search = only_search();
    const graph_value& x = writer.value(search.inputs[0].value);
    const graph_value& top = writer.value(search.outputs[0]);
    const graph_operand* count = argument_of(search, 1, "k");
    if (count == nullptr || count->kind != operand_kind::integer || count->varies
      || count->integer < 1 || count->integer > wanted_max)
      refuse_node(search,
        fmt::format("for more than {} elements, or for a number of them that "
                    "varies, belongs to no template family yet",
          wanted_max));
    if (x.shape.empty() || kind_of(x.dtype) != number_kind::number
      || front_dimension(search, integer_argument(search, 2, "dim", -1), x.shape.size()) + 1
        != x.shape.size())
      refuse_node(search, "of that form belongs to no template family yet");
    const bool is_largest = integer_argument(search, 3, "largest", 1) != 0;
    const auto shape = pool.shape(traced_shape(x));
    const std::vector<index_id> leading(shape.begin(), shape.end() - 1);
    const index_id rows = pool.product(leading);
    auto index = pool.unflat(pool.variable("row", rows), leading);
    auto found = index;
    index.push_back(pool.variable("place", shape.back()));
    found.push_back(pool.variable("rank", pool.constant(count->integer)));

    writer.line(
      fmt::format("const index_t row = index_t(blockIdx.x) * {} + threadIdx.x / 32;", block_rows));
    writer.line(fmt::format("if (row >= {})", writer.text(rows)));
    writer.line("  return; // A whole warp leaves.");
    writer.line("unsigned long long last = 0xffffffffffffffffull;");
    writer.open(fmt::format("for (index_t rank = 0; rank < {}; ++rank)", count->integer));
    writer.line("unsigned long long best = 0;");
    writer.open(fmt::format("for (index_t place = threadIdx.x % 32; place < {}; place += 32)",
      writer.text(shape.back())));
    writer.line(fmt::format("const unsigned long long here = packed_number({}, unsigned(place));",
      writer.read_as(x.id, index, number_kind::number)));
    writer.line("if (here < last && here > best)");
    writer.line("  best = here;");
    writer.close();
    writer.line("#pragma unroll");
    writer.open("for (int distance = 16; distance > 0; distance /= 2)");
    writer.line("const unsigned long long other = __shfl_xor_sync(0xffffffffu, best, distance);");
    writer.line("best = other > best ? other : best;");
    writer.close();
    writer.line("last = best;");
    writer.line("const float value = unpacked_number(best);");
    writer.line("const int64_t where = int64_t(0xffffffffu - unsigned(best));");
    writer.set_hook([&](const graph_node& node, size_t output,
                      const std::vector<index_id>& at) -> std::optional<written_value> {
      if (&node != &search)
        return std::nullopt;
      if (at != found)
        refuse_node(node, "is used at other places than its own, which no template does yet");
      return output == 0 ? writer.rounded(top.dtype, {"value", number_kind::number})
                         : written_value{"where", number_kind::integer};
    });
    writer.open("if (threadIdx.x % 32 == 0)");
    const auto sizes = traced_shape(top);
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      const graph_value& output = writer.value(graph_.outputs[i]);
      writer.store(i, writer.text(pool.flat(found, pool.shape(sizes))),
        writer.read(output.id, through_view(pool, traced_shape(output), sizes, found)));
    }
    writer.close();
    writer.close();
    const std::string body = writer.take();
    generated_kernel out;
    out.source =
      fmt::format("// The first {} elements of each row in order: a warp a row.\n", count->integer)
      + writer.preamble(body) + fmt::format("constexpr bool largest_first = {};\n", is_largest)
      + std::string{order_code}
      + fmt::format("\nextern \"C\" __global__ void __launch_bounds__({}) top_rows(\n  {}) {{\n",
        block_rows * 32, writer.parameters().declarations())
      + indented_sizes(writer.parameters()) + body + "}\n";
    json step = {{"op", "launch"}, {"entry", "top_rows"}};
    step["grid"] = {fmt::format("ceil_div({}, {})", pool.plan_text(rows), block_rows), 1, 1};
    step["block"] = {block_rows * 32, 1, 1};
    step["args"] = writer.parameters().arguments();
    out.plan = single_variant_plan(
      {{free_name(target_.def, "WIDE"), writer.wide_expression()}}, json::array({step}), {});
    return out;
  }

private:
  const graph_node& only_search() const {
    const graph_node* found = nullptr;
    for (const auto& node : graph_.nodes) {
      if (node.op != "topk") {
        if (!is_written_operator(node.op))
          throw no_template{
            fmt::format("operator '{}' belongs to no template family yet", node.op)};
        continue;
      }
      if (found != nullptr)
        throw no_template{"two searches in one kernel belong to no template family yet"};
      if (node.inputs.empty() || node.inputs[0].kind != operand_kind::value)
        refuse_node(node, "has no tensor");
      found = &node;
    }
    if (found == nullptr)
      throw no_template{"nothing is searched for"};
    return *found;
  }

  problem target_;
  op_graph graph_;
  size_formulas sizes_;
};

} // namespace

result<stage_space_ptr> read_top_values_stage(const problem& target, const op_graph& graph) {
  return read_family(target, graph, [&](const size_formulas& sizes) -> stage_space_ptr {
    auto space = std::make_unique<top_values_space>(target, graph, sizes);
    (void)space->generate(space->first());
    return space;
  });
}

} // namespace gristmill
