#pragma once

#include "planning/allocation/share_queue.hpp"

namespace gristmill {

/// The problem with the fewest attempts in flight, then with the least GPU time (or not, when use
/// is counted in attempts), then with the fewest attempts given.
class equal_share final : public allocation {
public:
  equal_share(uint32_t problems, bool by_attempts) : queue_(problems, by_attempts) {}

  std::string_view name() const override { return "equal"; }
  void on_eligible(problem_index problem, bool eligible) override;
  void on_given(problem_index problem) override;
  void on_finished(problem_index problem, const attempt_gain& brought) override;
  void on_headroom(problem_index, double) override {}
  std::optional<allocation_pick> pick(std::chrono::nanoseconds now) const override;

private:
  share_queue queue_;
};

} // namespace gristmill
