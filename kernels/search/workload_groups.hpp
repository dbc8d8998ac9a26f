#pragma once

#include "protocol/problem.hpp"
#include "protocol/workload.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gristmill {

/// A workload as the search sees it.
struct search_workload {
  std::string uuid;
  /// The axes whose values differ between the workloads of the problem.
  axis_values axes;
  /// The same axes of its correctness twin, which must run the same code (docs/decisions/0007);
  /// equal to `axes` for a workload that is run as it is.
  axis_values twin_axes;
  /// Elements of all inputs and outputs: the larger, the longer it takes.
  uint64_t elements = 0;
};

/// The workloads of a problem, in its order. `check_elements_max` as in `shrink_axes`; 0 for
/// devices that check at true size. A workload whose axes cannot be resolved has no axes and no
/// elements: it speaks for no group.
std::vector<search_workload> search_workloads(const problem& target, uint64_t check_elements_max);

/// Places of the workloads that speak for all in a probe: the largest and a small one, with many
/// workloads also one in the middle; in the problem's order. Empty when measuring all costs little
/// more.
std::vector<size_t> probe_workloads(const std::vector<search_workload>& workloads);

/// Workloads that one condition picks, and which of the choices is best for them.
struct workload_group {
  /// A launch-plan expression such as "axis.M * axis.N <= 4096"; "true" for the last group.
  std::string condition;
  /// Index into the times.
  size_t choice = 0;
  /// Places, in the problem's order.
  std::vector<size_t> workloads;
};

struct workload_grouping {
  std::vector<workload_group> groups;
  /// Geometric mean of the times, as a logarithm.
  double log_mean = 0;
};

/// The cheapest way to give each workload one of the choices, with conditions `f <= bound` where f
/// is an axis or a product of axes. `times[c][w]`: nanoseconds of choice c at workload w, all
/// above 0. A group more must pay at least 0.2 %; no group separates a workload from its twin; one
/// group is an answer, too. Nothing when there are no choices or no workloads.
std::optional<workload_grouping> best_grouping(const std::vector<search_workload>& workloads,
  const std::vector<std::vector<double>>& times, size_t groups_max);

} // namespace gristmill
