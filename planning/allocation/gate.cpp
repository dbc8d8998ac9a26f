#include "planning/allocation/policies.hpp"
#include "planning/allocation/share_queue.hpp"

#include <cmath>

namespace gristmill {

namespace {

class gate final : public allocation {
public:
  gate(uint32_t problems, bool by_attempts, double eps, std::unique_ptr<allocation> inner)
    : eps_(eps), inner_(std::move(inner)), near_(problems, by_attempts), states_(problems) {}

  std::string_view name() const override { return "gate"; }

  void on_eligible(problem_index problem, bool eligible) override {
    move(problem, eligible, states_[problem].gated);
  }
  void on_given(problem_index problem) override {
    near_.add_given(problem);
    inner_->on_given(problem);
  }
  void on_finished(problem_index problem, const attempt_gain& brought) override {
    near_.add_finished(problem, brought);
    inner_->on_finished(problem, brought);
  }
  void on_headroom(problem_index problem, double log_headroom) override {
    inner_->on_headroom(problem, log_headroom);
    move(problem, states_[problem].eligible, std::isfinite(log_headroom) && log_headroom < eps_);
  }

  std::optional<allocation_pick> pick(std::chrono::nanoseconds now) const override {
    if (auto picked = inner_->pick(now)) {
      picked->why.gated += static_cast<uint32_t>(near_.size());
      return picked;
    }
    if (near_.empty())
      return std::nullopt;
    const auto p = near_.first();
    allocation_pick out{p, near_.reason(p, allocation_rule::all_gated)};
    out.why.gated = static_cast<uint32_t>(near_.size());
    return out;
  }

private:
  struct state {
    bool eligible = false;
    bool gated = false;
    bool counts() const { return eligible && !gated; }
    bool waits() const { return eligible && gated; }
  };

  void move(problem_index p, bool eligible, bool gated) {
    const auto before = states_[p];
    auto& now = states_[p];
    now = {eligible, gated};
    if (now.waits() != before.waits())
      near_.set_in_line(p, now.waits());
    if (now.counts() != before.counts())
      inner_->on_eligible(p, now.counts());
  }

  double eps_;
  std::unique_ptr<allocation> inner_;
  /// All that was given, and those that are left out.
  share_queue near_;
  std::vector<state> states_;
};

} // namespace

std::unique_ptr<allocation> make_gate(
  uint32_t problems, bool by_attempts, double eps, std::unique_ptr<allocation> inner) {
  return std::make_unique<gate>(problems, by_attempts, eps, std::move(inner));
}

} // namespace gristmill
