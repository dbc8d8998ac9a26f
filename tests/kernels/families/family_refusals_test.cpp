#include "kernels/families/attention.hpp"
#include "kernels/families/fold.hpp"
#include "kernels/families/indexed_map.hpp"
#include "kernels/families/transpose.hpp"
#include "tests/kernels/corpus.hpp"

#include <doctest/doctest.h>
#include <set>
#include <string>
#include <string_view>

using namespace gristmill;
using namespace gristmill::test;

namespace {

/// What a reader says about a graph over x of shape [M, N]; empty when it reads it.
std::string refusal(stage_reader read, const std::string& nodes) {
  const auto one = map_problem(nodes);
  const auto space = read(one.target, one.graph);
  if (space)
    return {};
  CHECK(space.error().code == errc::unsupported);
  return space.error().what;
}

bool says(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

constexpr const char* unknown = R"({"op": "linalg_qr", "inputs": [{"value": 0}], "outputs": [1]})";
constexpr const char* pointwise = R"({"op": "relu", "inputs": [{"value": 0}], "outputs": [1]})";
constexpr const char* rows =
  R"({"op": "sum", "inputs": [{"value": 0}, [-1], true], "outputs": [10]},
     {"op": "div", "inputs": [{"value": 0}, {"value": 10}], "outputs": [1]})";

} // namespace

TEST_CASE("every family names the operator that it does not know") {
  for (stage_reader read :
    {read_indexed_map_stage, read_fold_stage, read_transpose_stage, read_attention_stage})
    CHECK(says(refusal(read, unknown), "'linalg_qr'"));
}

TEST_CASE("a family reads its own kind of graph and leaves the others alone") {
  CHECK(refusal(read_indexed_map_stage, pointwise).empty());
  CHECK(says(refusal(read_fold_stage, pointwise), "nothing is reduced"));
  CHECK(says(refusal(read_transpose_stage, pointwise), "no permutation"));
  CHECK(says(refusal(read_attention_stage, pointwise), "no softmax"));
  CHECK(refusal(read_fold_stage, rows).empty());
  CHECK(says(refusal(read_indexed_map_stage, rows), "'sum'"));
}

TEST_CASE("numbers that follow the shape in an unknown way are refused, not guessed") {
  const auto odd = R"({"op": "mul", "inputs": [{"value": 0}, {"number": 0.123, "varies": true}],
    "outputs": [1]})";
  CHECK(says(refusal(read_indexed_map_stage, odd), "a number that the reference computes"));
}

TEST_CASE("reductions over different rows are no single kernel") {
  const auto both = R"({"op": "sum", "inputs": [{"value": 0}, [-1], true], "outputs": [10]},
    {"op": "amax", "inputs": [{"value": 0}, [0], true], "outputs": [2]},
    {"op": "div", "inputs": [{"value": 0}, {"value": 10}], "outputs": [1]})";
  // What no output needs does not count.
  CHECK(refusal(read_fold_stage, both).empty());
  auto live = map_problem(R"({"op": "sum", "inputs": [{"value": 0}, [-1], true], "outputs": [10]},
    {"op": "mul", "inputs": [{"value": 0}, {"value": 10}], "outputs": [2]},
    {"op": "sum", "inputs": [{"value": 2}, [0], true], "outputs": [3]},
    {"op": "div", "inputs": [{"value": 2}, {"value": 3}], "outputs": [1]})");
  const auto space = read_fold_stage(live.target, live.graph);
  REQUIRE_FALSE(space);
  CHECK(says(space.error().what, "other rows"));
}

TEST_CASE("keys are unique, and names of tensors do not matter for them") {
  const auto one = map_problem(rows);
  const auto other = renamed(one);
  const auto a = read_fold_stage(one.target, one.graph);
  const auto b = read_fold_stage(other.target, other.graph);
  REQUIRE(a);
  REQUIRE(b);
  REQUIRE((*a)->size() == (*b)->size());
  CHECK((*a)->first() == (*b)->first());
  std::set<std::string> keys;
  for (size_t i = 0; i < (*a)->size(); ++i) {
    keys.insert((*a)->key(i));
    CHECK((*a)->key(i) == (*b)->key(i));
    CHECK((*a)->key(i).find_first_of(" +@") == std::string::npos);
  }
  CHECK(keys.size() == (*a)->size());
}

TEST_CASE("equal problems give equal texts") {
  const auto one = map_problem(pointwise);
  const auto a = read_indexed_map_stage(one.target, one.graph);
  const auto b = read_indexed_map_stage(one.target, one.graph);
  REQUIRE(a);
  REQUIRE(b);
  CHECK((*a)->generate(0).source == (*b)->generate(0).source);
  CHECK((*a)->generate(0).plan == (*b)->generate(0).plan);
}
