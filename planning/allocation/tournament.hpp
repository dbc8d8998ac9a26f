#pragma once

#include "planning/allocation/allocation.hpp"

#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

namespace gristmill {

/// Which of some problems goes first, under an order that `goes_first(a, b)` tells and that changes
/// a problem at a time. A change costs O(log P) comparisons and no memory, the first one O(1).
class tournament {
public:
  explicit tournament(uint32_t problems)
    : leaves_(std::bit_ceil(problems == 0 ? 1 : problems)), winners_(size_t{2} * leaves_, nobody) {}

  bool empty() const { return count_ == 0; }
  uint32_t size() const { return count_; }
  /// Of one that is not empty.
  problem_index first() const { return winners_[1]; }
  bool contains(problem_index p) const { return winners_[leaves_ + size_t{p}] != nobody; }

  /// Puts a problem in, or where it belongs now.
  template <class F>
  void set(problem_index p, const F& goes_first) {
    count_ += contains(p) ? 0 : 1;
    play(p, p, goes_first);
  }
  template <class F>
  void erase(problem_index p, const F& goes_first) {
    if (!contains(p))
      return;
    --count_;
    play(p, nobody, goes_first);
  }

private:
  static constexpr problem_index nobody = std::numeric_limits<problem_index>::max();

  /// From the leaf of `p` up.
  template <class F>
  void play(problem_index p, problem_index at_leaf, const F& goes_first) {
    size_t node = leaves_ + size_t{p};
    winners_[node] = at_leaf;
    while (node > 1) {
      node /= 2;
      const auto a = winners_[2 * node];
      const auto b = winners_[2 * node + 1];
      const auto winner = a == nobody ? b : b == nobody || goes_first(a, b) ? a : b;
      // What stands above has not changed then.
      const bool same = winners_[node] == winner && winner != p;
      winners_[node] = winner;
      if (same)
        return;
    }
  }

  size_t leaves_;
  /// Node 1 is the root, the children of node i are 2i and 2i + 1.
  std::vector<problem_index> winners_;
  uint32_t count_ = 0;
};

} // namespace gristmill
