#include "tests/simulation/core/lab_scenarios.hpp"

#include <cmath>

using namespace gristmill;
using namespace std::chrono_literals;

namespace {

scenario open_scenario(double load, double days = 4) {
  auto out = closed_scenario(0, 1, days);
  out.agents.clear();
  out.hold.time = {draw_kind::exponential, 10, 0, 1, 0};
  out.arrivals.rate = load / 10;
  return out;
}

} // namespace

TEST_CASE("an open queue has the waits of M/M/1") {
  double wait = 0;
  double response = 0;
  constexpr int seeds = 8;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const auto r = run_or_fail(open_scenario(0.7), seed);
    wait += r.waits.mean_s() / seeds;
    response += r.responses.mean_s() / seeds;
    CHECK(r.agents == 0);
    CHECK(r.shares.empty());
    CHECK(std::fabs(r.queue_area - r.waited_s) <= 1e-9 * r.waited_s);
    CHECK(std::fabs(r.system_area - r.waited_s - r.held_s) <= 1e-9 * r.system_area);
  }
  CHECK(wait == doctest::Approx(0.7 / 0.3 * 10).epsilon(0.05));
  CHECK(response == doctest::Approx(10 / 0.3).epsilon(0.05));
}

TEST_CASE("jobs take their leases one after the other") {
  auto what = open_scenario(0.5, 8);
  what.arrivals.rate = 0.5 / 10 / 4;
  what.arrivals.leases_mean = 4;
  const auto r = run_or_fail(what);
  CHECK(static_cast<double>(r.ended) / static_cast<double>(r.responses.count())
    == doctest::Approx(4).epsilon(0.03));
  CHECK(r.utilisation() == doctest::Approx(0.5).epsilon(0.03));
}

TEST_CASE("a queue that grows without limit ends the run with the key that says so") {
  auto what = open_scenario(2);
  what.arrivals.jobs_max = 500;
  const auto r = run_core(what, {});
  REQUIRE_FALSE(r);
  CHECK(r.error().code == errc::refused);
  CHECK(r.error().what.find("arrivals.jobs_max") != std::string::npos);
}

TEST_CASE("the shortest first makes waits shorter when holds are known") {
  auto what = open_scenario(0.8, 8);
  what.estimate = hold_estimate::exact;
  const auto fifo = run_or_fail(what);
  what.lease_policy = "sept";
  const auto sept = run_or_fail(what);
  CHECK(sept.waits.mean_s() < 0.7 * fifo.waits.mean_s());
}

TEST_CASE("jobs and agents share the GPUs") {
  auto what = closed_scenario(10, 3);
  what.arrivals.rate = 0.02;
  const auto r = run_or_fail(what);
  CHECK(r.agents == 10);
  CHECK(r.shares.size() == 10);
  CHECK(r.responses.count() > 1000);
}

TEST_CASE("a job whose lease is lost with its GPU asks again") {
  auto what = open_scenario(0.5);
  what.hold.time = {draw_kind::constant, 10, 0, 1, 0};
  what.chance_incidents.push_back({incident_kind::gpu_down, 500, 10, 1});
  const auto r = run_or_fail(what);
  CHECK(r.lost > 100);
  CHECK(r.given_up == 0);
  CHECK(
    static_cast<double>(r.responses.count()) == doctest::Approx(0.05 * r.measured_s).epsilon(0.05));
}

TEST_CASE("those who were recorded do what they did, at the times that they did it") {
  scenario what = closed_scenario(0, 1);
  what.warm_up_s = 0;
  what.duration_s = 1000;
  recorded_agent first;
  first.name = "first";
  recorded_lease lease;
  lease.gap = 10'000'000'001ns;
  lease.hold = 20s;
  lease.problem = "gemm";
  lease.attempt = "gemm/cuda/1";
  first.leases = {lease, lease};
  recorded_agent second;
  second.name = "second";
  lease.absolute = true;
  lease.gap = 15s;
  lease.hold = 5s;
  second.leases = {lease};
  std::vector<event> lines;
  lab_options options;
  options.world.recorded = {first, second};
  options.journal = [&](event&& line) { lines.push_back(std::move(line)); };
  const auto r = run_core(what, std::move(options));
  REQUIRE(r);
  CHECK(r->ended == 3);
  CHECK(r->agents == 2);
  std::vector<std::pair<std::string, int64_t>> seen;
  for (const auto& line : lines)
    if (line.kind == "lease_request" || line.kind == "gpu_free") {
      seen.emplace_back(line.kind, line.t.count());
      CHECK(line.problem == "gemm");
      CHECK(line.attempt == "gemm/cuda/1");
    }
  using seen_list = std::vector<std::pair<std::string, int64_t>>;
  CHECK(seen
    == seen_list{{"lease_request", 10'000'000'001}, {"lease_request", 15'000'000'000},
      {"gpu_free", 30'000'000'001}, {"gpu_free", 35'000'000'001}, {"lease_request", 40'000'000'002},
      {"gpu_free", 60'000'000'002}});
  CHECK(r->waits.max_s() == doctest::Approx(15.000000001));
}

TEST_CASE("a recorded request that was taken back is taken back, unless a GPU came first") {
  scenario what = closed_scenario(0, 1);
  what.warm_up_s = 0;
  what.duration_s = 1000;
  recorded_lease lease;
  lease.absolute = true;
  lease.gap = 10s;
  lease.hold = 100s;
  recorded_agent holder{"holder", 1, {lease}};
  lease.gap = 20s;
  lease.gave_up_after = 30s;
  recorded_agent patient{"patient", 1, {lease}};
  recorded_lease late = lease;
  late.gap = 200s;
  patient.leases.push_back(late);
  lab_options options;
  options.world.recorded = {holder, patient};
  const auto r = run_core(what, std::move(options));
  REQUIRE(r);
  CHECK(r->given_up == 1);
  CHECK(r->ended == 2);
  CHECK(r->waited_s == doctest::Approx(30));
}
