#include "gpu/cuda/stream_plan.hpp"

#include <doctest/doctest.h>

using namespace gristmill;
using cuda::plan_streams;

namespace {

std::vector<call_step> steps(const std::vector<std::vector<uint32_t>>& after) {
  std::vector<call_step> out(after.size());
  for (size_t i = 0; i < after.size(); ++i)
    out[i].after = after[i];
  return out;
}

} // namespace

TEST_CASE("a chain stays on one stream and needs no event") {
  const auto plan = plan_streams(steps({{}, {0}, {1}}));
  REQUIRE(plan);
  CHECK(plan->streams == 1);
  CHECK(plan->joins.empty());
  for (const auto& step : plan->steps) {
    CHECK(step.stream == 0);
    CHECK(step.waits.empty());
    CHECK_FALSE(step.records);
    CHECK_FALSE(step.forks);
  }
}

TEST_CASE("branches get streams of their own and are joined") {
  const auto plan = plan_streams(steps({{}, {0}, {0}, {1, 2}, {}}));
  REQUIRE(plan);
  CHECK(plan->streams == 3);
  CHECK(plan->steps[1].stream == 0);
  CHECK(plan->steps[2].stream == 1);
  CHECK(plan->steps[2].waits == std::vector<uint32_t>{0});
  CHECK(plan->steps[0].records);
  CHECK(plan->steps[3].stream == 0);
  CHECK(plan->steps[3].waits == std::vector<uint32_t>{2});
  // A branch with nothing before it still begins with the call.
  CHECK(plan->steps[4].stream == 2);
  CHECK(plan->steps[4].forks);
  CHECK(plan->joins == std::vector<uint32_t>{2, 4});
  CHECK(plan->steps[2].records);
  CHECK(plan->steps[4].records);
}

TEST_CASE("no steps are no branches") {
  const auto plan = plan_streams({});
  REQUIRE(plan);
  CHECK(plan->streams == 1);
  CHECK(plan->joins.empty());
}

TEST_CASE("more branches than streams are put behind others and keep their order") {
  const auto plan = plan_streams(steps(std::vector<std::vector<uint32_t>>(40)));
  REQUIRE(plan);
  CHECK(plan->streams == cuda::streams_max);
  CHECK(plan->joins.size() == cuda::streams_max - 1);
  for (uint32_t i = 0; i < 40; ++i)
    CHECK(plan->steps[i].stream < cuda::streams_max);
}

TEST_CASE("a step waits for earlier steps only") {
  auto plan = plan_streams(steps({{0}}));
  REQUIRE_FALSE(plan);
  CHECK(plan.error().code == errc::invalid_input);
  CHECK_FALSE(plan_streams(steps({{}, {2}, {}})));
}

TEST_CASE("a dependent launch follows one launch directly, and is never the first") {
  auto all = steps({{}, {0}});
  all[1].pdl = true;
  CHECK(plan_streams(all));
  all[0].what = call_step::op::memset;
  CHECK_FALSE(plan_streams(all));
  all = steps({{}, {}});
  all[0].pdl = true;
  const auto first = plan_streams(all);
  REQUIRE_FALSE(first);
  CHECK(first.error().what.find("step 0") != std::string::npos);
  all = steps({{}, {0}, {0}});
  all[2].pdl = true;
  CHECK_FALSE(plan_streams(all));
  all = steps({{}, {}, {0, 1}});
  all[2].pdl = true;
  CHECK_FALSE(plan_streams(all));
}
