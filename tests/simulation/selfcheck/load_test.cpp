#include "simulation/selfcheck/least_remaining.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace gristmill;
using namespace std::chrono_literals;

namespace {

time_law exponential(double mean_s) {
  return {draw_kind::exponential, mean_s, 0, 1, 0};
}

} // namespace

TEST_CASE("least remaining first interrupts for what is shorter") {
  // The second comes while the first has 3 s left, and goes first; the third does not.
  CHECK(least_remaining_mean({{0s, 4s}, {1s, 1s}}) == doctest::Approx((5 + 1) / 2.0));
  CHECK(least_remaining_mean({{0s, 4s}, {1s, 5s}}) == doctest::Approx((4 + 8) / 2.0));
  CHECK(least_remaining_mean({{0s, 4s}, {1s, 1s}, {10s, 2s}}, 2) == doctest::Approx(2));
  // Idle between.
  CHECK(least_remaining_mean({{0s, 1s}, {100s, 3s}}) == doctest::Approx(2));
  CHECK(least_remaining_mean({}) == 0);
}

TEST_CASE("jobs come at their rate, in order, and are equal for equal seeds") {
  const auto jobs = draw_jobs(exponential(10), 0.08, 50'000, 7);
  double work = 0;
  for (size_t i = 0; i < jobs.size(); ++i) {
    work += seconds_of(jobs[i].work);
    CHECK(jobs[i].work > 0s);
    if (i > 0)
      REQUIRE(jobs[i].arrived > jobs[i - 1].arrived);
  }
  CHECK(work / 50'000 == doctest::Approx(10).epsilon(0.02));
  CHECK(seconds_of(jobs.back().arrived) * 0.08 == doctest::Approx(50'000).epsilon(0.02));
  const auto again = draw_jobs(exponential(10), 0.08, 50'000, 7);
  CHECK(again.back().arrived == jobs.back().arrived);
  CHECK(draw_jobs(exponential(10), 0.08, 50'000, 8).back().arrived != jobs.back().arrived);
}

TEST_CASE("a job that is cut into leases keeps its work, and only its last lease is marked") {
  const std::vector<job_size> jobs = {{1s, 7s}, {2s, 3s}, {3s, 1s}};
  const auto agents = as_agents(jobs, 2, 3s);
  REQUIRE(agents.size() == 2);
  const auto& first = agents[0].leases;
  REQUIRE(first.size() == 4);
  CHECK(first[0].absolute);
  CHECK(first[0].gap == 1s);
  CHECK(first[0].hold == 3s);
  CHECK(first[0].estimate == 7s);
  CHECK_FALSE(first[1].absolute);
  CHECK(first[1].gap == 0s);
  CHECK(first[1].estimate == 4s);
  CHECK(first[2].hold == 1s);
  CHECK(first[2].what == lease_class::profile);
  CHECK(first[1].what == lease_class::timing);
  CHECK(first[3].absolute);
  CHECK(first[3].gap == 3s);
  REQUIRE(agents[1].leases.size() == 1);
  CHECK(agents[1].leases[0].hold == 3s);
  CHECK(as_agents(jobs, 1, 0s)[0].leases.size() == 3);
}

TEST_CASE("arrivals of several kinds have their rates, and lanes take them in turn") {
  const auto agents = arriving_jobs(
    {{0.5, exponential(1), lease_class::correctness}, {0.1, exponential(2), lease_class::profile}},
    10, 20'000, 3);
  REQUIRE(agents.size() == 20);
  size_t first = 0;
  size_t second = 0;
  for (size_t i = 0; i < agents.size(); ++i)
    for (const auto& lease : agents[i].leases) {
      CHECK(lease.absolute);
      CHECK(lease.estimate == lease.hold);
      CHECK(lease.what == (i < 10 ? lease_class::correctness : lease_class::profile));
      ++(i < 10 ? first : second);
    }
  CHECK(double(first) == doctest::Approx(10'000).epsilon(0.04));
  CHECK(double(second) == doctest::Approx(2'000).epsilon(0.08));
}

TEST_CASE(
  "flows of a backlog have more agents than GPUs could serve, and work for all of the time") {
  const auto agents = backlogged_flows({1, 3}, 3, exponential(5), 100, 1);
  REQUIRE(agents.size() == 6);
  CHECK(agents[0].weight == 1);
  CHECK(agents[5].weight == 3);
  for (const auto& agent : agents) {
    double sum = 0;
    for (const auto& lease : agent.leases) {
      sum += seconds_of(lease.hold);
      CHECK(lease.problem == (agent.weight == 1 ? "a" : "b"));
    }
    CHECK(sum >= 100);
  }
}
