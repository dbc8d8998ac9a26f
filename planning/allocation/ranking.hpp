#pragma once

#include "planning/allocation/tournament.hpp"

#include <cstdint>
#include <vector>

namespace gristmill {

/// Problems by a score that changes: the largest first, then the one that was given fewer attempts,
/// then the smaller index. A change costs O(log P), the first one O(1).
class ranking {
public:
  explicit ranking(uint32_t problems) : keys_(problems), order_(problems) {}

  bool empty() const { return order_.empty(); }
  /// Of a ranking that is not empty.
  problem_index first() const { return order_.first(); }

  /// Puts a problem in, or where it belongs now. The score is a number.
  void set(problem_index p, double score, uint32_t given) {
    keys_[p] = {score, given};
    order_.set(p, goes_first{keys_});
  }
  void erase(problem_index p) { order_.erase(p, goes_first{keys_}); }

private:
  struct key {
    double score = 0;
    uint32_t given = 0;
  };

  struct goes_first {
    const std::vector<key>& keys;
    bool operator()(problem_index a, problem_index b) const {
      const auto& x = keys[a];
      const auto& y = keys[b];
      if (x.score != y.score)
        return x.score > y.score;
      return x.given != y.given ? x.given < y.given : a < b;
    }
  };

  std::vector<key> keys_;
  tournament order_;
};

} // namespace gristmill
