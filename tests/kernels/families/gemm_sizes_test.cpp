#include "kernels/families/gemm.hpp"
#include "tests/kernels/families/contraction_cases.hpp"
#include "tests/kernels/families/product_problem.hpp"

#include <doctest/doctest.h>
#include <string>

using namespace gristmill;
using namespace gristmill::test;

namespace {

const std::vector<product_sizes> odd_sizes = {{1, 1, 1}, {7, 1, 33}, {65, 33, 7}, {1, 130, 64},
  {33, 7, 1}, {16, 64, 40}, {3, 300, 5}, {97, 16, 31}};

tensor reference_of(const tensor& x, const tensor& w, bool left_transposed, bool right_transposed,
  const product_sizes& sizes) {
  tensor y;
  for (int64_t m = 0; m < sizes.rows; ++m) {
    for (int64_t n = 0; n < sizes.columns; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < sizes.depth; ++k)
        sum += static_cast<double>(
                 x[static_cast<size_t>(left_transposed ? k * sizes.rows + m : m * sizes.depth + k)])
          * static_cast<double>(
            w[static_cast<size_t>(right_transposed ? n * sizes.depth + k : k * sizes.columns + n)]);
      y.push_back(static_cast<float>(sum));
    }
  }
  return y;
}

} // namespace

TEST_CASE("points of every space are right at sizes of 1, odd and prime sizes, in every layout") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  size_t turn = 0;
  for (const char* dtype : {"float32", "float16", "bfloat16"}) {
    for (int layout = 0; layout < 4; ++layout) {
      const bool left = layout % 2 == 1;
      const bool right = layout >= 2;
      const product_problem one(dtype, left, right, odd_sizes);
      const auto space = read_gemm_stage(one.target, one.graph);
      REQUIRE_MESSAGE(space, (space ? std::string{} : space.error().what));
      for (size_t work = 0; work < odd_sizes.size(); work += 2) {
        // Another point each time: together they visit all parts of the spaces.
        const size_t point = (turn++ * 37 + 5) % (*space)->size();
        const size_t at = (work + turn) % odd_sizes.size();
        CAPTURE(dtype);
        CAPTURE(layout);
        CAPTURE(at);
        CAPTURE((*space)->key(point));
        const auto inputs = drawn_inputs(one.target, one.target.workloads[at]);
        const auto got =
          bench.outputs((*space)->generate(point), one.target, one.target.workloads[at], inputs);
        const tensor wanted = reference_of(inputs[0], inputs[1], left, right, odd_sizes[at]);
        REQUIRE(got.size() == 1);
        REQUIRE(got[0].size() == wanted.size());
        CHECK(worst_error(got[0], wanted, one.target.def.outputs[0].type) <= 1.0);
      }
    }
  }
}

TEST_CASE("the plain kernel of a product is right at odd sizes, in every layout") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  size_t turn = 0;
  for (const char* dtype : {"float32", "bfloat16"}) {
    for (int layout = 0; layout < 4; ++layout) {
      const bool left = layout % 2 == 1;
      const bool right = layout >= 2;
      const product_problem one(dtype, left, right, odd_sizes);
      const auto kernel = plain_product(one.target, one.graph);
      REQUIRE_MESSAGE(kernel, (kernel ? std::string{} : kernel.error().what));
      const size_t at = turn++ % odd_sizes.size();
      CAPTURE(dtype);
      CAPTURE(layout);
      CAPTURE(at);
      const auto inputs = drawn_inputs(one.target, one.target.workloads[at]);
      const auto got = bench.outputs(*kernel, one.target, one.target.workloads[at], inputs);
      const tensor wanted = reference_of(inputs[0], inputs[1], left, right, odd_sizes[at]);
      CHECK(worst_error(got.at(0), wanted, one.target.def.outputs[0].type) <= 1.0);
    }
  }
}
