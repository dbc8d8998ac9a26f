#include "scoring/score.hpp"

#include <cmath>
#include <cstdlib>
#include <doctest/doctest.h>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

using namespace gristmill;

TEST_CASE("the formula agrees with every score vector of the specification") {
  const char* shared = std::getenv("GRISTMILL_SHARED");
  std::ifstream in(shared == nullptr
      ? std::string{}
      : std::string{shared} + "/data/sol-execbench/_vectors/vectors.jsonl");
  if (!in) {
    MESSAGE("SKIPPED: set GRISTMILL_SHARED to the folder that holds data/sol-execbench");
    return;
  }
  int seen = 0;
  for (std::string line; std::getline(in, line);) {
    auto vector = nlohmann::json::parse(line);
    if (vector["kind"] != "score")
      continue;
    ++seen;
    CAPTURE(line);
    const auto& x = vector["input"];
    auto got =
      sol_formula(x["t_k"].get<double>(), x["t_b"].get<double>(), x["t_sol"].get<double>());
    const auto& expect = vector["expect"];
    REQUIRE(got.has_value() == expect["ok"].get<bool>());
    // The literal form, so the very same double.
    if (got)
      CHECK(*got == expect["value"].get<double>());
  }
  CHECK(seen >= 17);
}

TEST_CASE("the baseline scores one half and the bound scores 1") {
  CHECK(sol_score(1, 1, 0.5)->value == 0.5);
  CHECK(sol_score(0.5, 1, 0.5)->value == 1);
  CHECK_FALSE(sol_score(0.5, 1, 0.5)->needs_audit);
  CHECK(sol_score(2, 1, 0.5)->value == 0.25);
}

TEST_CASE("a time below the bound counts 0 and needs an audit, also at and beyond the pole") {
  for (double t_k : {0.49, 0.25, 0.1, 1e-300}) {
    CAPTURE(t_k);
    auto score = sol_score(t_k, 1, 0.5);
    REQUIRE(score);
    CHECK(score->value == 0);
    CHECK(score->needs_audit);
  }
  CHECK(sol_score(0.6, 1, 0.8)->needs_audit);
  CHECK(sol_score(0.4, 0.5, 0.5)->needs_audit);
}

TEST_CASE("a baseline at or below the bound scores all or nothing") {
  CHECK(sol_score(0.5, 0.5, 0.5)->value == 1);
  CHECK(sol_score(0.6, 0.5, 0.5)->value == 0);
  CHECK(sol_score(0.5, 0.3, 0.5)->value == 1);
}

TEST_CASE("times that are zero, negative or not finite are refused by name") {
  double inf = std::numeric_limits<double>::infinity();
  double nan = std::numeric_limits<double>::quiet_NaN();
  for (double bad : {0.0, -1.0, inf, -inf, nan}) {
    CAPTURE(bad);
    CHECK(sol_score(bad, 1, 0.5).error().what.find("t_k") != std::string::npos);
    CHECK(sol_score(1, bad, 0.5).error().what.find("t_b") != std::string::npos);
    CHECK(sol_score(1, 1, bad).error().what.find("t_sol") != std::string::npos);
  }
  CHECK_FALSE(sol_formula(nan, 1, 1));
  CHECK_FALSE(sol_formula(1, inf, 1));
}

TEST_CASE("means and the median are right for one, for many and for none") {
  std::vector<double> v{4, 1, 2};
  CHECK(*geomean(v) == doctest::Approx(2));
  CHECK(*mean(v) == doctest::Approx(7.0 / 3));
  CHECK(*median(v) == 2);
  CHECK(*median({4, 1, 2, 3}) == 2.5);
  CHECK(*median({5}) == 5);
  std::vector<double> one{3};
  CHECK(*geomean(one) == doctest::Approx(3));
  CHECK_FALSE(geomean({}));
  CHECK_FALSE(mean({}));
  CHECK_FALSE(median({}));
}

TEST_CASE("a geometric mean refuses what has no logarithm") {
  for (double bad : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    std::vector<double> v{1, bad};
    CHECK(geomean(v).error().code == errc::invalid_input);
  }
  std::vector<double> v{-1, 1};
  CHECK(*mean(v) == 0);
}

TEST_CASE("a geometric mean does not overflow where a product would") {
  std::vector<double> v(1000, 1e300);
  CHECK(*geomean(v) == doctest::Approx(1e300));
}

TEST_CASE("a suite is averaged over all problems, never over the passed ones") {
  std::vector<problem_outcome> suite{
    {true, 0.8, true, 4},
    {true, 0.4, true, 1},
    // Its score and speed-up are not read: it failed.
    {false, 0.9, true, 100},
    // No baseline: in the SOL denominator, but not in that of the speed-ups.
    {true, 0.0, false, 0},
  };
  auto s = summarise(suite);
  REQUIRE(s);
  CHECK(s->problems == 4);
  CHECK(s->passed_count == 3);
  CHECK(s->sol_mean == doctest::Approx(1.2 / 4));
  CHECK(s->sol_median == doctest::Approx(0.2));
  CHECK(s->with_baseline == 3);
  CHECK(s->geomean_all == doctest::Approx(std::cbrt(4.0)));
  CHECK(s->faster_count == 1);
  CHECK(s->twice_as_fast_count == 1);
}

TEST_CASE("an empty suite and one without baselines have no speed-up to boast of") {
  CHECK(summarise({})->problems == 0);
  std::vector<problem_outcome> suite{{true, 0.5, false, 7}};
  CHECK(summarise(suite)->geomean_all == 1);
  CHECK(summarise(suite)->with_baseline == 0);
}

TEST_CASE("a passed problem with an impossible speed-up or score is an error") {
  std::vector<problem_outcome> zero{{true, 0.5, true, 0}};
  CHECK(summarise(zero).error().code == errc::invalid_input);
  std::vector<problem_outcome> nan{{true, std::nan(""), false, 0}};
  CHECK(summarise(nan).error().code == errc::invalid_input);
}
