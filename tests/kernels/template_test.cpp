#include "kernels/fusion.hpp"
#include "kernels/plan_text.hpp"
#include "kernels/template_space.hpp"
#include "protocol/plan.hpp"
#include "protocol/resolve.hpp"
#include "tests/kernels/corpus.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <set>
#include <string>

using namespace gristmill;
using namespace gristmill::test;

namespace {

const device_facts some_device{.sm_count = 132,
  .smem_per_block = 232448,
  .smem_per_sm = 233472,
  .l2_bytes = 50 << 20,
  .arch = 90};

std::vector<std::pair<std::string, scalar_value>> scalars_of(
  const definition& def, const workload& work) {
  std::vector<std::pair<std::string, scalar_value>> scalars;
  for (const auto& spec : def.inputs) {
    if (!spec.is_scalar)
      continue;
    const input_spec* given = work.find_input(spec.name);
    REQUIRE(given != nullptr);
    scalars.emplace_back(spec.name, *make_scalar(spec.type, given->value));
  }
  return scalars;
}

/// Binds a plan to every workload and to odd neighbours; returns the number of distinct units.
size_t resolve_all(const problem& target, const std::string& plan_text) {
  const auto parsed = parse_plan(plan_text);
  REQUIRE_MESSAGE(parsed, (parsed ? std::string{} : parsed.error().what + "\n" + plan_text));
  std::set<std::string> units;
  for (const workload& work : target.workloads) {
    for (int64_t more : {0, 1}) {
      auto axes = work.axes;
      for (auto& [name, value] : axes) {
        const axis* known = target.def.find_axis(name);
        // An axis that another is half of must stay even.
        if (known != nullptr && known->kind == axis_kind::variable)
          value += 2 * more;
      }
      const auto all = resolve_axes(target.def, axes);
      REQUIRE(all);
      const auto bound =
        resolve(*parsed, target.def, *all, scalars_of(target.def, work), some_device);
      REQUIRE_MESSAGE(bound, (bound ? std::string{} : bound.error().what + "\n" + plan_text));
      if (more == 0)
        units.insert(bound->unit.key);
    }
  }
  return units.size();
}

std::string without_names(std::string text, const definition& def) {
  const auto replace_all = [&](const std::string& name, const std::string& by) {
    for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + by.size()))
      text.replace(at, name.size(), by);
  };
  for (size_t i = 0; i < def.inputs.size(); ++i)
    replace_all(def.inputs[i].name, "#i" + std::to_string(i));
  for (size_t i = 0; i < def.outputs.size(); ++i)
    replace_all(def.outputs[i].name, "#o" + std::to_string(i));
  return text;
}

} // namespace

TEST_CASE("every point of every space has a plan that fits all workloads and their neighbours") {
  for (const auto& one : whole_corpus()) {
    CAPTURE(one.target.name);
    const auto kernel = fuse(one.graph, one.target.def);
    REQUIRE(kernel);
    const auto facts = facts_of(*kernel, one.target);
    REQUIRE_MESSAGE(facts, (facts ? std::string{} : facts.error().what));
    const auto points = feasible_points(*facts);
    CHECK(points.size() > 10);
    std::set<std::string> sources;
    std::set<std::string> keys;
    for (const auto& point : points) {
      CAPTURE(key_of(point));
      CHECK(keys.insert(key_of(point)).second);
      const auto made = kernel_at(*kernel, one.target.def, point);
      CHECK(resolve_all(one.target, made.plan) <= plan_limits::units);
      sources.insert(made.source + made.plan);
    }
    // No two points are the same kernel under two names.
    CHECK(sources.size() == points.size());
  }
}

TEST_CASE("the constraints keep out what cannot work") {
  for (const auto& one : builtin_corpus()) {
    CAPTURE(one.target.name);
    const auto kernel = fuse(one.graph, one.target.def);
    REQUIRE(kernel);
    const auto facts = facts_of(*kernel, one.target);
    REQUIRE(facts);
    const bool is_softmax = one.target.name == "softmax";
    for (const auto& point : feasible_points(*facts)) {
      CAPTURE(key_of(point));
      CHECK(point.threads * point.rows <= 1024);
      CHECK(point.width * facts->widest_bytes <= 32);
      CHECK((!point.online || is_softmax));
      CHECK((!point.reuse || (is_softmax && point.keep == row_keep::registers)));
    }
    template_point point = first_point(feasible_points(*facts), *facts);
    point.width = 64 / facts->widest_bytes;
    CHECK_FALSE(fits_vectors(point, *facts));
  }
}

TEST_CASE("fast arithmetic is for 16-bit outputs, and for others where every workload is lenient") {
  const auto may_be_fast = [](const char* name, double first, double others) {
    for (auto& one : builtin_corpus()) {
      if (one.target.name != name)
        continue;
      auto target = one.target;
      REQUIRE(target.workloads.size() > 1);
      for (auto& work : target.workloads)
        work.allowed.rtol = others;
      target.workloads[0].allowed.rtol = first;
      const auto kernel = fuse(one.graph, target.def);
      REQUIRE(kernel);
      const auto facts = facts_of(*kernel, target);
      REQUIRE(facts);
      const auto points = feasible_points(*facts);
      const bool some = std::any_of(
        points.begin(), points.end(), [](const template_point& point) { return point.fast; });
      CHECK(some == first_point(points, *facts).fast); // Where it may be, it is tried first.
      return some;
    }
    FAIL("no built-in problem of that name");
    return false;
  };
  CHECK(may_be_fast("softmax", 1e-4, 1e-3)); // float32
  CHECK_FALSE(may_be_fast("softmax", 9e-5, 1e-3));
  CHECK_FALSE(may_be_fast("softmax", 0, 0));
}

TEST_CASE("a vector that no workload can use is not proposed") {
  auto one = map_problem(R"({"op": "sum", "inputs": [{"value": 0}, [1], true], "outputs": [10]},
    {"op": "mul", "inputs": [{"value": 0}, {"value": 10}], "outputs": [1]})");
  for (auto& work : one.target.workloads)
    work.axes[1].second = 77;
  const auto kernel = fuse(one.graph, one.target.def);
  REQUIRE(kernel);
  const auto facts = facts_of(*kernel, one.target);
  REQUIRE(facts);
  for (const auto& point : feasible_points(*facts))
    CHECK(point.width == 1);
}

TEST_CASE("renaming a problem changes nothing in the code but the names") {
  for (const auto& one : builtin_corpus()) {
    CAPTURE(one.target.name);
    const auto other = renamed(one);
    const auto kernel = fuse(one.graph, one.target.def);
    const auto other_kernel = fuse(other.graph, other.target.def);
    REQUIRE(kernel);
    REQUIRE(other_kernel);
    const auto facts = facts_of(*kernel, one.target);
    REQUIRE(facts);
    for (const auto& point : feasible_points(*facts)) {
      const auto a = kernel_at(*kernel, one.target.def, point);
      const auto b = kernel_at(*other_kernel, other.target.def, point);
      CHECK(without_names(a.source, one.target.def) == without_names(b.source, other.target.def));
      CHECK(without_names(a.plan, one.target.def) == without_names(b.plan, other.target.def));
    }
  }
}

TEST_CASE("tensors with hostile names get identifiers of their own") {
  const std::vector<std::pair<std::string, std::string>> names = {{"x", "x"}, {"int", "int_"},
    {"VEC", "t_VEC"}, {"v12", "v12_"}, {"acc3", "acc3_"}, {"a b", "a_b"}, {"a+b", "a_b_"},
    {"_x", "t__x"}, {"expf", "expf_"}, {"threads", "threads_"}, {"3d", "t_3d"}};
  definition def;
  for (const auto& [name, identifier] : names) {
    def.inputs.emplace_back();
    def.inputs.back().name = name;
  }
  const auto made = cpp_identifiers(def);
  REQUIRE(made.size() == names.size());
  for (size_t i = 0; i < names.size(); ++i)
    CHECK(made[i] == names[i].second);
}

TEST_CASE("a plan reaches tensors of any name") {
  const auto one = map_problem(R"({"op": "neg", "inputs": [{"value": 0}], "outputs": [1]})");
  for (const char* name : {"int", "VEC", "WIDE", "a b", "M+1"}) {
    CAPTURE(name);
    auto other = one;
    other.target.def.inputs[0].name = name;
    other.graph.values[0].name = name;
    for (auto& work : other.target.workloads)
      work.inputs[0].name = name;
    const auto kernel = fuse(other.graph, other.target.def);
    REQUIRE(kernel);
    const auto facts = facts_of(*kernel, other.target);
    REQUIRE(facts);
    for (const auto& point : feasible_points(*facts))
      resolve_all(other.target, kernel_at(*kernel, other.target.def, point).plan);
  }
}
