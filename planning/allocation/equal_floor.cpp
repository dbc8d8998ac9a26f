#include "planning/allocation/equal_share.hpp"
#include "planning/allocation/policies.hpp"

namespace gristmill {

namespace {

class equal_floor final : public allocation {
public:
  equal_floor(
    uint32_t problems, bool by_attempts, uint32_t millionths, std::unique_ptr<allocation> inner)
    : millionths_(millionths), inner_(std::move(inner)), equal_(problems, by_attempts) {}

  std::string_view name() const override { return "floor"; }

  void on_eligible(problem_index problem, bool eligible) override {
    equal_.on_eligible(problem, eligible);
    inner_->on_eligible(problem, eligible);
  }
  void on_given(problem_index problem) override {
    carried_ = (carried_ + millionths_) % 1'000'000;
    equal_.on_given(problem);
    inner_->on_given(problem);
  }
  void on_finished(problem_index problem, const attempt_gain& brought) override {
    equal_.on_finished(problem, brought);
    inner_->on_finished(problem, brought);
  }
  void on_headroom(problem_index problem, double log_headroom) override {
    inner_->on_headroom(problem, log_headroom);
  }

  std::optional<allocation_pick> pick(std::chrono::nanoseconds now) const override {
    const bool is_equal = carried_ + millionths_ >= 1'000'000;
    if (!is_equal)
      if (auto picked = inner_->pick(now))
        return picked;
    // Also where the rule within leaves everybody out who could use the attempt.
    auto picked = equal_.pick(now);
    if (picked)
      picked->why.rule = allocation_rule::floor_share;
    return picked;
  }

private:
  uint32_t millionths_;
  std::unique_ptr<allocation> inner_;
  equal_share equal_;
  /// What the floor is owed after the slots so far, in millionths of a slot.
  uint32_t carried_ = 0;
};

} // namespace

std::unique_ptr<allocation> make_equal_floor(
  uint32_t problems, bool by_attempts, uint32_t millionths, std::unique_ptr<allocation> inner) {
  return std::make_unique<equal_floor>(problems, by_attempts, millionths, std::move(inner));
}

} // namespace gristmill
