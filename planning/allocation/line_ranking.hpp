#pragma once

#include "planning/allocation/allocation.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

namespace gristmill {

/// Problems whose score is a line `level + slope x` over one x for all that never falls: the
/// largest first, those without a line before all, then the one that was given fewer attempts, then
/// the smaller index. Exact at every x, although nobody is scored anew while x moves: a tournament
/// whose matches also know when their winner is overtaken (a kinetic tournament). A change costs
/// O(log P), the first one O(1), moving x O(1) and O(log P) for each match that turns.
class line_ranking {
public:
  struct line {
    /// Never given an attempt.
    bool untried = true;
    double level = 0;
    /// Not negative.
    double slope = 0;
    uint32_t given = 0;
  };

  explicit line_ranking(uint32_t problems)
    : leaves_(std::bit_ceil(problems == 0 ? 1 : problems)), lines_(problems),
      nodes_(size_t{2} * leaves_) {}

  bool empty() const { return nodes_[1].winner == nobody; }
  problem_index first() const { return nodes_[1].winner; }
  const line& of(problem_index p) const { return lines_[p]; }
  double score_of(problem_index p) const { return lines_[p].level + lines_[p].slope * x_; }
  double x() const { return x_; }

  void set(problem_index p, const line& what) {
    lines_[p] = what;
    play_up(p, p);
  }
  void erase(problem_index p) { play_up(p, nobody); }

  /// Not below the x before.
  void move_to(double x) {
    x_ = std::max(x_, x);
    repair(1);
  }

private:
  static constexpr problem_index nobody = std::numeric_limits<problem_index>::max();

  struct node {
    problem_index winner = nobody;
    /// Its match and those below it need no look before x is here.
    double holds_until = std::numeric_limits<double>::infinity();
  };

  bool goes_first(problem_index a, problem_index b) const {
    const auto& s = lines_[a];
    const auto& t = lines_[b];
    if (s.untried != t.untried)
      return s.untried;
    if (!s.untried) {
      const double x = score_of(a);
      const double y = score_of(b);
      if (x != y)
        return x > y;
    }
    return s.given != t.given ? s.given < t.given : a < b;
  }

  void play(size_t at) {
    auto& n = nodes_[at];
    const auto& left = nodes_[2 * at];
    const auto& right = nodes_[2 * at + 1];
    n.holds_until = std::min(left.holds_until, right.holds_until);
    if (left.winner == nobody || right.winner == nobody) {
      n.winner = left.winner == nobody ? right.winner : left.winner;
      return;
    }
    const bool is_left = goes_first(left.winner, right.winner);
    n.winner = is_left ? left.winner : right.winner;
    const auto& won = lines_[n.winner];
    const auto& lost = lines_[is_left ? right.winner : left.winner];
    if (!won.untried && !lost.untried && lost.slope > won.slope) {
      // A little early, so that rounding never makes it late; looking too early is only work.
      const double crossing = (won.level - lost.level) / (lost.slope - won.slope);
      n.holds_until = std::min(n.holds_until, crossing - 1e-9 * (1 + crossing));
    }
  }

  void play_up(problem_index p, problem_index at_leaf) {
    size_t at = leaves_ + size_t{p};
    nodes_[at].winner = at_leaf;
    for (at /= 2; at > 0; at /= 2)
      play(at);
  }

  // As deep as the tree, which is 32 levels at most.
  void repair(size_t at) {
    if (nodes_[at].holds_until > x_)
      return;
    if (2 * at + 1 < nodes_.size()) {
      repair(2 * at);
      repair(2 * at + 1);
      play(at);
    }
  }

  size_t leaves_;
  std::vector<line> lines_;
  /// Node 1 is the root, the children of node i are 2i and 2i + 1.
  std::vector<node> nodes_;
  double x_ = 0;
};

} // namespace gristmill
