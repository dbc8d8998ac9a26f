#pragma once

#include "simulation/core/lab_result.hpp"
#include "simulation/model/problem_curve.hpp"
#include "simulation/model/scenario.hpp"

#include <cstdint>
#include <vector>

namespace gristmill {

/// The problems of a run and what they have come to. What the n-th attempt at a problem brings
/// depends on seed, problem and n alone: whatever a policy does, it meets the same luck.
class problem_set {
public:
  problem_set() = default;
  problem_set(const scenario& what, uint64_t seed);

  bool empty() const { return problems_.empty(); }
  const std::vector<problem_curve>& truth() const { return problems_; }

  /// One more attempt that ended by itself. Returns ln(best before / best after), where the
  /// baseline is the best before the first kernel: below 0 for a first kernel that is slower.
  double attempt(uint32_t problem);

  /// Fills in what the point says of outcomes.
  void describe(outcome_point& point) const;

private:
  learning_law law_;
  std::vector<problem_curve> problems_;
  std::vector<counter_stream> luck_;
  std::vector<uint64_t> attempts_;
};

} // namespace gristmill
