#pragma once

#include "planning/allocation/problem_uses.hpp"
#include "planning/allocation/ranking.hpp"

namespace gristmill {

/// A rule that gives each problem a score of its own which changes only when the problem itself is
/// given an attempt or ends one; the largest score goes first.
class scored_allocation : public allocation {
public:
  scored_allocation(uint32_t problems, bool by_attempts)
    : uses_(problems, by_attempts), ranking_(problems) {}

  void on_eligible(problem_index problem, bool eligible) final {
    uses_.set_eligible(problem, eligible);
    if (eligible)
      rank(problem);
    else
      ranking_.erase(problem);
  }
  void on_given(problem_index problem) final {
    uses_.add_given(problem);
    given(problem);
    rank(problem);
  }
  void on_finished(problem_index problem, const attempt_gain& brought) final {
    uses_.add_finished(problem, brought);
    finished(problem, brought);
    rank(problem);
  }
  void on_headroom(problem_index, double) final {}
  std::optional<allocation_pick> pick(std::chrono::nanoseconds) const final {
    if (ranking_.empty())
      return std::nullopt;
    return allocation_pick{ranking_.first(), why(ranking_.first())};
  }

protected:
  /// What a rule learns, once `uses_` knows it.
  virtual void given(problem_index) {}
  virtual void finished(problem_index, const attempt_gain&) {}
  virtual double score(problem_index p) const = 0;
  virtual allocation_reason why(problem_index p) const = 0;

  problem_uses uses_;

private:
  void rank(problem_index p) {
    if (uses_.of(p).eligible)
      ranking_.set(p, score(p), uses_.of(p).given);
  }

  ranking ranking_;
};

} // namespace gristmill
