#pragma once

#include "planning/allocation/share_queue.hpp"

#include <set>
#include <utility>
#include <vector>

namespace gristmill {

/// A share of the attempts goes by equal share; each of the others to the problem that gained most
/// over the later half of its attempts, plus a prior, for each attempt of that half (or for its GPU
/// time). Attempts in flight count as attempts without a gain, so that several workers do not all
/// go to one problem. A problem that has had no attempt comes before all others.
///
/// A problem close to its floor is left out by both parts as long as another one can use the
/// attempt; one whose headroom is not known is never left out.
class rebalance final : public allocation {
public:
  rebalance(const allocation_settings& settings, uint32_t problems);

  std::string_view name() const override { return "rebalance"; }
  void on_eligible(problem_index problem, bool eligible) override;
  void on_given(problem_index problem) override;
  void on_finished(problem_index problem, const attempt_gain& brought) override;
  void on_headroom(problem_index problem, double log_headroom) override;
  std::optional<allocation_pick> pick(std::chrono::nanoseconds now) const override;

private:
  /// The gains of one problem.
  struct curve {
    bool eligible = false;
    bool gated = false;
    uint32_t finished = 0;
    /// Sum of all gains.
    double total = 0;
    /// Where the sum changed: after so many finished attempts it was that much. Gains are rare.
    std::vector<std::pair<uint32_t, double>> steps;
    /// The step that held at the start of the window; it only moves forward.
    size_t start_step = 0;
    /// Sum of the gains before the window.
    double before = 0;
    /// Its place among the rising; larger is better.
    double score = 0;
  };

  uint32_t given(problem_index p) const { return equal_.of(p).given; }
  /// First attempt of the later half.
  uint32_t window_start(problem_index p) const { return given(p) / 2; }
  bool counts(const curve& c) const { return c.eligible && !c.gated; }
  void enter(problem_index p);
  void leave(problem_index p);
  void score(problem_index p);
  /// Whether the slot that comes next belongs to the equal floor.
  bool next_is_floor() const;
  allocation_pick picked(problem_index p, allocation_rule rule) const;

  allocation_settings settings_;
  std::vector<curve> curves_;
  /// Those that can use an attempt and are not left out.
  share_queue equal_;
  /// Those that are left out.
  share_queue gated_;
  /// (-score, problem) of those that can use an attempt and are not left out.
  std::set<std::pair<double, problem_index>> rising_;
  uint64_t slots_ = 0;
};

} // namespace gristmill
