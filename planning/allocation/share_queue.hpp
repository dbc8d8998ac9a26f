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

  bool by_attempts() const { return by_attempts_; }
  bool empty() const { return order_.empty(); }
  size_t size() const { return order_.size(); }
  /// Who stands first; of one that is not empty.
  problem_index first() const { return order_.first(); }
  bool contains(problem_index p) const { return order_.contains(p); }
  const use& of(problem_index p) const { return uses_[p]; }

  /// Puts a problem in line, or takes it out; what it has had stays known.
  void set_in_line(problem_index p, bool in_line) {
    if (in_line)
      order_.set(p, goes_first{*this});
    else
      order_.erase(p, goes_first{*this});
  }
  void add_given(problem_index p) {
    ++uses_[p].in_flight;
    ++uses_[p].given;
    move(p);
  }
  void add_finished(problem_index p, const attempt_gain& brought) {
    auto& u = uses_[p];
    u.in_flight -= u.in_flight > 0 ? 1 : 0;
    u.gpu_ns += brought.gpu_ns;
    move(p);
  }

  /// The beginning of a reason.
  allocation_reason reason(problem_index p, allocation_rule rule) const {
    const auto& u = uses_[p];
    return {rule, u.in_flight, u.given, by_attempts_ ? 0 : u.gpu_ns};
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

  /// To where it belongs now.
  void move(problem_index p) {
    if (contains(p))
      set_in_line(p, true);
  }

  std::vector<use> uses_;
  tournament order_;
  bool by_attempts_;
};

} // namespace gristmill
