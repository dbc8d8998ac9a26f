#include "simulation/sweep/sweep_file.hpp"

#include <doctest/doctest.h>
#include <string>

using namespace gristmill;

namespace {

result<lab_wishes> read(const std::string& text) {
  return sweep_from_toml(text, "study.toml", "/nowhere");
}

void refused(const std::string& text, const std::string& part) {
  const auto wishes = read(text);
  CAPTURE(text);
  REQUIRE_FALSE(wishes);
  CAPTURE(wishes.error().what);
  CHECK(wishes.error().code == errc::invalid_input);
  CHECK(wishes.error().what.find(part) != std::string::npos);
  CHECK(wishes.error().what.find("study.toml") != std::string::npos);
}

} // namespace

TEST_CASE("a sweep is a scenario with lists; the grid is every combination, in order") {
  const auto wishes = read(R"toml(
scenario = "small"
seeds = 20
first_seed = 5
policies = ["stride", "fifo"]
planners = ["equal", "rebalance(floor=0.5)"]
baseline = { policy = "fifo", planner = "equal" }
bounds = false
engine = "core"
[set]
agents.count = 30
[grid]
"gpus.count" = [2, 4, 8]
learning.gamma = [2, 4.5]
)toml");
  REQUIRE_MESSAGE(wishes, wishes.error().what);
  CHECK(wishes->seeds == 20);
  CHECK(wishes->first_seed == 5);
  CHECK(wishes->policies == std::vector<std::string>{"stride", "fifo"});
  CHECK(wishes->planners.size() == 2);
  CHECK(wishes->baseline_policy == "fifo");
  CHECK(wishes->baseline_planner == "equal");
  CHECK_FALSE(wishes->with_bounds);
  CHECK(wishes->base.agents.front().count == 30);
  REQUIRE(wishes->grid.size() == 6);
  CHECK(wishes->grid[0].labels == grid_point{{"gpus.count", "2"}, {"learning.gamma", "2"}});
  CHECK(wishes->grid[1].labels == grid_point{{"gpus.count", "2"}, {"learning.gamma", "4.5"}});
  CHECK(wishes->grid[5].settings == grid_point{{"gpus.count", "8"}, {"learning.gamma", "4.5"}});
  const auto plan = make_plan(*wishes);
  REQUIRE_MESSAGE(plan, plan.error().what);
  CHECK(plan->variants.size() == 24);
  CHECK(plan->baselines.size() == 6);
  CHECK(plan->variants[plan->baselines[1]].what.lease_policy == "fifo");
  CHECK(plan->variants.back().what.gpus.front().count == 8);
  CHECK(plan->variants.back().what.learning.gamma == 4.5);
}

TEST_CASE("a case sets keys under one name; cases come by name and are multiplied with the grid") {
  const auto wishes = read(R"toml(
scenario = "small"
[cases.on]
compile.on_lease = true
[cases.off]
compile.on_lease = false
[grid]
gpus.count = [2, 4]
)toml");
  REQUIRE_MESSAGE(wishes, wishes.error().what);
  REQUIRE(wishes->grid.size() == 4);
  CHECK(wishes->grid[2].labels == grid_point{{"case", "on"}, {"gpus.count", "2"}});
  CHECK(wishes->grid[2].settings == grid_point{{"compile.on_lease", "true"}, {"gpus.count", "2"}});
  const auto plan = make_plan(*wishes);
  REQUIRE(plan);
  CHECK(plan->variants.back().what.compile.on_lease);
  CHECK_FALSE(plan->variants.front().what.compile.on_lease);
  CHECK(plan->label(plan->variants.size() - 1).find("case=on gpus.count=4") == 0);
}

TEST_CASE("equal share and the oracle stand beside what was asked for, once") {
  const auto wishes = read("scenario = \"small\"\nplanners = [\"ucb\"]\n");
  REQUIRE_MESSAGE(wishes, wishes.error().what);
  auto plan = make_plan(*wishes);
  REQUIRE_MESSAGE(plan, plan.error().what);
  REQUIRE(plan->variants.size() == 3);
  CHECK(plan->variants[1].what.planner == "equal");
  CHECK(plan->variants[1].is_bound);
  CHECK(plan->variants[2].what.planner == "oracle");
  CHECK(plan->baselines.front() == 0);
  auto against = *wishes;
  against.against_equal = true;
  CHECK(make_plan(against)->baselines.front() == 1);
  auto all = *wishes;
  all.planners = {"oracle", "equal"};
  CHECK(make_plan(all)->variants.size() == 2);
}

TEST_CASE("what a sweep file has wrong is refused with file, line, key and the nearest valid one") {
  refused("", "scenario: is missing");
  refused("scenario = 3\n", "study.toml:1: scenario: must be a string");
  refused("scenario = \"small\"\nplanner = [\"equal\"]\n", "did you mean `planners`");
  refused("scenario = \"small\"\nseeds = 0\n", "study.toml:2: seeds: must be a whole number");
  refused("scenario = \"small\"\nseeds = \"20\"\n", "seeds: must be a whole number");
  refused("scenario = \"small\"\nseeds = -1\n", "seeds");
  refused("scenario = \"small\"\npolicies = []\n", "policies: must be a list");
  refused("scenario = \"small\"\npolicies = [1]\n", "policies: must be a string");
  refused("scenario = \"small\"\nbounds = 1\n", "bounds: must be true or false");
  refused("scenario = \"small\"\nengine = \"fast\"\n", "must be \"core\" or \"actors\"");
  refused("scenario = \"small\"\nbaseline = \"fifo\"\n", "baseline: must be a table");
  refused("scenario = \"small\"\nbaseline = {polici = \"fifo\"}\n", "did you mean `policy`");
  refused("scenario = \"small\"\n[grid]\n\"gpus.coutn\" = [2]\n", "study.toml:3: grid.gpus.coutn");
  refused("scenario = \"small\"\n[grid]\n\"gpus.count\" = 2\n", "must be a list of values");
  refused("scenario = \"small\"\n[grid]\n\"gpus.count\" = []\n", "must be a list of values");
  refused("scenario = \"small\"\n[grid]\n\"gpus.count\" = [2, 2]\n", "2 stands twice");
  refused("scenario = \"small\"\n[grid]\n\"gpus.count\" = [[2]]\n", "must be a string, a number");
  refused("scenario = \"small\"\n[grid]\n\"gpus.count\" = [\"few\"]\n", "grid.gpus.count");
  refused("scenario = \"small\"\n[set]\n\"agents.cuont\" = 2\n", "set.agents.cuont");
  refused("scenario = \"small\"\n[cases]\nx = 1\n", "cases.x: must be a table");
  refused("scenario = \"small\"\nseeds = \n", "study.toml:2");
  refused(std::string(2 << 20, '#'), "at most");
}

TEST_CASE("a preset or file that is not there is named with the nearest preset") {
  const auto wishes = read("scenario = \"smal\"\n");
  REQUIRE_FALSE(wishes);
  CHECK(wishes.error().what.find("small") != std::string::npos);
}

TEST_CASE("a grid that multiplies beyond all bounds is refused, not built") {
  std::string text = "scenario = \"small\"\n[grid]\n";
  for (const char* key : {"gpus.count", "agents.count", "patience", "curve_points"}) {
    text += std::string("\"") + key + "\" = [";
    for (int i = 1; i <= 100; ++i)
      text += std::to_string(i + 100) + ",";
    text += "]\n";
  }
  const auto wishes = read(text);
  REQUIRE_FALSE(wishes);
  CAPTURE(wishes.error().what);
  CHECK(wishes.error().what.find("the grid is too large") != std::string::npos);
}

TEST_CASE("plans are refused for what does not exist, stands twice or compares with nothing") {
  const auto wishes = read("scenario = \"small\"\n");
  REQUIRE(wishes);
  const auto refused_plan = [](const lab_wishes& with, const char* part) {
    const auto plan = make_plan(with);
    REQUIRE_FALSE(plan);
    CAPTURE(plan.error().what);
    CHECK(plan.error().code == errc::invalid_input);
    CHECK(plan.error().what.find(part) != std::string::npos);
  };
  auto with = *wishes;
  with.policies = {"strode"};
  refused_plan(with, "did you mean 'stride'");
  with = *wishes;
  with.planners = {"orcale"};
  refused_plan(with, "did you mean `oracle`");
  with = *wishes;
  with.policies = {"fifo", "fifo"};
  refused_plan(with, "twice");
  with = *wishes;
  with.baseline_planner = "orcale";
  refused_plan(with, "baseline `");
  with = *wishes;
  with.seeds = 0;
  refused_plan(with, "no seed");
  with = *wishes;
  with.seeds = 100'000;
  refused_plan(with, "at most");
  with = *wishes;
  with.base.problems = 0;
  with.planners = {"equal"};
  refused_plan(with, "no problems");
}
