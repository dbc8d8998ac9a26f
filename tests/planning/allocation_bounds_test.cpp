#include "simulation/core/oracle_allocation.hpp"
#include "tests/planning/allocation_support.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

// The hindsight oracle against closed forms of the learning model.

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

std::vector<problem_curve> some_problems(uint32_t count, const learning_law& law) {
  std::vector<problem_curve> out;
  for (uint32_t i = 0; i < count; ++i) {
    auto p = draw_problem(law, {}, 5, i);
    // Where an improvement is never certain, so that the closed form holds from the start.
    p.ease = std::min(p.ease, 2.5);
    p.is_solved = true;
    out.push_back(p);
  }
  return out;
}

/// E[g^-gamma] grows by gamma times this for each attempt.
double rho(const problem_curve& p, const learning_law& law) {
  return law.correct * law.improve * p.ease / law.step;
}

/// The mean path: as one attempt changes the gap on average.
void one_attempt(problem_curve& p, const learning_law& law) {
  p.gap = std::pow(std::pow(p.gap, -law.gamma) + law.gamma * rho(p, law), -1 / law.gamma);
}

/// Attempts of each problem that make the sum of the log speed-ups largest.
std::vector<double> water_filling(
  const std::vector<problem_curve>& problems, const learning_law& law, double budget) {
  auto at = [&](double nu) {
    std::vector<double> out;
    for (const auto& p : problems) {
      const double r = rho(p, law);
      const double level = (p.asymptote - p.start) * r / nu;
      out.push_back(
        std::max(0.0, std::pow(level, law.gamma / (1 + law.gamma)) - 1) / (law.gamma * r));
    }
    return out;
  };
  double low = 1e-12;
  double high = 1e3;
  for (int i = 0; i < 200; ++i) {
    const double nu = std::sqrt(low * high);
    double sum = 0;
    for (double n : at(nu))
      sum += n;
    (sum > budget ? low : high) = nu;
  }
  return at(low);
}

} // namespace

TEST_CASE("the oracle on the mean path is the water-filling optimum to within a lease") {
  for (double gamma : {2.0, 4.0})
    for (uint64_t budget : {200u, 3'000u, 40'000u}) {
      CAPTURE(gamma);
      CAPTURE(budget);
      learning_law law;
      law.gamma = gamma;
      auto problems = some_problems(20, law);
      const auto best = water_filling(problems, law, static_cast<double>(budget));
      auto who = make_oracle_allocation(problems, law);
      for (problem_index p = 0; p < problems.size(); ++p)
        who->on_eligible(p, true);
      std::vector<double> had(problems.size(), 0);
      for (uint64_t n = 0; n < budget; ++n) {
        const auto p = first(*who);
        who->on_given(p);
        one_attempt(problems[p], law);
        who->on_finished(p, {a_second, 0.01});
        ++had[p];
      }
      for (size_t p = 0; p < problems.size(); ++p)
        CHECK(std::fabs(had[p] - best[p]) <= 1);
      // Some get nothing from a small budget, and the optimum says so too.
      if (budget == 200)
        CHECK(std::count(had.begin(), had.end(), 0.0) > 0);
    }
}

TEST_CASE("the oracle counts attempts in flight as what is expected of them") {
  // So all workers at once are sent where one after the other would go.
  learning_law law;
  auto problems = some_problems(20, law);
  auto together = make_oracle_allocation(problems, law);
  auto live = problems;
  auto apart = make_oracle_allocation(live, law);
  for (problem_index p = 0; p < problems.size(); ++p) {
    together->on_eligible(p, true);
    apart->on_eligible(p, true);
  }
  std::vector<int> had(problems.size(), 0);
  std::vector<int> had_apart(problems.size(), 0);
  for (int n = 0; n < 500; ++n) {
    auto p = first(*together);
    together->on_given(p);
    ++had[p];
    p = first(*apart);
    apart->on_given(p);
    // E[g^-gamma] in one step.
    live[p].gap =
      std::pow(std::pow(live[p].gap, -law.gamma) + law.gamma * rho(live[p], law), -1 / law.gamma);
    apart->on_finished(p, {a_second, 0});
    ++had_apart[p];
  }
  for (size_t p = 0; p < problems.size(); ++p)
    CHECK(std::abs(had[p] - had_apart[p]) <= 1);
}

TEST_CASE("the oracle sends one worker at a time to a problem without a kernel, then looks again") {
  learning_law law;
  auto problems = some_problems(3, law);
  for (auto& p : problems)
    p.is_solved = false;
  problems[0].start = -0.5;
  problems[1].start = -0.4;
  problems[2].start = -0.45;
  for (auto& p : problems)
    p.asymptote = 1;
  auto who = make_oracle_allocation(problems, law);
  CHECK_FALSE(who->pick(0ns));
  for (problem_index p = 0; p < 3; ++p)
    who->on_eligible(p, true);
  for (problem_index expected : {0u, 2u, 1u}) {
    CHECK(first(*who) == expected);
    who->on_given(expected);
  }
  CHECK(to_string(who->pick(0ns)->why).starts_with("oracle: would gain "));
  who->on_eligible(0, false);
  CHECK(first(*who) == 2);
}
