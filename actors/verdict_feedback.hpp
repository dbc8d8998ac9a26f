#pragma once

#include "actors/run_context.hpp"
#include "messages/compile.hpp"
#include "messages/measure.hpp"
#include "messages/verdict.hpp"

#include <string>

namespace gristmill {

/// Writes what proposers may know of a verdict into the blob store and names it in the verdict. A
/// verdict stays good without it: what cannot be stored is told to the log of the program.
void add_feedback_of_refusal(const run_context& context, const candidate_ref& candidate,
  const compiled_candidate& compiled, verdict& v);
void add_feedback_of_verdict(const run_context& context, const std::string& problem_name,
  const measurement& measured, const evaluation& judged, verdict& v);

} // namespace gristmill
