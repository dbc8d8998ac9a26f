#include "kernels/lowering/program_space.hpp"
#include "kernels/search.hpp"
#include "protocol/plan.hpp"
#include "protocol/resolve.hpp"
#include "tests/kernels/corpus.hpp"
#include "tests/kernels/lowering/small_program.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <numeric>
#include <set>
#include <string>
#include <vector>

using namespace gristmill;
using namespace gristmill::test;

namespace {

program_space space_of(const small_program& from) {
  auto space = program_space::make(from.target, from.graph);
  REQUIRE_MESSAGE(space, (space ? std::string{} : space.error().what));
  return std::move(*space);
}

/// A softmax over columns and rows: two kernels at least, few points each.
small_program two_stages() {
  small_program p({{"M", 3, 7}, {"N", 5, 11}});
  p.workload_at({{"M", 4}, {"N", 6}});
  p.workload_at({{"M", 300}, {"N", 40}});
  const int64_t x = p.input("x", {"M", "N"});
  const int64_t a = p.op("cumsum", {value(x), integer(1)}, {"M", "N"});
  p.output("y", p.op("cumsum", {value(a), integer(0)}, {"M", "N"}), {"M", "N"});
  return p;
}

device_facts h200() {
  return {.sm_count = 132,
    .smem_per_block = 232448,
    .smem_per_sm = 233472,
    .l2_bytes = 52428800,
    .arch = 90};
}

resolved_workload resolved(
  const generated_kernel& kernel, const problem& target, const workload& work) {
  const auto parsed = parse_plan(kernel.plan);
  REQUIRE_MESSAGE(parsed, (parsed ? std::string{} : parsed.error().what));
  const auto axes = resolve_axes(target.def, work.axes);
  REQUIRE(axes);
  auto call = resolve(*parsed, target.def, *axes, {}, h200());
  REQUIRE_MESSAGE(call, (call ? std::string{} : call.error().what));
  return *call;
}

} // namespace

TEST_CASE("a graph that `fuse` reads is one stage with the keys of its family") {
  for (const auto& one : builtin_corpus()) {
    CAPTURE(one.target.name);
    const auto space = program_space::make(one.target, one.graph);
    REQUIRE(space);
    CHECK(space->stages(0) == 1);
    const std::string key = space->key(space->first());
    CHECK((key.starts_with("map/") || key.starts_with("row/")));
    CHECK(key.find(':') == std::string::npos);
  }
}

TEST_CASE("the numbers of a space name each of its programs once") {
  const auto space = space_of(two_stages());
  REQUIRE(space.size() < 2000);
  std::set<std::string> keys;
  for (uint64_t i = 0; i < space.size(); ++i)
    keys.insert(space.key(space.at(i)));
  CHECK(keys.size() == space.size());
}

TEST_CASE("a key finds its program again, and nothing else does") {
  for (const auto& one : all_builtins()) {
    CAPTURE(one.target.name);
    const auto space = program_space::make(one.target, one.graph);
    REQUIRE_MESSAGE(space, (space ? std::string{} : space.error().what));
    for (size_t p = 0; p < space->partitions(); ++p) {
      const auto point = space->first(p);
      CHECK(space->find(space->key(point)) == point);
      CHECK(space->key(point).starts_with("p" + std::to_string(p) + ":") == (p != 0));
    }
    for (const char* other :
      {"", "p", "p0:", "p99:map/t256", "p1:", "map/t0/v0", "+", "p1:+", "p18446744073709551616:x"})
      CHECK_FALSE(space->find(other));
    CHECK_FALSE(space->find(space->key(space->first()) + "+"));
  }
}

TEST_CASE("neighbours differ in one stage or in the cut, and none is the point itself") {
  for (const auto& one : builtin_corpus()) {
    CAPTURE(one.target.name);
    const auto space = program_space::make(one.target, one.graph);
    REQUIRE(space);
    for (size_t p : {size_t{0}, space->partitions() - 1}) {
      const auto point = space->first(p);
      const auto around = space->neighbours(point);
      CHECK_FALSE(around.empty());
      for (const auto& next : around) {
        CHECK_FALSE(next == point);
        CHECK_FALSE(space->difference(point, next).empty());
        if (next.partition != point.partition)
          continue;
        size_t changes = 0;
        for (size_t i = 0; i < next.stages.size(); ++i)
          changes += next.stages[i] != point.stages[i] ? 1 : 0;
        CHECK(changes == 1);
      }
    }
  }
}

TEST_CASE("the shares of the work sum to one") {
  for (const auto& one : all_builtins()) {
    CAPTURE(one.target.name);
    const auto space = program_space::make(one.target, one.graph);
    REQUIRE(space);
    for (size_t p = 0; p < space->partitions(); ++p) {
      const auto shares = space->work_shares(p);
      CHECK(shares.size() == space->stages(p));
      CHECK(std::accumulate(shares.begin(), shares.end(), 0.0) == doctest::Approx(1));
    }
  }
}

TEST_CASE("equal problems give equal spaces: numbers, keys and texts") {
  for (const auto& one : all_builtins()) {
    CAPTURE(one.target.name);
    const auto a = program_space::make(one.target, one.graph);
    const auto b = program_space::make(one.target, one.graph);
    REQUIRE(a);
    REQUIRE(b);
    REQUIRE(a->partitions() == b->partitions());
    CHECK(a->size() == b->size());
    for (size_t p = 0; p < a->partitions(); ++p) {
      CHECK(a->key(a->first(p)) == b->key(b->first(p)));
      const auto x = a->generate(a->first(p));
      const auto y = b->generate(b->first(p));
      REQUIRE(x);
      REQUIRE(y);
      CHECK(x->source == y->source);
      CHECK(x->plan == y->plan);
    }
  }
}

TEST_CASE("the names of a problem decide nothing about how it is cut") {
  for (const auto& one : builtin_corpus()) {
    CAPTURE(one.target.name);
    const auto other = renamed(one);
    const auto a = program_space::make(one.target, one.graph);
    const auto b = program_space::make(other.target, other.graph);
    REQUIRE(a);
    REQUIRE_MESSAGE(b, (b ? std::string{} : b.error().what));
    REQUIRE(a->partitions() == b->partitions());
    for (size_t p = 0; p < a->partitions(); ++p)
      CHECK(a->key(a->first(p)) == b->key(b->first(p)));
  }
}

TEST_CASE("a program for groups of workloads runs the first whose condition holds") {
  const auto from = two_stages();
  const auto space = space_of(from);
  const auto fast = space.first();
  const auto slow = space.at(1);
  const auto kernel = space.generate({{"axis.M <= 16", fast}, {"true", slow}});
  REQUIRE_MESSAGE(kernel, (kernel ? std::string{} : kernel.error().what));
  const auto small = resolved(*kernel, from.target, from.target.workloads[0]);
  const auto large = resolved(*kernel, from.target, from.target.workloads[1]);
  CHECK(small.variant == "program 0");
  CHECK(large.variant == "program 1");
  CHECK(small.steps.size() == 2);
  CHECK(large.steps.size() == 2);
  // Only the program that runs has its memory.
  for (const auto* call : {&small, &large}) {
    size_t used = 0;
    for (const auto& buffer : call->buffers)
      used += buffer.kind == resolved_buffer::role::scratch && buffer.bytes > 0 ? 1 : 0;
    CHECK(used == 1);
  }
}

TEST_CASE("groups without a last resort, too many groups and bad conditions are errors") {
  const auto from = two_stages();
  const auto space = space_of(from);
  const auto point = space.first();
  CHECK_FALSE(space.generate(std::vector<std::pair<std::string, program_point>>{}));
  CHECK_FALSE(space.generate({{"axis.M <= 16", point}, {"axis.M > 16", point}}));
  CHECK_FALSE(space.generate({{"axis.M <=", point}, {"true", point}}));
  std::vector<std::pair<std::string, program_point>> many(17, {"axis.M == 1", point});
  many.back().first = "true";
  CHECK_FALSE(space.generate(many));
}

TEST_CASE("a program needs at least one output, a valid graph and known operators") {
  small_program p({{"M", 3, 7}});
  const int64_t x = p.input("x", {"M"});
  CHECK_FALSE(program_space::make(p.target, p.graph));
  p.output("y", p.op("no_such_operator", {value(x)}, {"M"}), {"M"});
  const auto none = program_space::make(p.target, p.graph);
  REQUIRE_FALSE(none);
  CHECK(none.error().code == errc::unsupported);
  // A node that reads what comes after it: a cycle.
  p.graph.nodes.front().inputs = {value(p.graph.nodes.front().outputs.front())};
  const auto cyclic = program_space::make(p.target, p.graph);
  REQUIRE_FALSE(cyclic);
  CHECK(cyclic.error().code == errc::invalid_input);
}

TEST_CASE("a text that names a type of the toolkit includes its header") {
  for (const auto& one : all_builtins()) {
    CAPTURE(one.target.name);
    const auto space = program_space::make(one.target, one.graph);
    if (!space)
      continue;
    // Every family has its turn: points of one stage are those of the best family first.
    std::vector<program_point> points;
    for (size_t p = 0; p < space->partitions(); ++p)
      points.push_back(space->first(p));
    for (size_t stage = 0; stage < space->stages(0); ++stage) {
      const size_t count = space->points(0, stage);
      for (size_t i = 0; i < count; i += count / 400 + 1) {
        points.push_back(space->first());
        points.back().stages[stage] = i;
      }
      points.push_back(space->first());
      points.back().stages[stage] = count - 1;
    }
    for (const auto& point : points) {
      const auto kernel = space->generate(point);
      if (!kernel)
        continue;
      CAPTURE(space->key(point));
      const auto& text = kernel->source;
      const auto has = [&](const char* what) { return text.find(what) != std::string::npos; };
      CHECK((!has("__nv_bfloat16") || has("#include <cuda_bf16.h>")));
      CHECK((!has("__half") || has("#include <cuda_fp16.h>")));
      CHECK((!has("__nv_fp8") || has("#include <cuda_fp8.h>")));
    }
  }
}
