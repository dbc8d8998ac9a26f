#include "simulation/selfcheck/verdict.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

using namespace gristmill;

namespace {

/// Twenty values around a mean whose standard error is `error`.
std::vector<double> values_around(double mean, double error) {
  const double deviation = error * std::sqrt(19.0);
  std::vector<double> out;
  for (int i = 0; i < 10; ++i) {
    out.push_back(mean - deviation);
    out.push_back(mean + deviation);
  }
  return out;
}

} // namespace

TEST_CASE("an estimate passes within four standard errors") {
  const expected_line line{"x", 100};
  const auto near = judge(line, values_around(101.9, 0.5));
  CHECK(near.verdict == line_verdict::pass);
  CHECK(near.standard_error == doctest::Approx(0.5));
  CHECK(near.tolerance == doctest::Approx(2));
  CHECK(near.estimate == doctest::Approx(101.9));
  CHECK(judge(line, values_around(102.1, 0.5)).verdict == line_verdict::off);
  CHECK(judge(line, values_around(97.9, 0.5)).verdict == line_verdict::off);
}

TEST_CASE("an estimate passes within half a percent, however small its error") {
  const expected_line line{"x", 100};
  CHECK(judge(line, values_around(100.49, 1e-6)).verdict == line_verdict::pass);
  CHECK(judge(line, values_around(100.51, 1e-6)).verdict == line_verdict::off);
  CHECK(judge(line, values_around(99.49, 1e-6)).verdict == line_verdict::off);
}

TEST_CASE("a noisy estimate fails even where it is right") {
  const expected_line line{"x", 100};
  CHECK(judge(line, values_around(100, 0.999)).verdict == line_verdict::pass);
  CHECK(judge(line, values_around(100, 1.001)).verdict == line_verdict::too_noisy);
  CHECK(judge(line, values_around(300, 50)).verdict == line_verdict::too_noisy);
  CHECK(judge(line, {100}).verdict == line_verdict::too_noisy);
  CHECK(judge({"x", -100}, values_around(-100, 1.001)).verdict == line_verdict::too_noisy);
  CHECK(judge({"x", -100}, values_around(-100, 0.5)).verdict == line_verdict::pass);
}

TEST_CASE("what is no number fails, and so does nothing at all") {
  for (const auto rule :
    {line_rule::estimate, line_rule::mean_at_most, line_rule::at_most, line_rule::exactly}) {
    const expected_line line{"x", 1, rule};
    CHECK(judge(line, {}).verdict == line_verdict::no_number);
    CHECK(judge(line, {1, std::nan(""), 1}).verdict == line_verdict::no_number);
    CHECK(judge(line, {1, 1, std::numeric_limits<double>::infinity()}).verdict
      == line_verdict::no_number);
  }
}

TEST_CASE("a bound holds for every seed, and the worst is shown") {
  const expected_line line{"x", 1, line_rule::at_most};
  const auto good = judge(line, {0.2, 1, 0.5});
  CHECK(good.verdict == line_verdict::pass);
  CHECK(good.estimate == 1);
  const auto bad = judge(line, {0.2, 1.0000001, 0.5});
  CHECK(bad.verdict == line_verdict::off);
  CHECK(bad.estimate == 1.0000001);
}

TEST_CASE("an exact number is exact for every seed") {
  const expected_line line{"x", 448, line_rule::exactly};
  CHECK(judge(line, {448, 448}).verdict == line_verdict::pass);
  const auto bad = judge(line, {448, 447, 448});
  CHECK(bad.verdict == line_verdict::off);
  CHECK(bad.estimate == 447);
}

TEST_CASE("a bound of the mean may be stayed below by any amount and passed by noise alone") {
  const expected_line line{"x", 1, line_rule::mean_at_most};
  CHECK(judge(line, values_around(0.5, 0.001)).verdict == line_verdict::pass);
  CHECK(judge(line, values_around(1.004, 0.001)).verdict == line_verdict::pass);
  CHECK(judge(line, values_around(1.006, 0.001)).verdict == line_verdict::off);
  CHECK(judge(line, values_around(0.5, 0.011)).verdict == line_verdict::too_noisy);
}

TEST_CASE("a sample is held against its distribution, and too small a sample fails") {
  const auto uniform = [](double x) { return std::clamp(x, 0.0, 1.0); };
  std::vector<double> even;
  for (int i = 0; i < 20'000; ++i)
    even.push_back((i + 0.5) / 20'000);
  CHECK(judge_distribution(uniform, even).verdict == line_verdict::pass);
  auto shifted = even;
  for (auto& x : shifted)
    x = std::min(1.0, x + 0.015);
  CHECK(judge_distribution(uniform, shifted).verdict == line_verdict::off);
  CHECK(judge_distribution(uniform, {0.25, 0.5, 0.75}).verdict == line_verdict::too_noisy);
  CHECK(judge_distribution(uniform, {}).verdict == line_verdict::no_number);
  even.push_back(std::nan(""));
  CHECK(judge_distribution(uniform, even).verdict == line_verdict::no_number);
}
