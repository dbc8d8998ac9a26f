#include "simulation/core/problem_set.hpp"
#include "simulation/model/counter_stream.hpp"
#include "tests/simulation/core/lab_scenarios.hpp"

#include <cmath>
#include <limits>
#include <map>
#include <thread>

using namespace gristmill;

TEST_CASE("the curve stands at even distances, grows in GPU hours and ends with the run") {
  auto what = busy_scenario();
  what.curve_points = 7;
  const auto r = run_or_fail(what);
  REQUIRE(r.curve.size() == 7);
  double hours = 0;
  for (size_t i = 0; i < r.curve.size(); ++i) {
    CHECK(r.curve[i].time_s
      == doctest::Approx(what.duration_s / 7 * static_cast<double>(i + 1)).epsilon(1e-9));
    CHECK(r.curve[i].gpu_hours > hours);
    hours = r.curve[i].gpu_hours;
  }
  CHECK(r.end()->wins <= what.problems);
  CHECK(r.end()->above_two <= r.end()->wins);
  // All GPU time went to some problem.
  CHECK(std::accumulate(r.problem_s.begin(), r.problem_s.end(), 0.0)
    == doctest::Approx(hours * 3600).epsilon(1e-9));
  // The median needs no more than what was there.
  CHECK(r.end()->median_sol > 0);
  CHECK(r.end()->median_sol < 1);
}

TEST_CASE("without problems there is no curve and no planner") {
  const auto r = run_or_fail(closed_scenario(4, 2));
  CHECK(r.curve.empty());
  CHECK(r.problem_s.empty());
  CHECK(r.end() == nullptr);
}

TEST_CASE("what the n-th attempt at a problem brings does not depend on anything else") {
  scenario what;
  what.problems = 3;
  problem_set a(what, 4);
  problem_set b(what, 4);
  std::vector<double> alone;
  for (int i = 0; i < 200; ++i)
    alone.push_back(a.attempt(1));
  for (int i = 0; i < 200; ++i) {
    b.attempt(0);
    CHECK(b.attempt(1) == alone[static_cast<size_t>(i)]);
    b.attempt(2);
  }
}

TEST_CASE(
  "whoever is right more often is right at least where others are: the luck stays aligned") {
  scenario what;
  what.problems = 1;
  // Nearly every right candidate improves, so that one can see which were right.
  what.learning.improve = 1;
  what.learning.spread = 0;
  what.learning.gamma = 0.001;
  what.learning.correct = 0.3;
  problem_set seldom(what, 8);
  what.learning.correct = 0.6;
  problem_set often(what, 8);
  int both = 0;
  for (int i = 0; i < 100; ++i) {
    const bool is_right = seldom.attempt(0) != 0;
    if (often.attempt(0) != 0 && is_right)
      ++both;
    else
      CHECK_FALSE(is_right);
  }
  CHECK(both > 15);
}

TEST_CASE("gains that are told add up to where the problems end") {
  auto what = busy_scenario();
  std::map<uint32_t, double> sums;
  uint64_t attempts = 0;
  lab_options options;
  options.world.on_attempt = [&](uint32_t problem, uint32_t agent, double gain, auto) {
    CHECK(problem < 6);
    CHECK(agent < 20);
    sums[problem] += gain;
    ++attempts;
  };
  const auto r = run_core(what, std::move(options));
  REQUIRE(r);
  double sum = 0;
  for (const auto& [problem, gain] : sums)
    sum += gain;
  CHECK(std::exp(sum / 6) == doctest::Approx(r->end()->geomean));
  CHECK(attempts > 500);
  CHECK(attempts <= r->leases_total);
}

TEST_CASE("problems may begin with a kernel each") {
  auto what = busy_scenario();
  what.starts_solved = true;
  what.duration_s = 4000;
  what.curve_points = 2000;
  const auto r = run_or_fail(what);
  CHECK(r.curve.front().geomean < 1); // They start below the baseline.
}

TEST_CASE("all planners run, equal ones equally") {
  auto what = busy_scenario();
  for (const char* planner : {"equal", "round_robin", "greedy", "ucb", "rising", "oracle"}) {
    CAPTURE(planner);
    what.planner = planner;
    const auto r = run_or_fail(what);
    CHECK(r.end()->geomean > 0.4);
    CHECK(r.digest == run_or_fail(what).digest);
  }
}

TEST_CASE("the journal changes nothing, tells every lease") {
  const auto what = busy_scenario();
  const auto plain = run_or_fail(what, 9);
  std::map<std::string, uint64_t> kinds;
  auto before = std::chrono::nanoseconds{0};
  lab_options options;
  options.world.seed = 9;
  options.journal = [&](event&& line) {
    ++kinds[line.kind];
    CHECK(line.t >= before);
    before = line.t;
  };
  const auto told = run_core(what, std::move(options));
  REQUIRE(told);
  CHECK(told->digest == plain.digest);
  CHECK(told->transitions == plain.transitions);
  CHECK(kinds["lease_grant"] == told->leases_total);
  CHECK(kinds["lease_active"] == told->leases_total);
  CHECK(kinds["lease_revoke"] > 0);
  CHECK(kinds["gpu_down"] > 2);
  CHECK(kinds["gpu_probe"] > 2);
  CHECK(kinds["token_block"] == 5);
}

TEST_CASE("runs side by side in threads do not disturb each other") {
  const auto what = busy_scenario();
  const auto alone = run_or_fail(what, 3).digest;
  const auto other = run_or_fail(what, 4).digest;
  std::string a;
  std::string b;
  std::thread first([&] {
    lab_options options;
    options.world.seed = 3;
    a = run_core(what, std::move(options))->digest;
  });
  std::thread second([&] {
    lab_options options;
    options.world.seed = 4;
    b = run_core(what, std::move(options))->digest;
  });
  first.join();
  second.join();
  CHECK(a == alone);
  CHECK(b == other);
}

TEST_CASE("hours to a target are interpolated, and infinite when it was never reached") {
  lab_result r;
  CHECK(r.gpu_hours_to(1) == std::numeric_limits<double>::infinity());
  r.curve.push_back({1, 10, 0.8, 0, 0, 0});
  r.curve.push_back({2, 20, 1.0, 0, 0, 0});
  r.curve.push_back({3, 30, 1.2, 0, 0, 0});
  CHECK(r.gpu_hours_to(0.5) == 10);
  CHECK(r.gpu_hours_to(0.9) == doctest::Approx(15));
  CHECK(r.gpu_hours_to(1.1) == doctest::Approx(25));
  CHECK(r.gpu_hours_to(1.3) == std::numeric_limits<double>::infinity());
  CHECK(r.mean_geomean() == doctest::Approx((9 + 9 + 11) / 30.0));
}

TEST_CASE("Jain's index is 1 for equal shares and 1/n when one has all") {
  CHECK(jain_index({}) == 1);
  CHECK(jain_index({0, 0}) == 1);
  CHECK(jain_index({2, 2, 2}) == doctest::Approx(1));
  CHECK(jain_index({1, 0, 0, 0}) == doctest::Approx(0.25));
}

TEST_CASE("a histogram of times keeps mean and extremes exactly and quantiles within its bins") {
  time_histogram h;
  CHECK(h.quantile_s(0.5) == 0);
  CHECK(h.mean_s() == 0);
  CHECK(h.share_up_to(1) == 0);
  for (int i = 1; i <= 1000; ++i)
    h.add(i * 1'000'000);
  CHECK(h.count() == 1000);
  CHECK(h.mean_s() == doctest::Approx(0.5005));
  CHECK(h.max_s() == doctest::Approx(1));
  CHECK(h.quantile_s(0.5) == doctest::Approx(0.5).epsilon(0.004));
  CHECK(h.quantile_s(0.99) == doctest::Approx(0.99).epsilon(0.004));
  CHECK(h.quantile_s(1) == doctest::Approx(1));
  CHECK(h.share_up_to(0.25) == doctest::Approx(0.25).epsilon(0.01));
  CHECK(h.share_up_to(5) == 1);
  CHECK(h.share_up_to(-1) == 0);
  CHECK(h.cumulative().back().second == 1000);

  time_histogram zeros;
  zeros.add(0);
  zeros.add(0);
  zeros.add(255);
  CHECK(zeros.quantile_s(0.5) == 0);
  CHECK(zeros.share_up_to(0) == doctest::Approx(2.0 / 3));
  CHECK(zeros.max_s() == doctest::Approx(255e-9));
  zeros.merge(h);
  CHECK(zeros.count() == 1003);
  CHECK(zeros.max_s() == doctest::Approx(1));
}
