#include "planning/allocation/policies.hpp"
#include "planning/allocation/scored_allocation.hpp"

#include <utility>

namespace gristmill {

namespace {

class rising final : public scored_allocation {
public:
  rising(uint32_t problems, bool by_attempts, double prior)
    : scored_allocation(problems, by_attempts), prior_(prior), curves_(problems) {}

  std::string_view name() const override { return "rising"; }

private:
  /// The gains of one problem.
  struct curve {
    /// Sum of all gains.
    double total = 0;
    /// Sum of the gains before the window.
    double before = 0;
    /// Where the sum changed: after so many finished attempts it was that much. Gains are rare.
    std::vector<std::pair<uint32_t, double>> steps;
    /// The first step within the window; it only moves forward.
    size_t start_step = 0;
  };

  /// First attempt of the later half.
  uint32_t window_start(problem_index p) const { return uses_.of(p).given / 2; }

  void given(problem_index p) override { move_window(p); }

  void finished(problem_index p, const attempt_gain& brought) override {
    auto& c = curves_[p];
    if (const double gain = counted_gain(brought); gain > 0) {
      c.total += gain;
      c.steps.emplace_back(uses_.of(p).finished, c.total);
    }
    move_window(p);
  }

  void move_window(problem_index p) {
    auto& c = curves_[p];
    const auto start = window_start(p);
    while (c.start_step < c.steps.size() && c.steps[c.start_step].first <= start)
      c.before = c.steps[c.start_step++].second;
  }

  double score(problem_index p) const override {
    const auto& u = uses_.of(p);
    if (u.given == 0)
      return std::numeric_limits<double>::infinity();
    const auto& c = curves_[p];
    // Half of the attempts, not rounded: one attempt more always costs something.
    return (c.total - c.before + prior_) / ((u.given + 1.0) / 2 * uses_.attempt_cost(p));
  }

  allocation_reason why(problem_index p) const override {
    auto out = uses_.reason(p, allocation_rule::rising);
    out.gain = curves_[p].total - curves_[p].before;
    out.window = out.given - window_start(p);
    return out;
  }

  double prior_;
  std::vector<curve> curves_;
};

} // namespace

std::unique_ptr<allocation> make_rising(uint32_t problems, bool by_attempts, double prior) {
  return std::make_unique<rising>(problems, by_attempts, prior);
}

} // namespace gristmill
