#include "simulation/model/problem_curve.hpp"

#include <algorithm>
#include <cmath>

namespace gristmill {

double sol_score_of(double speedup, double headroom) {
  return (headroom - 1) / (headroom - 2 + headroom / speedup);
}

double problem_curve::log_speedup() const {
  return is_solved ? start + (asymptote - start) * (1 - gap) : 0;
}

double problem_curve::sol_score() const {
  return is_solved ? sol_score_of(plain_exp(log_speedup()), headroom) : 0;
}

double problem_curve::expected_gain(const learning_law& law) const {
  if (!is_solved)
    return std::fabs(start) + (asymptote - start) * 0.1;
  const double b = law.gamma + law.step;
  const double chance = std::min(1.0, law.improve * ease * plain_pow(gap, law.gamma));
  return law.correct * chance * (asymptote - start) * gap / (1 + b);
}

problem_curve draw_problem(
  const learning_law& law, const final_law& target, uint64_t seed, uint64_t index) {
  counter_stream draws(seed, stream_of(stream_purpose::problem, index));
  // All are drawn whatever the law says, so that scenarios that differ in one number agree in the
  // draws.
  const bool wins = draws.chance(target.win);
  const double size = draws.exponential();
  const double start = target.start_mean + target.start_sigma * draws.normal();
  const double headroom = 1 + draws.lognormal(target.headroom_mu, target.headroom_sigma);
  const double ease = draws.lognormal(-law.spread * law.spread / 2, law.spread);
  const double final = wins ? target.win_mean * size : -target.loss_mean * size;
  problem_curve out;
  out.ease = ease;
  // Nobody ends below where it began.
  out.start = std::min(start, final - 0.05);
  const double b = law.gamma + law.step;
  const double grown =
    1 + law.gamma * target.leases * law.correct * law.improve * ease / (b - law.gamma);
  const double gap = plain_pow(grown, -1 / law.gamma);
  out.asymptote = out.start + (final - out.start) / (1 - gap);
  out.headroom = std::max(headroom, 1.02 * plain_exp(out.asymptote));
  return out;
}

double try_correct_candidate(
  problem_curve& problem, const learning_law& law, counter_stream& draws) {
  const double chance =
    std::min(1.0, law.improve * problem.ease * plain_pow(problem.gap, law.gamma));
  const bool improves = draws.chance(chance);
  const double step = draws.beta_one(law.gamma + law.step);
  if (!problem.is_solved) {
    problem.is_solved = true;
    return problem.log_speedup();
  }
  if (!improves)
    return 0;
  const double before = problem.gap;
  problem.gap *= 1 - step;
  return (problem.asymptote - problem.start) * (before - problem.gap);
}

} // namespace gristmill
