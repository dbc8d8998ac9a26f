#pragma once

#include "actors/candidate.hpp"
#include "actors/data_files.hpp"
#include "actors/run_context.hpp"
#include "protocol/problem.hpp"
#include "tensors/generate.hpp"

#include <string>
#include <vector>

namespace gristmill {

/// One set of inputs on which a workload is checked.
struct input_case {
  /// For people: "set 3", "fresh 0", "large values", "neighbour M=4097".
  std::string label;
  data_set set;
  /// Resolved.
  axis_values axes;
  /// How the values are drawn that may be drawn otherwise (`style_of`).
  input_style style = input_style::standard;
  /// It has the workload's own shapes and standard values: calls can be timed on it.
  bool clock_shape = false;
};

struct input_cases {
  std::vector<input_case> cases;
  /// Why there are fewer than asked for; empty when there are not.
  std::string note;
};

/// The sets that every candidate of the run is checked on, the first one named "0": as many as the
/// run asks for, fewer where their files or references would be larger than the run's limits, and
/// one where the inputs come from code or files of the problem.
result<input_cases> pool_cases(
  const run_context& context, const problem& target, const workload& work);

/// A case of a draw, and how the candidate's plan is launched on it.
struct drawn_case {
  input_case what;
  resolved_workload resolved;
};

/// What a promotion checks a workload on, none of it used before:
///
/// - fresh sets of the standard kind, with the workload's own shapes, which are timed too;
/// - one set in each held-out style that changes an input of the problem;
/// - neighbours: every variable axis a small step up and down, where the plan claims the shape
///   (`domain`) and needs no code that is not compiled. The step is the smallest of 1, 2, 4 … 128
///   that the plan allows.
///
/// Styles and neighbours are drawn at smaller axes where the workload is large and the plan runs
/// those by the same code. A workload whose inputs come from an entry point of the problem has no
/// others: it is promoted on the pool's sets.
result<std::vector<drawn_case>> draw_cases(const run_context& context, const problem& target,
  const workload& work, const std::string& draw, const resolved_candidate& candidate);

/// Those of which the oracle could make the references: not every reference takes every shape.
std::vector<drawn_case> existing_cases(const run_context& context, const problem& target,
  const std::string& uuid, std::vector<drawn_case> all);

/// The style of one input in a case: size and place of values are changed in one input alone, the
/// first that is a plain normal, and the others keep to `held_out`.
input_style style_of(
  const problem& target, const workload& work, const tensor_spec& spec, input_style of_case);

} // namespace gristmill
