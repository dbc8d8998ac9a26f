#include "simulation/core/incident_plan.hpp"
#include "simulation/model/counter_stream.hpp"
#include "tests/simulation/core/lab_scenarios.hpp"

#include <chrono>

using namespace gristmill;
using namespace std::chrono_literals;

namespace {

/// Always busy: thinking takes nothing to speak of.
scenario saturated() {
  auto out = closed_scenario(8, 4);
  out.warm_up_s = 0;
  out.think.call = {draw_kind::constant, 1, 0, 1, 0};
  out.hold.time = {draw_kind::constant, 10, 0, 1, 0};
  return out;
}

} // namespace

TEST_CASE("a GPU that goes takes its lease along and comes back after its time") {
  auto what = saturated();
  what.incidents.push_back({incident_kind::gpu_down, 1000, 500, "gpu#2", 1});
  const auto r = run_or_fail(what);
  CHECK(r.lost == 1);
  CHECK(gpu_share(r, gpu_time::down) == doctest::Approx(500).epsilon(1e-6));
  CHECK(gpu_share(r, gpu_time::wasted) > 0);
  CHECK(gpu_share(r, gpu_time::wasted) <= 10.001);
  // It works again afterwards: only 500 s are missing.
  CHECK(gpu_share(r, gpu_time::useful) + gpu_share(r, gpu_time::wasted)
    == doctest::Approx(4 * 86'400 - 500).epsilon(0.001));
}

TEST_CASE("a node that goes takes all its GPUs along") {
  auto what = saturated();
  what.gpus.front().count = 6; // Four on node gpu-0, two on gpu-1.
  what.agents.front().count = 12;
  what.incidents.push_back({incident_kind::node_down, 1000, 500, "gpu-1", 1});
  const auto r = run_or_fail(what);
  CHECK(r.lost == 2);
  CHECK(gpu_share(r, gpu_time::down) == doctest::Approx(1000).epsilon(1e-6));
}

TEST_CASE("a GPU that goes again and again comes back under a new boot id each time") {
  auto what = saturated();
  what.chance_incidents.push_back({incident_kind::gpu_down, 600, 60, 1});
  const auto r = run_or_fail(what);
  // 4 GPUs, a cycle of 660 s: 523 in a day.
  CHECK(r.lost == doctest::Approx(523).epsilon(0.15));
  CHECK(gpu_share(r, gpu_time::down) / (4 * 86'400) == doctest::Approx(60.0 / 660).epsilon(0.15));
}

TEST_CASE("a GPU that goes while it is being verified loses what was measured") {
  auto what = saturated();
  what.hold.time.mean_s = 1;
  what.hold.verify_s = 200; // Nearly always verifying.
  what.incidents.push_back({incident_kind::gpu_down, 1000, 500, "gpu#0", 1});
  const auto r = run_or_fail(what);
  CHECK(r.lost == 1);
  CHECK(gpu_share(r, gpu_time::wasted) <= 1.001);
  CHECK(r.waited_s + r.held_s + r.thought_s == doctest::Approx(8 * 86'400).epsilon(1e-9));
}

TEST_CASE("while the model does not answer nobody asks for a GPU") {
  auto what = closed_scenario(10, 10);
  what.warm_up_s = 0;
  what.think.call = {draw_kind::constant, 100, 0, 1, 0};
  what.hold.time = {draw_kind::constant, 1, 0, 1, 0};
  const auto whole = run_or_fail(what);
  what.incidents.push_back({incident_kind::model_outage, 10'000, 8640, "", 1});
  const auto outage = run_or_fail(what);
  CHECK(static_cast<double>(outage.requests)
    == doctest::Approx(0.9 * static_cast<double>(whole.requests)).epsilon(0.005));
  what.incidents.front() = {incident_kind::rate_limit, 0, 86'400, "", 0.5};
  const auto slow = run_or_fail(what);
  CHECK(static_cast<double>(slow.requests)
    == doctest::Approx(static_cast<double>(whole.requests) * 101 / 201).epsilon(0.005));
}

TEST_CASE("calls stretch over the paces that they live through") {
  incident_plan plan;
  CHECK(plan.end_of_call(5s, 10s) == 15s);
  plan.paces = {{10s, 0.5}, {20s, 0}, {30s, 1}};
  CHECK(plan.end_of_call(0s, 10s) == 10s);
  CHECK(plan.end_of_call(0s, 12s) == 14s);
  CHECK(plan.end_of_call(0s, 15s) == 20s);
  CHECK(plan.end_of_call(0s, 16s) == 31s);
  CHECK(plan.end_of_call(25s, 1s) == 31s);
  CHECK(plan.end_of_call(40s, 1s) == 41s);
}

TEST_CASE("incidents that overlap are one, and the slowest pace counts") {
  auto what = saturated();
  what.incidents.push_back({incident_kind::gpu_down, 100, 50, "gpu#0", 1});
  what.incidents.push_back({incident_kind::node_down, 120, 100, "gpu-0", 1});
  what.incidents.push_back({incident_kind::rate_limit, 10, 100, "", 0.5});
  what.incidents.push_back({incident_kind::model_outage, 50, 10, "", 1});
  const auto plan = plan_incidents(what, 1);
  REQUIRE(plan);
  REQUIRE(plan->gpus.size() == 8);
  CHECK(plan->gpus.front().at == 100s);
  CHECK(plan->gpus.front().gpu == 0);
  for (const auto& edge : plan->gpus) {
    if (edge.up)
      CHECK(edge.at == 220s);
  }
  REQUIRE(plan->paces.size() == 4);
  CHECK(plan->paces[1].pace == 0);
  CHECK(plan->paces[2].pace == 0.5);
  CHECK(plan->paces[3].pace == 1);
}

TEST_CASE("more incidents than a run can have are refused") {
  auto what = saturated();
  what.chance_incidents.push_back({incident_kind::gpu_down, 1e-4, 1e-4, 1});
  const auto plan = plan_incidents(what, 1);
  REQUIRE_FALSE(plan);
  CHECK(plan.error().what.find("chance_incidents") != std::string::npos);
}

TEST_CASE("a hang holds its GPU to the end of the term and through the clean-up") {
  auto what = saturated();
  what.caps_s[1] = 120;
  what.fate = {1, 7, 0};
  const auto r = run_or_fail(what);
  CHECK(r.hangs == r.ended);
  CHECK(r.holds.quantile_s(0.5) == doctest::Approx(127).epsilon(0.003));
  CHECK(gpu_share(r, gpu_time::useful) == 0);
  CHECK(gpu_share(r, gpu_time::wasted)
    == doctest::Approx(gpu_share(r, gpu_time::verify) * 120 / 7).epsilon(0.01));
}

TEST_CASE("a fault ends after an even part of its hold") {
  auto what = saturated();
  what.fate = {0, 0, 1};
  const auto r = run_or_fail(what);
  CHECK(r.faults == r.ended);
  CHECK(r.holds.mean_s() == doctest::Approx(5).epsilon(0.02));
  CHECK(gpu_share(r, gpu_time::useful) == 0);
}

TEST_CASE("work that its term cuts off counts as a hang") {
  auto what = saturated();
  what.caps_s[1] = 8;
  const auto r = run_or_fail(what);
  CHECK(r.hangs == r.ended);
  CHECK(r.holds.mean_s() == doctest::Approx(8).epsilon(0.001));
}

TEST_CASE("hangs and faults bring nothing to their problem") {
  auto what = saturated();
  what.problems = 3;
  what.fate = {0.5, 0, 0.5};
  const auto r = run_or_fail(what);
  CHECK(r.end()->geomean == 1);
  CHECK(r.end()->median_sol == 0);
}
