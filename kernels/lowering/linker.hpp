#pragma once

#include "kernels/lowering/program_graph.hpp"
#include "kernels/lowering/sub_problem.hpp"
#include "kernels/template_point.hpp"
#include "messages/result.hpp"

#include <string>
#include <vector>

namespace gristmill {

/// A stage of a program with the candidate that some family wrote for it.
struct stage_code {
  const sub_problem* stage = nullptr;
  generated_kernel kernel;
};

/// A whole program, for the workloads where the condition holds.
struct program_code {
  /// A launch-plan expression over `axis.…`; "true" for all.
  std::string when = "true";
  /// In launch order.
  std::vector<stage_code> stages;
};

/// One candidate of many: one source, one plan.
///
/// - What stages pass to each other is plan scratch with the sizes of the graph, or an output of
///   the problem where that holds the same value; a reshape is the same buffer. Scratch whose
///   lifetimes do not overlap shares memory when the plan's limits ask for it.
/// - Variants of a stage become steps with conditions; their defines become choices.
/// - More than one program: a variant of the plan for each, tried in order.
///
/// Errors: `refused` with the limit that is exceeded; `unsupported` for something in a stage's plan
/// that cannot stand in a common one (different compiler options, a buffer or a map that the plan
/// has not).
result<generated_kernel> link(
  const program_graph& program, const std::vector<program_code>& programs);

} // namespace gristmill
