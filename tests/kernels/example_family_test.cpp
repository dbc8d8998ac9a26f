#include "examples/kernel_family/running_product.hpp"
#include "tests/kernels/corpus.hpp"
#include "tests/kernels/mock_run.hpp"

#include <doctest/doctest.h>
#include <string>

using namespace gristmill;
using namespace gristmill::test;

namespace {

graph_problem product_problem(const std::string& type, int dim) {
  return make_problem(
    R"({"name": "p", "op_type": "scan", "axes": {"M": {"type": "var"}, "N": {"type": "var"}},
    "inputs": {"x": {"shape": ["M", "N"], "dtype": ")"
      + type + R"("}},
    "outputs": {"y": {"shape": ["M", "N"], "dtype": ")"
      + type + R"("}},
    "reference": "import torch\ndef run(x):\n    return torch.cumprod(x, )"
      + std::to_string(dim) + R"()\n"})",
    R"({"uuid": "w", "axes": {"M": 5, "N": 7}, "inputs": {"x": {"type": "random"}}})",
    R"({"schema": "gristmill.graph/1", "axes": {"M": 3, "N": 5},
      "values": [{"id": 0, "dtype": ")"
      + type + R"(", "shape": [3, 5], "input": "x"},
                 {"id": 1, "dtype": ")"
      + type + R"(", "shape": [3, 5]}],
      "nodes": [{"op": "cumprod", "inputs": [{"value": 0}, )"
      + std::to_string(dim) + R"(], "outputs": [1]}],
      "outputs": [1]})");
}

} // namespace

TEST_CASE("the example family of the documentation reads its graph and no other") {
  const auto fits = product_problem("float32", 1);
  CHECK(read_running_product_stage(fits.target, fits.graph).has_value());
  for (const auto& other : {product_problem("float32", 0), product_problem("bfloat16", 1)})
    CHECK(read_running_product_stage(other.target, other.graph).error().code == errc::unsupported);
}

TEST_CASE("every point of the example family computes running products") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  const auto one = product_problem("float32", -1);
  auto space = read_running_product_stage(one.target, one.graph);
  REQUIRE(space.has_value());
  const workload& work = one.target.workloads[0];
  const auto inputs = drawn_inputs(one.target, work);
  for (size_t point = 0; point < (*space)->size(); ++point) {
    CAPTURE((*space)->key(point));
    const auto outputs = bench.outputs((*space)->generate(point), one.target, work, inputs);
    REQUIRE(outputs.size() == 1);
    float product = 1;
    for (size_t i = 0; i < inputs[0].size(); ++i) {
      product = i % 7 == 0 ? inputs[0][i] : product * inputs[0][i];
      CHECK(outputs[0][i] == product);
    }
  }
  CHECK((*space)->key((*space)->first()) == "running_product/t64");
  CHECK((*space)->distance(0, 2) == 2);
  CHECK((*space)->difference(0, 1) == "64 threads a block instead of 32: fewer blocks");
}
