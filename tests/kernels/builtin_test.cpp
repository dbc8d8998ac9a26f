#include "kernels/native/native_reference.hpp"
#include "kernels/work_count.hpp"
#include "protocol/shrink.hpp"
#include "tensors/codec.hpp"
#include "tests/kernels/corpus.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <set>
#include <string>
#include <vector>

using namespace gristmill;
using namespace gristmill::test;

namespace {

using bytes = std::vector<std::byte>;

bytes of_bf16(const std::vector<float>& numbers) {
  bytes out(numbers.size() * 2);
  encode_from_float(dtype::bfloat16, numbers, out);
  return out;
}

std::vector<float> to_floats(dtype type, const bytes& raw) {
  std::vector<float> out(raw.size() * 8 / element_bits(type));
  decode_to_float(type, raw, out);
  return out;
}

std::string definition_text(const std::string& name) {
  const auto one = builtin_problem(name);
  REQUIRE(one);
  return one->definition_text;
}

} // namespace

TEST_CASE(
  "the built-in problems load, sorted, each with a graph, a category and a native reference") {
  const auto problems = builtin_problems();
  REQUIRE(problems.size() >= 20);
  CHECK(std::is_sorted(problems.begin(), problems.end(),
    [](const problem& a, const problem& b) { return a.name < b.name; }));
  for (const auto& one : problems) {
    CAPTURE(one.name);
    CHECK(one.warnings.empty());
    CHECK(one.def.name == one.name);
    CHECK_FALSE(one.def.op_type.empty());
    CHECK_FALSE(one.graph_json.empty());
    CHECK(has_native_reference(one.definition_text));
  }
}

TEST_CASE("the built-in problems cover every category") {
  std::set<std::string> seen;
  for (const auto& one : builtin_problems())
    seen.insert(one.def.op_type);
  for (const char* category : {"normalisation", "activation", "softmax", "matmul", "attention",
         "position", "embedding", "routing", "scan", "layout", "backward", "vision", "audio",
         "diffusion", "quantisation", "loss"}) {
    CAPTURE(category);
    CHECK(seen.contains(category));
  }
}

TEST_CASE("the problems of a run without arguments are built in") {
  CHECK_FALSE(default_problems().empty());
  for (const auto name : default_problems())
    CHECK(builtin_problem(name));
}

TEST_CASE("each built-in problem has a large workload for the clock, and odd small ones") {
  for (const auto& one : all_builtins()) {
    CAPTURE(one.target.name);
    uint64_t most = 0;
    uint64_t products = 0;
    bool has_odd = false;
    for (const auto& work : one.target.workloads) {
      const auto axes = resolve_axes(one.target.def, work.axes);
      REQUIRE(axes);
      const auto counted = count_work(one.target.def, &one.graph, *axes);
      REQUIRE(counted);
      most = std::max(most, counted->bytes);
      uint64_t macs = 0;
      for (const uint64_t of_class : counted->macs)
        macs += of_class;
      products = std::max(products, macs);
      has_odd = has_odd || work.axes.back().second % 2 == 1;
    }
    const bool is_large = most >= 64'000'000 || products >= 1'000'000'000;
    CHECK(is_large);
    CHECK(has_odd);
  }
}

TEST_CASE("the small workloads of a built-in problem are checked as they are") {
  for (const auto& one : builtin_problems())
    for (size_t i = 1; i < one.workloads.size(); ++i) {
      CAPTURE(one.name);
      CAPTURE(one.workloads[i].uuid);
      const auto full = resolve_axes(one.def, one.workloads[i].axes);
      const auto twin = shrink_axes(one.def, one.workloads[i], 2'000'000);
      REQUIRE(full);
      REQUIRE(twin);
      CHECK(*full == *twin);
    }
}

TEST_CASE("every built-in graph has a second trace") {
  for (const auto& one : all_builtins()) {
    CAPTURE(one.target.name);
    CHECK(one.graph.axes_again.size() == one.graph.axes.size());
  }
}

TEST_CASE("an unknown built-in problem names the nearest") {
  const auto one = builtin_problem("sofmax");
  REQUIRE_FALSE(one);
  CHECK(one.error().code == errc::not_found);
  CHECK(one.error().what.find("softmax") != std::string::npos);
}

TEST_CASE("a definition that only has a built-in's name does not get its reference") {
  std::string text = definition_text("softmax");
  text.replace(text.find("dim=-1"), 6, "dim=-2");
  CHECK_FALSE(has_native_reference(text));
  const auto ran = run_native_reference(text, {{"rows", 1}, {"classes", 1}}, {}, {});
  REQUIRE_FALSE(ran);
  CHECK(ran.error().code == errc::not_found);
}

TEST_CASE("native softmax: rows add up to one, and equal logits share it") {
  const std::vector<float> logits{1, 1, 1, 1, 0, std::log(3.0F), -INFINITY, -INFINITY};
  bytes in(logits.size() * 4);
  std::memcpy(in.data(), logits.data(), in.size());
  bytes out(in.size());
  REQUIRE(
    run_native_reference(definition_text("softmax"), {{"rows", 2}, {"classes", 4}}, {in}, {out}));
  const auto y = to_floats(dtype::float32, out);
  for (size_t i = 0; i < 4; ++i)
    CHECK(y[i] == 0.25F);
  CHECK(y[4] == doctest::Approx(0.25));
  CHECK(y[5] == doctest::Approx(0.75));
  CHECK(y[6] == 0);
}

TEST_CASE("native silu_and_mul takes the gate from the first half") {
  const bytes in = of_bf16({0, 2, 3, 4});
  bytes out(4);
  REQUIRE(run_native_reference(definition_text("silu_and_mul"),
    {{"tokens", 1}, {"width", 2}, {"fused_width", 4}}, {in}, {out}));
  const auto y = to_floats(dtype::bfloat16, out);
  CHECK(y[0] == 0);
  CHECK(y[1] == doctest::Approx(4 * 2 / (1 + std::exp(-2.0))).epsilon(0.005));
}

TEST_CASE("native rmsnorm divides by the root of the mean square") {
  const bytes x = of_bf16({3, -3, 3, -3});
  const bytes scale = of_bf16({1, 1, 2, 0});
  bytes out(8);
  REQUIRE(run_native_reference(
    definition_text("rmsnorm"), {{"tokens", 1}, {"hidden", 4}}, {x, scale}, {out}));
  CHECK(to_floats(dtype::bfloat16, out) == std::vector<float>{1, -1, 2, 0});
}

TEST_CASE("a native reference refuses buffers of the wrong size and missing axes") {
  bytes in(16);
  bytes out(12);
  const auto text = definition_text("softmax");
  const auto wrong = run_native_reference(text, {{"rows", 1}, {"classes", 4}}, {in}, {out});
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().what.find("probabilities: 12 bytes given, 16 needed") != std::string::npos);
  CHECK_FALSE(run_native_reference(text, {{"rows", 1}}, {in}, {out}));
  CHECK_FALSE(run_native_reference(text, {{"rows", 1}, {"classes", 4}}, {in, in}, {out}));
}

TEST_CASE("rows of no elements and no rows at all are fine") {
  bytes none;
  CHECK(run_native_reference(
    definition_text("softmax"), {{"rows", 0}, {"classes", 4}}, {none}, {none}));
  CHECK(run_native_reference(
    definition_text("softmax"), {{"rows", 4}, {"classes", 0}}, {none}, {none}));
}

TEST_CASE("work is every tensor once, and the operations of the graph") {
  for (const auto& one : builtin_corpus()) {
    if (one.target.name != "rmsnorm")
      continue;
    const axis_values axes{{"tokens", 10}, {"hidden", 100}};
    const auto counted = count_work(one.target.def, &one.graph, axes);
    REQUIRE(counted);
    CHECK(counted->bytes == 2 * (1000 + 100 + 1000));
    // Square, its sum, two products; the root is the row's.
    CHECK(counted->flops == 4 * 1000);
    const auto plain = count_work(one.target.def, nullptr, axes);
    REQUIRE(plain);
    CHECK(plain->bytes == counted->bytes);
    CHECK(plain->flops == 0);
    CHECK_FALSE(count_work(one.target.def, nullptr, {{"tokens", 10}}));
  }
}

TEST_CASE("an input that nothing reads is not charged") {
  auto one = map_problem(R"({"op": "neg", "inputs": [{"value": 0}], "outputs": [1]})");
  one.graph.nodes[0].inputs[0].value = 2;
  one.target.def.inputs.push_back(one.target.def.inputs[0]);
  one.target.def.inputs[1].name = "used";
  one.graph.values[2].source = graph_source::input;
  one.graph.values[2].name = "used";
  const auto counted = count_work(one.target.def, &one.graph, {{"M", 4}, {"N", 8}});
  REQUIRE(counted);
  CHECK(counted->bytes == 2 * 4 * 8 * 4);
}

TEST_CASE("of an input that is read in part, the part is charged") {
  for (auto& one : builtin_corpus()) {
    if (one.target.name != "silu_and_mul")
      continue;
    // Without the second factor only the first half is read.
    op_graph graph = one.graph;
    graph.nodes[4].inputs[1].value = graph.nodes[4].inputs[0].value;
    const axis_values axes{{"tokens", 10}, {"width", 8}, {"fused_width", 16}};
    const auto whole = count_work(one.target.def, &one.graph, axes);
    const auto part = count_work(one.target.def, &graph, axes);
    REQUIRE(whole);
    REQUIRE(part);
    CHECK(whole->bytes == 2 * (160 + 80));
    CHECK(part->bytes == 2 * (80 + 80));
  }
}
