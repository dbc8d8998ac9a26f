#pragma once

#include "planning/allocation/allocation.hpp"

#include <compare>
#include <cstdint>
#include <set>
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

  share_queue(uint32_t problems, bool by_attempts) : uses_(problems), by_attempts_(by_attempts) {}

  void insert(problem_index p) { waiting_.insert(key_of(p)); }
  void erase(problem_index p) { waiting_.erase(key_of(p)); }
  bool empty() const { return waiting_.empty(); }
  size_t size() const { return waiting_.size(); }
  problem_index first() const { return waiting_.begin()->problem; }
  const use& of(problem_index p) const { return uses_[p]; }
  /// The GPU time that counts here.
  uint64_t counted_ns(problem_index p) const { return by_attempts_ ? 0 : uses_[p].gpu_ns; }

  /// Changes what a problem has had, and its place in line with it.
  template <class F>
  void change(problem_index p, F how) {
    bool was_waiting = waiting_.erase(key_of(p)) != 0;
    how(uses_[p]);
    if (was_waiting)
      insert(p);
  }

private:
  struct key {
    uint32_t in_flight;
    uint64_t gpu_ns;
    uint32_t given;
    problem_index problem;
    friend auto operator<=>(const key&, const key&) = default;
  };

  key key_of(problem_index p) const {
    const auto& u = uses_[p];
    return {u.in_flight, counted_ns(p), u.given, p};
  }

  std::vector<use> uses_;
  std::set<key> waiting_;
  bool by_attempts_;
};

} // namespace gristmill
