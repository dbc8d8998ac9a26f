// A rule of the planner of one's own, whole: the problem that has gone without a gain for the
// fewest attempts goes first, so that workers stay where something moves. docs/planner.md says how
// to add it.

#include "examples/planner_policy/shortest_quiet.hpp"

#include "planning/allocation/ranking.hpp"

namespace {

using namespace gristmill;

class shortest_quiet final : public allocation {
public:
  explicit shortest_quiet(uint32_t problems) : states_(problems), ranking_(problems) {}

  std::string_view name() const override { return "shortest_quiet"; }

  void on_eligible(problem_index p, bool eligible) override {
    states_[p].eligible = eligible;
    rank(p);
  }
  void on_given(problem_index p) override {
    ++states_[p].quiet; // In flight it counts as one without a gain.
    rank(p);
  }
  void on_finished(problem_index p, const attempt_gain& brought) override {
    if (brought.log_gain > 0)
      states_[p].quiet = 0;
    rank(p);
  }
  void on_headroom(problem_index, double) override {}

  std::optional<allocation_pick> pick(std::chrono::nanoseconds) const override {
    if (ranking_.empty())
      return std::nullopt;
    allocation_pick out{ranking_.first(), {}};
    out.why.gain = -double(states_[out.problem].quiet); // What the log calls the score.
    return out;
  }

private:
  struct state {
    bool eligible = false;
    uint32_t quiet = 0;
  };

  void rank(problem_index p) {
    if (states_[p].eligible)
      ranking_.set(p, -double(states_[p].quiet), 0);
    else
      ranking_.erase(p);
  }

  std::vector<state> states_;
  ranking ranking_;
};

} // namespace

std::unique_ptr<allocation> make_shortest_quiet(uint32_t problems, bool) {
  return std::make_unique<shortest_quiet>(problems);
}
