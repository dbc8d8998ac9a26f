#pragma once

#include "planning/allocation/tournament.hpp"

#include <cstdint>
#include <vector>

namespace gristmill {

/// Equal share: what each problem has had, and those that can use an attempt in the order of their
/// turn.
class share_queue {
public:
  struct use {
    uint32_t in_flight = 0;
    uint32_t given = 0;
    uint64_t gpu_ns = 0;
  };

  share_queue(uint32_t problems, bool by_attempts)
    : uses_(problems), order_(problems), by_attempts_(by_attempts) {}

  void insert(problem_index p) { order_.set(p, goes_first{*this}); }
  void erase(problem_index p) { order_.erase(p, goes_first{*this}); }
  bool empty() const { return order_.empty(); }
  size_t size() const { return order_.size(); }
  problem_index first() const { return order_.first(); }
  const use& of(problem_index p) const { return uses_[p]; }
  /// The GPU time that counts here.
  uint64_t counted_ns(problem_index p) const { return by_attempts_ ? 0 : uses_[p].gpu_ns; }

  /// Changes what a problem has had, and its place in line with it.
  template <class F>
  void change(problem_index p, F how) {
    how(uses_[p]);
    if (order_.contains(p))
      insert(p);
  }

private:
  struct goes_first {
    const share_queue& queue;
    bool operator()(problem_index a, problem_index b) const {
      const auto& x = queue.uses_[a];
      const auto& y = queue.uses_[b];
      if (x.in_flight != y.in_flight)
        return x.in_flight < y.in_flight;
      if (!queue.by_attempts_ && x.gpu_ns != y.gpu_ns)
        return x.gpu_ns < y.gpu_ns;
      return x.given != y.given ? x.given < y.given : a < b;
    }
  };

  std::vector<use> uses_;
  tournament order_;
  bool by_attempts_;
};

} // namespace gristmill
