#include "kernels/baseline.hpp"
#include "protocol/plan.hpp"
#include "protocol/resolve.hpp"
#include "tests/kernels/corpus.hpp"

#include <cstdint>
#include <doctest/doctest.h>
#include <map>
#include <string>

using namespace gristmill;
using namespace gristmill::test;

namespace {

uint64_t fnv(const std::string& text) {
  uint64_t hash = 1469598103934665603U;
  for (char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return hash;
}

} // namespace

TEST_CASE("the plain kernels are frozen: their texts are those of the day they were decided") {
  const std::map<std::string, uint64_t> frozen = {{"rmsnorm", 18113383914978827400U},
    {"silu_and_mul", 14006331976601719461U}, {"softmax", 5993217834629913291U}};
  for (const auto& one : builtin_corpus()) {
    CAPTURE(one.target.name);
    const auto plain = plain_baseline(one.graph, one.target.def);
    REQUIRE(plain);
    CHECK(plain->version == "plain/1");
    CHECK(fnv(plain->source + plain->plan) == frozen.at(one.target.name));
  }
}

TEST_CASE("a plain kernel has a plan that fits every workload") {
  for (const auto& one : whole_corpus()) {
    CAPTURE(one.target.name);
    const auto plain = plain_baseline(one.graph, one.target.def);
    REQUIRE(plain);
    const auto plan = parse_plan(plain->plan);
    REQUIRE(plan);
    for (const workload& work : one.target.workloads) {
      const auto axes = resolve_axes(one.target.def, work.axes);
      REQUIRE(axes);
      std::vector<std::pair<std::string, scalar_value>> scalars;
      for (const auto& spec : one.target.def.inputs) {
        if (spec.is_scalar)
          scalars.emplace_back(
            spec.name, *make_scalar(spec.type, work.find_input(spec.name)->value));
      }
      const auto bound = resolve(*plan, one.target.def, *axes, scalars, device_facts{});
      REQUIRE_MESSAGE(bound, (bound ? std::string{} : bound.error().what));
      CHECK(bound->steps.size() == 1);
    }
  }
}

TEST_CASE("where no template fits there is no plain kernel either") {
  const auto one =
    map_problem(R"({"op": "mm", "inputs": [{"value": 0}, {"value": 0}], "outputs": [1]})");
  const auto plain = plain_baseline(one.graph, one.target.def);
  REQUIRE_FALSE(plain);
  CHECK(plain.error().code == errc::unsupported);
}
