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
  /// "set 3", "fresh 0", "held-out, large values", "neighbour M=4097". For people, and how
  /// `wrong_rule` of scoring/integrity.hpp tells which rule an output breaks.
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

/// Whether the workload is too large for the run and checked on a smaller twin.
bool is_shrunken(const run_context& context, const problem& target, const workload& work);

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

/// What a candidate is checked on, in the order in which runner and judge number it: the pool for
/// an empty draw, else those of the draw for which the oracle could make references (not every
/// reference takes every shape). Errors: `not_found` for a workload that the candidate was not
/// resolved for.
result<std::vector<drawn_case>> cases_of(const run_context& context, const problem& target,
  const workload& work, const std::string& draw, const resolved_candidate& candidate);

/// The style of one input in a case: size and place of values are changed in one input alone, the
/// first that is a plain normal, and the others keep to `held_out`.
input_style style_of(
  const problem& target, const workload& work, const tensor_spec& spec, input_style of_case);

} // namespace gristmill
