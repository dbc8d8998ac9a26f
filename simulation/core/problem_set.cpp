#include "simulation/core/problem_set.hpp"

#include <algorithm>

namespace gristmill {

namespace {

/// Right or wrong, better or not, by how much.
constexpr uint64_t words_of_an_attempt = 3;

} // namespace

problem_set::problem_set(const scenario& what, uint64_t seed) : law_(what.learning) {
  for (uint32_t p = 0; p < what.problems; ++p) {
    problems_.push_back(draw_problem(what.learning, what.outcome, seed, p));
    problems_.back().is_solved = what.starts_solved;
    luck_.emplace_back(seed, stream_of(stream_purpose::gain, p));
  }
  attempts_.resize(what.problems);
}

double problem_set::attempt(uint32_t problem) {
  auto& luck = luck_[problem];
  luck.seek(attempts_[problem]++ * words_of_an_attempt);
  if (!luck.chance(law_.correct))
    return 0;
  return try_correct_candidate(problems_[problem], law_, luck);
}

void problem_set::describe(outcome_point& point) const {
  if (problems_.empty())
    return;
  constexpr double ln2 = 0.69314718055994530942;
  double sum = 0;
  std::vector<double> scores;
  scores.reserve(problems_.size());
  for (const auto& problem : problems_) {
    const double x = problem.log_speedup();
    sum += x;
    point.wins += x > 0 ? 1 : 0;
    point.above_two += x > ln2 ? 1 : 0;
    scores.push_back(problem.sol_score());
  }
  point.geomean = plain_exp(sum / static_cast<double>(problems_.size()));
  const auto middle = scores.begin() + static_cast<std::ptrdiff_t>(scores.size() / 2);
  std::nth_element(scores.begin(), middle, scores.end());
  point.median_sol = *middle;
}

} // namespace gristmill
