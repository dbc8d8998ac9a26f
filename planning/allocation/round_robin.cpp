#include "planning/allocation/policies.hpp"
#include "planning/allocation/problem_uses.hpp"

#include <set>

namespace gristmill {

namespace {

class round_robin final : public allocation {
public:
  explicit round_robin(uint32_t problems) : uses_(problems, true) {}

  std::string_view name() const override { return "round_robin"; }

  void on_eligible(problem_index problem, bool eligible) override {
    if (eligible)
      ring_.insert(problem);
    else
      ring_.erase(problem);
  }
  void on_given(problem_index problem) override {
    uses_.add_given(problem);
    next_ = problem + 1;
  }
  void on_finished(problem_index problem, const attempt_gain& brought) override {
    uses_.add_finished(problem, brought);
  }
  void on_headroom(problem_index, double) override {}

  std::optional<allocation_pick> pick(std::chrono::nanoseconds) const override {
    if (ring_.empty())
      return std::nullopt;
    auto at = ring_.lower_bound(next_);
    const auto p = at == ring_.end() ? *ring_.begin() : *at;
    return allocation_pick{p, uses_.reason(p, allocation_rule::round_robin)};
  }

private:
  problem_uses uses_;
  std::set<problem_index> ring_;
  problem_index next_ = 0;
};

} // namespace

std::unique_ptr<allocation> make_round_robin(uint32_t problems) {
  return std::make_unique<round_robin>(problems);
}

} // namespace gristmill
