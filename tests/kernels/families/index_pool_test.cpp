#include "kernels/families/index_pool.hpp"
#include "kernels/pointwise_operators.hpp"
#include "tests/kernels/corpus.hpp"

#include <doctest/doctest.h>
#include <string>
#include <vector>

using namespace gristmill;
using namespace gristmill::test;

namespace {

/// A problem with the variable axes M (5, then 17) and N (7, then 13) and the constant D = 4.
graph_problem sized_problem() {
  return make_problem(
    R"({"name": "made", "axes": {"M": {"type": "var"}, "N": {"type": "var"},
        "D": {"type": "const", "value": 4}},
        "inputs": {"x": {"shape": ["M", "N"], "dtype": "float32"}},
        "outputs": {"y": {"shape": ["M", "N"], "dtype": "float32"}},
        "reference": "def run(x):\n    return x\n"})",
    R"({"axes": {"M": 64, "N": 256}, "inputs": {"x": {"type": "random"}}, "uuid": "a"})",
    R"({"schema": "gristmill.graph/1", "axes": {"M": 5, "N": 7, "D": 4},
        "axes_again": {"M": 17, "N": 13, "D": 4}, "values": [
        {"id": 0, "dtype": "float32", "shape": [5, 7], "shape_again": [17, 13], "input": "x"},
        {"id": 1, "dtype": "float32", "shape": [5, 7], "shape_again": [17, 13]}],
        "nodes": [{"op": "relu", "inputs": [{"value": 0}], "outputs": [1]}], "outputs": [1]})");
}

std::string plain(const index_pool& pool, index_id id) {
  return pool.text(id, [](const std::string& formula) { return formula; });
}

} // namespace

TEST_CASE("a size is led back to axes only where both traces agree") {
  const auto one = sized_problem();
  const auto sizes = size_formulas::make(one.target, one.graph);
  REQUIRE(sizes);
  CHECK(sizes->text({5, 17}) == "axis.M");
  CHECK(sizes->text({4, 4}) == "4");
  CHECK(sizes->text({28, 52}) == "(axis.N * 4)");
  CHECK(sizes->text({35, 221}) == "(axis.M * axis.N * 1)");
  CHECK(sizes->text({12, 30}) == "(axis.M + axis.N)");
  CHECK(sizes->text({3, 6}) == "(axis.N // 2)");
  CHECK(sizes->text({8, 14}) == "(axis.N + 1)");
  // 10 is twice M in the first trace, but 1000 is not in the second.
  CHECK_FALSE(sizes->text({10, 1000}));
  // N - 5 and M // 2 alike: a guess would be wrong for other workloads.
  CHECK_FALSE(sizes->text({2, 8}));
  CHECK_FALSE(sizes->text({-1, -1}));
  CHECK(sizes->axis_of(7) == "axis.N");
  CHECK_FALSE(sizes->axis_of(6));
  CHECK(sizes->number_of(1.0 / 7, 1.0 / 13) == "1.0 / float(axis.N)");
  CHECK_FALSE(sizes->number_of(1.0 / 7, 1.0 / 11));
}

TEST_CASE("a constant axis that a workload changes makes traced numbers meaningless") {
  auto one = sized_problem();
  one.target.workloads[0].axes.emplace_back("D", 8);
  const auto sizes = size_formulas::make(one.target, one.graph);
  REQUIRE_FALSE(sizes);
  CHECK(sizes.error().code == errc::unsupported);
  CHECK(sizes.error().what.find("'D'") != std::string::npos);
}

TEST_CASE("splitting what was merged gives back what was there") {
  const auto one = sized_problem();
  const auto sizes = size_formulas::make(one.target, one.graph);
  index_pool pool(*sizes);
  const size_pair m{5, 17};
  const size_pair n{7, 13};
  const size_pair d{4, 4};
  const index_id i = pool.variable("i", pool.size(m));
  const index_id j = pool.variable("j", pool.size(n));
  const index_id k = pool.variable("k", pool.size(d));
  const auto merged = through_view(pool, {m * n, d}, {m, n, d}, {i, j, k});
  CHECK(plain(pool, merged[0]) == "((i * axis.N) + j)");
  CHECK(through_view(pool, {m, n, d}, {m * n, d}, merged) == std::vector<index_id>{i, j, k});
  // The other way round: a position that is split and merged is the position.
  const index_id all = pool.variable("all", pool.product(pool.shape({m, n, d})));
  const auto parts = pool.unflat(all, pool.shape({m, n, d}));
  CHECK(pool.flat(parts, pool.shape({m, n, d})) == all);
}

TEST_CASE("views add and drop dimensions of one element, and refuse another number of elements") {
  const auto one = sized_problem();
  const auto sizes = size_formulas::make(one.target, one.graph);
  index_pool pool(*sizes);
  const index_id i = pool.variable("i", pool.size({5, 17}));
  const index_id zero = pool.constant(0);
  CHECK(through_view(pool, {{1, 1}, {5, 17}}, {{5, 17}, {1, 1}}, {i, zero})
    == std::vector<index_id>{zero, i});
  CHECK_THROWS_AS(through_view(pool, {{5, 17}}, {{7, 13}}, {i}), no_template);
}

TEST_CASE("index arithmetic folds what is known and keeps what is not") {
  const auto one = sized_problem();
  const auto sizes = size_formulas::make(one.target, one.graph);
  index_pool pool(*sizes);
  const index_id i = pool.variable("i", pool.constant(8));
  const index_id two = pool.constant(2);
  CHECK(pool.over(i, pool.constant(8)) == pool.constant(0));
  CHECK(pool.rest(i, pool.constant(8)) == i);
  CHECK(plain(pool, pool.over(i, two)) == "(i / 2)");
  CHECK(pool.add(pool.times(pool.over(i, two), two), pool.rest(i, two)) == i);
  CHECK(pool.rest(pool.add(pool.times(i, two), pool.constant(1)), two) == pool.constant(1));
  CHECK(pool.minus(pool.add(i, two), two) == i);
  CHECK(pool.times(i, pool.constant(1)) == i);
  CHECK(pool.number(pool.over(pool.constant(9), two)) == 4);
  // A size that data decide is no size of a plan.
  CHECK_THROWS_AS((void)pool.plan_text(i), no_template);
}
