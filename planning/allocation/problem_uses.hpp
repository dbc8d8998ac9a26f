#pragma once

#include "planning/allocation/allocation.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace gristmill {

/// What each problem has had.
class problem_uses {
public:
  struct use {
    bool eligible = false;
    uint32_t in_flight = 0;
    uint32_t given = 0;
    uint32_t finished = 0;
    uint64_t gpu_ns = 0;
  };

  problem_uses(uint32_t problems, bool by_attempts) : uses_(problems), by_attempts_(by_attempts) {}

  uint32_t size() const { return static_cast<uint32_t>(uses_.size()); }
  const use& of(problem_index p) const { return uses_[p]; }
  bool by_attempts() const { return by_attempts_; }

  void set_eligible(problem_index p, bool eligible) { uses_[p].eligible = eligible; }
  void add_given(problem_index p) {
    ++uses_[p].in_flight;
    ++uses_[p].given;
  }
  void add_finished(problem_index p, const attempt_gain& brought) {
    auto& u = uses_[p];
    u.in_flight -= u.in_flight > 0 ? 1 : 0;
    ++u.finished;
    u.gpu_ns += brought.gpu_ns;
    all_s_ += static_cast<double>(brought.gpu_ns) * 1e-9;
    ++all_finished_;
  }

  /// Use of one attempt: 1, or the mean GPU seconds of the problem's finished attempts. While it
  /// has none, the mean over all problems; while nobody has one, 1.
  double attempt_cost(problem_index p) const {
    if (by_attempts_)
      return 1;
    const auto& u = uses_[p];
    if (u.finished > 0)
      return std::max(static_cast<double>(u.gpu_ns) * 1e-9 / u.finished, 1e-9);
    return all_finished_ > 0 ? std::max(all_s_ / static_cast<double>(all_finished_), 1e-9) : 1;
  }

  /// The beginning of a reason.
  allocation_reason reason(problem_index p, allocation_rule rule) const {
    const auto& u = uses_[p];
    return {rule, u.in_flight, u.given, by_attempts_ ? 0 : u.gpu_ns};
  }

private:
  std::vector<use> uses_;
  bool by_attempts_;
  double all_s_ = 0;
  uint64_t all_finished_ = 0;
};

/// What counts of a gain.
inline double counted_gain(const attempt_gain& brought) {
  return brought.log_gain > 0 && std::isfinite(brought.log_gain) ? brought.log_gain : 0;
}

} // namespace gristmill
