#include "planning/allocation/equal_share.hpp"

namespace gristmill {

void equal_share::on_eligible(problem_index problem, bool eligible) {
  queue_.set_in_line(problem, eligible);
}

void equal_share::on_given(problem_index problem) {
  queue_.add_given(problem);
}

void equal_share::on_finished(problem_index problem, const attempt_gain& brought) {
  queue_.add_finished(problem, brought);
}

std::optional<allocation_pick> equal_share::pick(std::chrono::nanoseconds) const {
  if (queue_.empty())
    return std::nullopt;
  const auto p = queue_.first();
  return allocation_pick{p, queue_.reason(p, allocation_rule::equal_share)};
}

} // namespace gristmill
