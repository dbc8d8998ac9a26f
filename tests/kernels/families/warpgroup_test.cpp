#include "kernels/families/attention_units.hpp"
#include "kernels/families/gemm.hpp"
#include "kernels/lowering/program_space.hpp"
#include "kernels/search.hpp"
#include "kernels/search/program_search_space.hpp"
#include "protocol/op_graph.hpp"
#include "protocol/shrink.hpp"
#include "tests/kernels/mock_run.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <string>

using namespace gristmill;
using namespace gristmill::test;

// Kernels for the warpgroup units of architecture 90a, run on the mock H200 against sums in double.

namespace {

/// A problem of examples/h200 at other sizes.
struct example {
  problem target;
  op_graph graph;

  example(const std::string& name, axis_values axes) {
    const char* source = std::getenv("GRISTMILL_SOURCE");
    REQUIRE(source != nullptr);
    auto loaded = load_problem(std::filesystem::path(source) / "examples/h200" / name);
    REQUIRE_MESSAGE(loaded, (loaded ? "" : loaded.error().what));
    target = std::move(*loaded);
    target.workloads.resize(1);
    target.workloads[0].axes = std::move(axes);
    auto parsed = parse_op_graph(target.graph_json);
    REQUIRE(parsed);
    graph = std::move(*parsed);
  }
};

/// Largest distance, and whether all numbers are finite.
double furthest(const tensor& got, const std::vector<double>& expected) {
  REQUIRE(got.size() == expected.size());
  double far = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    REQUIRE(std::isfinite(got[i]));
    far = std::max(far, std::abs(double(got[i]) - expected[i]));
  }
  return far;
}

std::vector<double> product_of(const std::vector<tensor>& in, size_t m, size_t n, size_t k) {
  std::vector<double> out(m * n);
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < n; ++j)
      for (size_t d = 0; d < k; ++d)
        out[i * n + j] += double(in[0][i * k + d]) * double(in[1][j * k + d]);
  return out;
}

std::vector<double> attention_of(const std::vector<tensor>& in, size_t heads, size_t rows) {
  constexpr size_t width = 128;
  std::vector<double> out(in[0].size());
  std::vector<double> weights(rows);
  for (size_t h = 0; h < heads; ++h)
    for (size_t r = 0; r < rows; ++r) {
      const size_t at = (h * rows + r) * width;
      double top = -1e300;
      for (size_t j = 0; j < rows; ++j) {
        double dot = 0;
        for (size_t d = 0; d < width; ++d)
          dot += double(in[0][at + d]) * double(in[1][(h * rows + j) * width + d]);
        weights[j] = dot / std::sqrt(128.0);
        top = std::max(top, weights[j]);
      }
      double all = 0;
      for (double& weight : weights)
        all += weight = std::exp(weight - top);
      for (size_t j = 0; j < rows; ++j)
        for (size_t d = 0; d < width; ++d)
          out[at + d] += weights[j] / all * double(in[2][(h * rows + j) * width + d]);
    }
  return out;
}

} // namespace

TEST_CASE("every warpgroup product is right where tiles fit, where they do not, and elsewhere") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  // Whole tiles; tiles beyond both edges and a last step beyond the depth; rows that no tensor map
  // may have, where the plan takes the tile of the path "mma".
  const std::vector<std::array<int64_t, 3>> sizes{
    {256, 256, 320}, {200, 184, 264}, {192, 180, 261}};
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto [m, n, k] = sizes[i];
    const example one("gemm_bfloat16", {{"m", m}, {"n", n}, {"k", k}});
    const auto space = read_gemm_stage(one.target, one.graph);
    REQUIRE(space);
    const auto inputs = drawn_inputs(one.target, one.target.workloads[0]);
    const auto expected =
      product_of(inputs, static_cast<size_t>(m), static_cast<size_t>(n), static_cast<size_t>(k));
    size_t tried = 0;
    for (size_t point = 0; point < (*space)->size(); ++point) {
      if (!(*space)->key(point).starts_with("gemm/wgmma/") || tried++ % 3 != i)
        continue;
      CAPTURE((*space)->key(point));
      const auto got =
        bench.outputs((*space)->generate(point), one.target, one.target.workloads[0], inputs);
      // Products of normal numbers over such a depth reach about 70; bfloat16 has steps of 0.25
      // there.
      CHECK(furthest(got[0], expected) < 0.3);
    }
    CHECK(tried > 2);
  }
}

TEST_CASE("large products begin with the warpgroup units, small ones do not") {
  const example large("gemm_bfloat16", {{"m", 4096}, {"n", 4096}, {"k", 4096}});
  const auto first = read_gemm_stage(large.target, large.graph);
  REQUIRE(first);
  CHECK((*first)->key((*first)->first()).starts_with("gemm/wgmma/"));
  const example small("gemm_bfloat16", {{"m", 256}, {"n", 256}, {"k", 320}});
  const auto other = read_gemm_stage(small.target, small.graph);
  REQUIRE(other);
  CHECK((*other)->key((*other)->first()).starts_with("gemm/mma/"));
}

TEST_CASE("attention by the warpgroup units is right for every point, also between tiles") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  // Whole tiles; less than one; a last tile with a part of the queries and keys.
  for (const int64_t tokens : {256, 70, 200}) {
    const example one("attention_forward", {{"batch", 1}, {"heads", 2}, {"tokens", tokens}});
    const auto space = read_attention_units_stage(one.target, one.graph);
    REQUIRE_MESSAGE(space, (space ? "" : space.error().what));
    const auto inputs = drawn_inputs(one.target, one.target.workloads[0]);
    const auto expected = attention_of(inputs, 2, static_cast<size_t>(tokens));
    for (size_t point = 0; point < (*space)->size(); ++point) {
      CAPTURE(tokens);
      CAPTURE((*space)->key(point));
      const auto got =
        bench.outputs((*space)->generate(point), one.target, one.target.workloads[0], inputs);
      // Weights are rounded to 16 bits: a few parts in a thousand of values around 1.
      CHECK(furthest(got[0], expected) < 0.01);
    }
  }
}

TEST_CASE("a linked program with another warpgroup kernel for each group of workloads is right") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  const example one("attention_forward", {{"batch", 1}, {"heads", 3}, {"tokens", 136}});
  const auto space = program_space::make(one.target, one.graph);
  REQUIRE_MESSAGE(space, (space ? "" : space.error().what));
  const auto few = space->find("attention_units/k64/st3");
  const auto many = space->find("attention_units/k128/st2");
  REQUIRE(few);
  REQUIRE(many);
  const auto linked = space->generate({{"axis.tokens <= 128", *few}, {"true", *many}});
  REQUIRE_MESSAGE(linked, (linked ? "" : linked.error().what));
  for (const int64_t tokens : {72, 136}) {
    CAPTURE(tokens);
    workload work = one.target.workloads[0];
    work.axes = {{"batch", 1}, {"heads", 3}, {"tokens", tokens}};
    const auto inputs = drawn_inputs(one.target, work);
    const auto got = bench.outputs(*linked, one.target, work, inputs);
    CHECK(furthest(got[0], attention_of(inputs, 3, static_cast<size_t>(tokens))) < 0.01);
  }
}

TEST_CASE("attention of few queries belongs to the other family") {
  const example few("attention_forward", {{"batch", 1}, {"heads", 2}, {"tokens", 48}});
  const auto space = read_attention_units_stage(few.target, few.graph);
  REQUIRE_FALSE(space);
  CHECK(space.error().code == errc::unsupported);
  CHECK(space.error().what.find("64 queries and keys") != std::string::npos);
}

TEST_CASE("the search begins with the warpgroup units, though the small twin has no whole tile") {
  const example large("attention_forward", {{"batch", 4}, {"heads", 32}, {"tokens", 2048}});
  const workload& work = large.target.workloads[0];
  constexpr uint64_t check_elements = 2'000'000;
  auto full = resolve_axes(large.target.def, work.axes);
  auto twin = shrink_axes(large.target.def, work, check_elements);
  REQUIRE(full);
  REQUIRE(twin);
  const auto tokens = std::find_if(
    twin->begin(), twin->end(), [](const auto& axis) { return axis.first == "tokens"; });
  REQUIRE(tokens != twin->end());
  CHECK(tokens->second % 64 != 0);
  auto programs = program_space::make(large.target, large.graph);
  REQUIRE(programs);
  const program_search_space space(std::move(*programs));
  // Of an H200.
  const device_facts device{132, 232'448, 233'472, 50'331'648, 90};
  const auto check = make_plan_check(large.target.def, {{work.uuid, *full, *twin, {}, {}}}, device);
  const auto workloads = search_workloads(large.target, check_elements);
  trial_history history;
  const auto next = propose(space, {workloads, history, {}, 1, {}, check});
  REQUIRE_MESSAGE(next.outcome == search_outcome::candidate, next.reason);
  CHECK(next.candidate.key == "attention_units/k160/st2/turn1");
  for (const std::string key : {"attention_units/k128/st2", "attention_units/k64/st4",
         "attention_units/k64/st3", "attention_units/k64/st2"}) {
    CAPTURE(key);
    const auto point = space.find(key);
    REQUIRE(point);
    const auto kernel = space.generate(*point);
    REQUIRE_MESSAGE(kernel, (kernel ? "" : kernel.error().what));
    const auto fits = check(*kernel);
    CHECK_MESSAGE(fits, (fits ? "" : fits.error().what));
  }
}
