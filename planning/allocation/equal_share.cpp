#include "planning/allocation/equal_share.hpp"

namespace gristmill {

void equal_share::on_eligible(problem_index problem, bool eligible) {
  if (eligible)
    queue_.insert(problem);
  else
    queue_.erase(problem);
}

void equal_share::on_given(problem_index problem) {
  queue_.change(problem, [](share_queue::use& u) {
    ++u.in_flight;
    ++u.given;
  });
}

void equal_share::on_finished(problem_index problem, const attempt_gain& brought) {
  queue_.change(problem, [&](share_queue::use& u) {
    u.in_flight -= u.in_flight > 0 ? 1 : 0;
    u.gpu_ns += brought.gpu_ns;
  });
}

std::optional<allocation_pick> equal_share::pick(std::chrono::nanoseconds) const {
  if (queue_.empty())
    return std::nullopt;
  allocation_pick out;
  out.problem = queue_.first();
  const auto& u = queue_.of(out.problem);
  out.why = {allocation_rule::equal_share, u.in_flight, u.given, queue_.counted_ns(out.problem)};
  return out;
}

} // namespace gristmill
