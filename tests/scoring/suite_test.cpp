#include "scoring/score.hpp"
#include "scoring/suite.hpp"

#include <cmath>
#include <cstdlib>
#include <doctest/doctest.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

using namespace gristmill;

namespace {

timed_workload passed(const char* uuid, double t_k, double t_b = 4, double t_sol = 1) {
  return {uuid, "PASSED", true, t_k, t_b, t_sol, false};
}

timed_workload failed(const char* uuid, const char* status = "RUNTIME_ERROR") {
  return {uuid, status, false, 0, 4, 1, false};
}

} // namespace

TEST_CASE("the formula agrees with score vectors of our own") {
  const char* source = std::getenv("GRISTMILL_SOURCE");
  REQUIRE(source != nullptr);
  std::ifstream in(std::string{source} + "/tests/corpus/score_vectors.jsonl");
  int seen = 0;
  for (std::string line; std::getline(in, line); ++seen) {
    CAPTURE(line);
    const auto x = nlohmann::json::parse(line);
    const auto got = sol_formula(x["t_k"], x["t_b"], x["t_sol"]);
    REQUIRE(got.has_value() == !x["value"].is_null());
    if (got)
      CHECK(
        std::fabs(*got - x["value"].get<double>()) <= 1e-9 * std::fabs(x["value"].get<double>()));
  }
  CHECK(seen == 10);
}

TEST_CASE("a problem's score is the mean over all its workloads: failed and missing ones count 0") {
  // 4 of T_b 4, T_SOL 1 is one half; 1 is 1.
  const auto suite = score_suite(
    {{"p", "L1", {passed("a", 4), passed("b", 1), failed("c"), {"d", "", false, 0, 4, 1, false}}}});
  REQUIRE(suite);
  const auto& p = suite->problems.at(0);
  CHECK(p.total == 4);
  CHECK(p.passed == 2);
  CHECK(p.missing == 1);
  CHECK(p.score_mean == doctest::Approx(1.5 / 4));
  CHECK(p.score_median == doctest::Approx(0.25));
  // 1, 4, 1, 1
  CHECK(p.speedup_geomean == doctest::Approx(std::sqrt(2.0)));
  CHECK(p.speedup_mean == doctest::Approx(7.0 / 4));
  CHECK(p.faster == 1);
  // No time of the problem, where some workload has none.
  CHECK(p.latency_geomean == 0);
}

TEST_CASE("a suite's score is the mean over all problems, and by category, with medians") {
  const auto suite = score_suite({{"a", "L1", {passed("1", 4)}}, {"b", "L2", {failed("1")}},
    {"c", "L1", {passed("1", 1)}}, {"d", "L1", {failed("1"), passed("2", 1)}}});
  REQUIRE(suite);
  CHECK(suite->all.problems == 4);
  CHECK(suite->all.passed == 2);
  CHECK(suite->all.workloads == 5);
  CHECK(suite->all.workloads_passed == 3);
  CHECK(suite->all.score_mean == doctest::Approx((0.5 + 0 + 1 + 0.5) / 4));
  CHECK(suite->all.score_median == doctest::Approx(0.5));
  CHECK(suite->all.speedup_geomean == doctest::Approx(std::pow(4 * 2, 0.25)));
  REQUIRE(suite->categories.size() == 2);
  CHECK(suite->categories[0].name == "L1");
  CHECK(suite->categories[0].problems == 3);
  CHECK(suite->categories[0].score_mean == doctest::Approx(2.0 / 3));
  CHECK(suite->categories[1].score_mean == 0);
  CHECK(suite->problems[0].latency_geomean == doctest::Approx(4));
}

TEST_CASE("a time below the bound counts 0 and no speed-up until it was audited, then 1 at most") {
  auto w = passed("a", 0.5);
  auto one = score_workload(w);
  REQUIRE(one);
  CHECK(one->needs_audit);
  CHECK(one->score == 0);
  CHECK(one->speedup == 1);
  // The raw time stays.
  CHECK(one->from.t_k == 0.5);
  w.audited = true;
  one = score_workload(w);
  REQUIRE(one);
  CHECK_FALSE(one->needs_audit);
  CHECK(one->score == 1);
  CHECK(one->speedup == 8);
  const auto suite = score_suite({{"p", "", {passed("a", 0.5), passed("b", 4)}}});
  REQUIRE(suite);
  CHECK(suite->problems[0].need_audit == 1);
  CHECK(suite->problems[0].score_mean == doctest::Approx(0.25));
}

TEST_CASE("sensitivities are the derivatives of the formula, for one per cent") {
  const double t_k = 3;
  const double t_b = 5;
  const double t_sol = 4.0 / 3;
  const auto one = score_workload(passed("a", t_k, t_b, t_sol));
  REQUIRE(one);
  const double step = 1e-6;
  const auto slope = [&](double dk, double db, double ds) {
    return (*sol_formula(t_k + dk, t_b + db, t_sol + ds)
             - *sol_formula(t_k - dk, t_b - db, t_sol - ds))
      / (2 * step);
  };
  CHECK(one->per_cent_of_t_k == doctest::Approx(slope(step, 0, 0) * t_k / 100).epsilon(1e-5));
  CHECK(one->per_cent_of_t_b == doctest::Approx(slope(0, step, 0) * t_b / 100).epsilon(1e-5));
  CHECK(one->per_cent_of_t_sol == doctest::Approx(slope(0, 0, step) * t_sol / 100).epsilon(1e-5));
  CHECK_FALSE(one->is_close);
  const auto close = score_workload(passed("a", 1.07, 1.07, 1));
  REQUIRE(close);
  CHECK(close->is_close);
  CHECK(close->headroom == doctest::Approx(1.07));
  // One per cent of noise at the baseline: nearly four points of a hundred.
  CHECK(close->per_cent_of_t_k == doctest::Approx(-0.0382).epsilon(0.01));
  CHECK(score_workload(failed("a"))->per_cent_of_t_k == 0);
}

TEST_CASE("times that are no times, and nothing to score, are refused by name") {
  for (double bad : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    CHECK_FALSE(score_suite({{"p", "", {passed("w", bad)}}}));
    CHECK_FALSE(score_suite({{"p", "", {passed("w", 1, bad)}}}));
    const auto refused = score_suite({{"p", "", {passed("w", 1, 4, bad)}}});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().what.find("p: workload w: T_SOL") != std::string::npos);
  }
  CHECK_FALSE(score_suite({}));
  CHECK_FALSE(score_suite({{"p", "", {}}}));
}

TEST_CASE("a baseline at or below the bound scores all or nothing and has no slope") {
  const auto one = score_workload(passed("a", 1, 1, 1));
  REQUIRE(one);
  CHECK(one->score == 1);
  CHECK(one->per_cent_of_t_k == 0);
  CHECK(score_workload(passed("a", 1.1, 1, 1))->score == 0);
}
