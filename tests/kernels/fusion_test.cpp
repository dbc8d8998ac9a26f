#include "kernels/fusion.hpp"
#include "kernels/row_passes.hpp"
#include "tests/kernels/corpus.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>

using namespace gristmill;
using namespace gristmill::test;

namespace {

fused_kernel fused(const graph_problem& from) {
  auto kernel = fuse(from.graph, from.target.def);
  REQUIRE_MESSAGE(
    kernel, from.target.name << ": " << (kernel ? std::string{} : kernel.error().what));
  return *kernel;
}

std::string reason(const graph_problem& from) {
  const auto kernel = fuse(from.graph, from.target.def);
  REQUIRE_FALSE(kernel);
  CHECK(kernel.error().code == errc::unsupported);
  return kernel.error().what;
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

int count(const fused_kernel& kernel, ir_op op) {
  return static_cast<int>(std::count_if(
    kernel.nodes.begin(), kernel.nodes.end(), [&](const ir_node& node) { return node.op == op; }));
}

graph_operand tensor_operand(int64_t id) {
  graph_operand operand;
  operand.kind = operand_kind::value;
  operand.value = id;
  return operand;
}

/// The kernel without the names in it.
std::string shape_of(const fused_kernel& kernel) {
  std::string text = fmt::format("{} {}\n", static_cast<int>(kernel.family), kernel.space.size());
  for (const auto& node : kernel.nodes)
    text += fmt::format("{} {} {} {} {} {} {} {}\n", to_string(node.op), node.args[0], node.args[1],
      node.args[2], node.number, node.load, node.scalar, node.is_bool);
  for (const auto& load : kernel.loads) {
    text += fmt::format("load {} {}", load.input, static_cast<int>(load.type));
    for (const auto& term : load.index)
      text += fmt::format(" {}{}", term.dim, term.offset.empty() ? "" : "+");
    text += "\n";
  }
  for (const auto& output : kernel.outputs)
    text += fmt::format("out {} {} {}\n", output.output, output.node, output.is_per_row);
  return text;
}

} // namespace

TEST_CASE("every graph of the corpus is one fused kernel of the expected family") {
  for (const auto& one : whole_corpus()) {
    CAPTURE(one.target.name);
    const bool is_row = says(one.target.name, "norm") || says(one.target.name, "softmax");
    CHECK(fused(one).family == (is_row ? template_family::row : template_family::elementwise));
  }
}

TEST_CASE("names of problem, axes and tensors decide nothing") {
  for (const auto& one : whole_corpus()) {
    CAPTURE(one.target.name);
    const auto other = renamed(one);
    CHECK(structure_of(other.graph) == structure_of(one.graph));
    CHECK(shape_of(fused(other)) == shape_of(fused(one)));
  }
}

TEST_CASE("an operator without a family is named") {
  CHECK(
    reason(map_problem(R"({"op": "mm", "inputs": [{"value": 0}, {"value": 0}], "outputs": [1]})"))
    == "operator 'mm' belongs to no template family yet");
  CHECK(says(
    reason(map_problem(R"({"op": "sum", "inputs": [{"value": 0}, [0], true], "outputs": [1]})")),
    "operator 'sum'"));
  CHECK(says(reason(map_problem(
               R"({"op": "_softmax", "inputs": [{"value": 0}, 0, false], "outputs": [1]})")),
    "operator '_softmax'"));
}

TEST_CASE("an operator that no output needs does not matter") {
  CHECK(fuse(map_problem(R"({"op": "mm", "inputs": [{"value": 0}, {"value": 0}], "outputs": [2]},
                            {"op": "neg", "inputs": [{"value": 0}], "outputs": [1]})")
               .graph,
    map_problem(R"({"op": "neg", "inputs": [{"value": 0}], "outputs": [1]})").target.def));
}

TEST_CASE("a number that follows the shape is not taken for a constant") {
  CHECK(says(reason(map_problem(R"({"op": "mul", "inputs": [{"value": 0},
      {"number": 0.37, "varies": true}], "outputs": [1]})")),
    "from the shape"));
}

TEST_CASE("a softmax is a maximum, a sum and an exponential, and can be done online") {
  const auto kernel = fused(
    map_problem(R"({"op": "_softmax", "inputs": [{"value": 0}, -1, false], "outputs": [1]})"));
  CHECK(count(kernel, ir_op::reduce) == 2);
  // The exponential below the sum and the one in the result are one node.
  CHECK(count(kernel, ir_op::exp) == 1);
  REQUIRE(online_pairs(kernel).size() == 1);
  CHECK(passes_of(kernel, false).size() == 3);
  const auto passes = passes_of(kernel, true);
  REQUIRE(passes.size() == 2);
  CHECK(passes[0].pairs.size() == 1);
  CHECK(passes[0].reductions.empty());
}

TEST_CASE("reductions that do not need each other share a pass") {
  const auto kernel =
    fused(map_problem(R"({"op": "sum", "inputs": [{"value": 0}, [1], true], "outputs": [10]},
      {"op": "amax", "inputs": [{"value": 0}, [1], true], "outputs": [11]},
      {"op": "mul", "inputs": [{"value": 0}, {"value": 10}], "outputs": [2]},
      {"op": "add", "inputs": [{"value": 2}, {"value": 11}], "outputs": [1]})"));
  const auto passes = passes_of(kernel, false);
  REQUIRE(passes.size() == 2);
  CHECK(passes[0].reductions.size() == 2);
}

TEST_CASE("values that the reference holds in 16 bits are rounded, once") {
  for (const auto& one : builtin_corpus()) {
    if (one.target.name != "rmsnorm")
      continue;
    const auto kernel = fused(one);
    // The input is bfloat16 already and the intermediate values are float32: one rounding is left.
    CHECK(count(kernel, ir_op::round_bf16) == 1);
    auto other = one;
    for (auto& value : other.graph.values)
      value.dtype = "bfloat16";
    CHECK(count(fused(other), ir_op::round_bf16) > 3);
  }
}

TEST_CASE("a split becomes two loads of one input, the second with an offset") {
  for (const auto& one : builtin_corpus()) {
    if (one.target.name != "silu_and_mul")
      continue;
    const auto kernel = fused(one);
    REQUIRE(kernel.loads.size() == 2);
    CHECK(kernel.loads[0].index[1].offset.empty());
    CHECK_FALSE(kernel.loads[1].index[1].offset.empty());
  }
}

TEST_CASE("a view that merges dimensions is no index map of ours") {
  auto one = map_problem(R"({"op": "neg", "inputs": [{"value": 0}], "outputs": [1]})");
  one.graph.nodes[0].inputs[0].value = 2;
  one.graph.values[2].shape = {35};
  one.graph.nodes.insert(one.graph.nodes.begin(), graph_node{"view", {tensor_operand(0)}, {2}, {}});
  one.graph.values[1].shape = {35};
  one.target.def.outputs[0].shape = {"M"};
  CHECK(says(reason(one), "operator 'view' merges or splits dimensions"));
}

TEST_CASE("sizes that were equal only in the trace become a condition of the plan") {
  auto one = map_problem(R"({"op": "neg", "inputs": [{"value": 0}], "outputs": [1]})");
  CHECK(fused(one).conditions.empty());
  one.target.def.inputs[0].shape[1] = "7";
  CHECK(fused(one).conditions == std::vector<std::string>{"dim(in.x, 1) == dim(out.y, 1)"});
}

TEST_CASE("reductions of other rows than the rest are refused") {
  auto one = map_problem(R"({"op": "sum", "inputs": [{"value": 0}, [1], true], "outputs": [10]},
    {"op": "sum", "inputs": [{"value": 0}, [1], false], "outputs": [11]},
    {"op": "mul", "inputs": [{"value": 0}, {"value": 10}], "outputs": [2]},
    {"op": "mul", "inputs": [{"value": 2}, {"value": 11}], "outputs": [1]})");
  one.graph.values[3].source = graph_source::input;
  one.graph.values[3].name = "w";
  one.graph.values[3].shape = {7};
  one.graph.values[11].shape = {};
  one.graph.nodes[1].inputs[0].value = 3;
  one.graph.nodes[1].inputs[1].list = {0};
  one.target.def.inputs.push_back(one.target.def.inputs[0]);
  one.target.def.inputs[1].name = "w";
  one.target.def.inputs[1].shape = {"N"};
  CHECK(says(reason(one), "operator 'sum' reduces rows of another shape"));
}

TEST_CASE("a declared output and a traced one must be of one type") {
  auto one = map_problem(R"({"op": "neg", "inputs": [{"value": 0}], "outputs": [1]})");
  one.target.def.outputs[0].type = dtype::bfloat16;
  CHECK(says(reason(one), "declared bfloat16 but traced as float32"));
  one.target.def.outputs[0].type = dtype::int64;
  CHECK(says(reason(one), "int64"));
}

TEST_CASE("a long chain is refused, not followed into the ground") {
  op_graph graph = map_problem(R"({"op": "neg", "inputs": [{"value": 0}], "outputs": [1]})").graph;
  const auto def =
    map_problem(R"({"op": "neg", "inputs": [{"value": 0}], "outputs": [1]})").target.def;
  graph.nodes.clear();
  for (int64_t id = 100; id < 3000; ++id) {
    graph.values.push_back({id, "float32", {5, 7}, {}, graph_source::computed, "", {}});
    graph.nodes.push_back({"sin", {tensor_operand(id == 100 ? 0 : id - 1)}, {id}, {}});
  }
  graph.outputs = {2999};
  const auto kernel = fuse(graph, def);
  REQUIRE_FALSE(kernel);
  CHECK(says(kernel.error().what, "too long"));
}
