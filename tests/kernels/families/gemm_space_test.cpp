#include "kernels/families/contraction.hpp"
#include "kernels/families/convolution.hpp"
#include "kernels/families/gemm.hpp"
#include "kernels/families/gemm_points.hpp"
#include "protocol/plan.hpp"
#include "tests/kernels/families/contraction_cases.hpp"
#include "tests/kernels/families/product_problem.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <set>
#include <string>

using namespace gristmill;
using namespace gristmill::test;

namespace {

const std::string product =
  R"({"op": "mm", "inputs": [{"value": 0}, {"value": 1}], "outputs": [2]})";

std::string refusal(stage_reader read, const std::string& nodes) {
  const node_problem one(nodes);
  const auto space = read(one.target, one.graph);
  REQUIRE_FALSE(space);
  CHECK(space.error().code == errc::unsupported);
  return space.error().what;
}

gemm_facts facts(int64_t rows, int64_t columns, int64_t depth, bool has_tensor_cores) {
  gemm_facts of;
  of.shapes = {{1, rows, columns, depth, 2 * (rows * depth + columns * depth + rows * columns)}};
  of.has_tensor_cores = has_tensor_cores;
  of.left_width = has_tensor_cores ? 8 : 4;
  of.right_width = of.left_width;
  of.right_along_depth = true;
  of.many_is_left = columns < rows;
  return of;
}

gemm_point first(const gemm_facts& of) {
  return first_gemm_point(feasible_gemm_points(of), of);
}

bool has_point(const stage_space& space, const std::string& part) {
  for (size_t point = 0; point < space.size(); ++point) {
    if (space.key(point).find(part) != std::string::npos)
      return true;
  }
  return false;
}

} // namespace

TEST_CASE("what is no contraction is refused with a reason in words") {
  const std::string sum = R"({"op": "relu", "inputs": [{"value": 0}], "outputs": [2]})";
  CHECK(refusal(read_gemm_stage, sum) == "there is no matrix product in it");
  CHECK(refusal(read_convolution_stage, product) == "there is no convolution in it");
}

TEST_CASE("two products, a reduction beside one, and a product nobody uses are refused") {
  const std::string first =
    R"({"op": "mm", "inputs": [{"value": 0}, {"value": 1}], "outputs": [3]}, )";
  const std::string second =
    R"({"op": "mm", "inputs": [{"value": 0}, {"value": 1}], "outputs": [4]}, )";
  CHECK(
    refusal(read_gemm_stage,
      first + second + R"({"op": "add", "inputs": [{"value": 3}, {"value": 4}], "outputs": [2]})")
    == "two products in one stage belong to no template family yet");
  CHECK(refusal(read_gemm_stage,
          first + R"({"op": "_softmax", "inputs": [{"value": 3}, -1, false], "outputs": [2]})")
    == "operator '_softmax' beside a contraction belongs to no template family yet");
  CHECK(refusal(read_gemm_stage,
          first + R"({"op": "full_like", "inputs": [{"value": 3}, 2], "outputs": [2]})")
    == "the outputs do not depend on the product");
}

TEST_CASE("a result that is used transposed by an operator beside it is refused") {
  // Square in the trace only by name: the second operand is the result at another place.
  const std::string nodes = R"({"op": "mm", "inputs": [{"value": 0}, {"value": 1}], "outputs": [3]},
    {"op": "slice", "inputs": [{"value": 3}, 1, 0, 11, 2], "outputs": [4]},
    {"op": "add", "inputs": [{"value": 3}, {"value": 4}], "outputs": [2]})";
  CHECK(refusal(read_gemm_stage, nodes)
    == "operator 'slice' with a step belongs to no template family yet");
}

TEST_CASE("a transposed convolution is refused") {
  for (const auto& one : contraction_cases()) {
    if (one.name != "strided_convolution")
      continue;
    op_graph graph = one.graph;
    for (auto& node : graph.nodes) {
      if (node.op == "convolution")
        node.inputs[6].integer = 1;
    }
    const auto space = read_convolution_stage(one.target, graph);
    REQUIRE_FALSE(space);
    CHECK(space.error().what == "a transposed convolution belongs to no template family yet");
  }
}

TEST_CASE("every point fits: threads, shared memory and registers of every GPU of our table") {
  for (const auto& of : {facts(4096, 4096, 4096, true), facts(4096, 4096, 4096, false),
         facts(1, 4096, 4096, true), facts(300, 70, 16000, true), facts(8192, 64, 64, false)}) {
    for (const gemm_point& point : feasible_gemm_points(of)) {
      CHECK(point.block_threads() >= 32);
      CHECK(point.block_threads() <= 1024);
      CHECK(point.shared_bytes(true, true) <= 99 * 1024);
      if (point.path != gemm_path::mma)
        CHECK(point.shared_bytes(true, true) <= 48 * 1024);
      CHECK(gemm_point::of(point.values()) == point);
    }
  }
}

TEST_CASE("tiles much larger than the result and splits that fill nothing are left out") {
  for (const gemm_point& point : feasible_gemm_points(facts(32, 32, 4096, true))) {
    CHECK(point.bm < 64);
    CHECK(point.bn < 64);
  }
  // 1024 tiles of 128 x 128 keep every multiprocessor busy: no second sum is worth it.
  for (const gemm_point& point : feasible_gemm_points(facts(4096, 4096, 4096, true)))
    CHECK(point.splits == 1);
}

TEST_CASE("the first point follows the shape") {
  CHECK(first(facts(8192, 8192, 8192, true)).path == gemm_path::mma);
  CHECK(
    first(facts(8192, 8192, 8192, true)).bm * first(facts(8192, 8192, 8192, true)).bn >= 128 * 128);
  CHECK(first(facts(4096, 4096, 4096, false)).path == gemm_path::ffma);
  CHECK(first(facts(4096, 4096, 4096, false)).bm == 128);
  CHECK(first(facts(1, 4096, 4096, true)).path == gemm_path::dots);
  CHECK(first(facts(4096, 1, 4096, false)).path == gemm_path::dots);
  // A small result of a long depth: tiles alone would leave the GPU empty.
  CHECK(first(facts(256, 256, 16384, true)).splits > 1);
  CHECK(first(facts(64, 64, 4, false)).path == gemm_path::direct);
}

TEST_CASE("tensor cores are for 16-bit operands only, also where the product is wider") {
  const std::vector<product_sizes> sizes{{64, 64, 64}};
  const auto space_of = [&](const std::string& dtype) {
    const product_problem one(dtype, false, false, sizes);
    auto space = read_gemm_stage(one.target, one.graph);
    REQUIRE(space);
    return std::move(*space);
  };
  CHECK_FALSE(has_point(*space_of("float32"), "/mma/"));
  CHECK(has_point(*space_of("float16"), "/mma/"));
  CHECK(has_point(*space_of("bfloat16"), "/mma/"));
}

TEST_CASE("keys differ, distances are those of steps, and the same point gives the same text") {
  const product_problem one("bfloat16", false, true, {{64, 256, 64}, {300, 256, 300}});
  const auto space = read_gemm_stage(one.target, one.graph);
  REQUIRE(space);
  std::set<std::string> keys;
  for (size_t a = 0; a < (*space)->size(); ++a) {
    const std::string key = (*space)->key(a);
    CHECK(keys.insert(key).second);
    CHECK(key.starts_with("gemm/"));
    CHECK(key.find_first_of(" +@") == std::string::npos);
    CHECK((*space)->distance(a, a) == 0);
    CHECK((*space)->distance(a, (*space)->first()) == (*space)->distance((*space)->first(), a));
    if (a != (*space)->first())
      CHECK((*space)->distance(a, (*space)->first()) > 0);
  }
  const size_t point = (*space)->first();
  CHECK((*space)->generate(point).source == (*space)->generate(point).source);
  CHECK(parse_plan((*space)->generate(point).plan));
}

TEST_CASE("sizes are products of axes: labels come apart, quotients are exact or nothing") {
  const product_problem one("float32", false, false, {{4, 4, 4}});
  const size_names names(one.target, one.graph);
  CHECK(names.of_label("12").is(12));
  CHECK(names.of_traced(5, 13) == size_product{1, {"M"}});
  CHECK(names.of_traced(5, 5) == size_product{5, {}});
  CHECK_FALSE(names.of_traced(6, 12));
  const size_product mk = size_product{2, {"M"}} * size_product{3, {"K"}};
  CHECK(mk.text() == "6 * axis.K * axis.M");
  CHECK(divided(mk, {3, {"K"}}) == size_product{2, {"M"}});
  CHECK_FALSE(divided(mk, {4, {"K"}}));
  CHECK_FALSE(divided(mk, {1, {"N"}}));
}

TEST_CASE("heads that are split behind a product become segments of its columns") {
  for (const auto& one : contraction_cases()) {
    if (one.name != "split_heads_projection")
      continue;
    const auto what = read_contraction(one.target, one.graph, contraction_kind::matrix_product);
    REQUIRE_MESSAGE(what, (what ? std::string{} : what.error().what));
    CHECK(what->size(index_group::row) == size_product{1, {"B", "S"}});
    CHECK(what->size(index_group::column).is(24));
    CHECK(what->size(index_group::depth).is(16));
    const index_layout& output = what->output_layouts.front();
    REQUIRE(output.of(index_group::column).size() == 2);
    CHECK(output.is_contiguous(index_group::column));
    CHECK(output.of(index_group::row).size() == 2);
    // The weight does not care: one stride for rows of it, one for the depth.
    CHECK(what->layouts[static_cast<size_t>(what->right.plain_load)].of(index_group::column).size()
      == 1);
  }
}

TEST_CASE("the plain kernel of a product does not know the workloads") {
  const product_problem small("bfloat16", false, true, {{4, 8, 16}});
  const product_problem large("bfloat16", false, true, {{4096, 4096, 4096}, {1, 1, 1}});
  const auto a = plain_product(small.target, small.graph);
  const auto b = plain_product(large.target, large.graph);
  REQUIRE(a);
  REQUIRE(b);
  CHECK(a->source == b->source);
  CHECK(a->plan == b->plan);
}
