#pragma once

#include "bench/calibration/corpus_problem.hpp"
#include "messages/result.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace gristmill::calibration {

/// Points of our own kernel templates, bound to one size each: what a search has to put in order.
/// `corpus_kernel::folder` is the built-in problem, `lines` has the large size only, and the
/// reference is "none": the harness compares the variants of a problem with each other.
///
/// Of the points of a problem at most `each` are taken, evenly over their list, the point that a
/// search begins with among them. Empty `problems`: those of `ranked_problems`.
result<std::vector<corpus_kernel>> template_variants(
  const std::vector<std::string>& problems, size_t each);

/// Name and size of the problems whose templates are ranked, one of a kind.
struct ranked_problem {
  std::string name;
  axis_values axes;
  /// Class of the corpus.
  std::string kind;
};
const std::vector<ranked_problem>& ranked_problems();

} // namespace gristmill::calibration
