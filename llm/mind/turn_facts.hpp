#pragma once

#include "llm/mind/idea_book.hpp"
#include "llm/mind/turn_plan.hpp"
#include "messages/attempt.hpp"
#include "messages/result.hpp"
#include "protocol/program/prompt.hpp"

#include <functional>
#include <string>
#include <vector>

namespace gristmill {

/// A problem as the mind knows it; equal for all attempts of a run.
struct mind_problem {
  prompt_problem text;
  /// Facts of the device, a line each.
  std::vector<std::string> device;
  /// Equal for problems that compute the same thing on other shapes; empty when unknown.
  std::string structure;
  std::vector<std::string> operators;
};

/// Content of the blob store. An error leaves the part out that needed it.
using blob_reader = std::function<result<std::string>(const blob_ref&)>;

/// Everything that the prompt of a turn is made of, from the store alone: nothing of earlier
/// conversations. History that does not fit into the rows of the table is told in one sentence.
prompt_facts facts_of_turn(const protocol_program& program, const mind_problem& problem,
  const assignment& work, const turn_plan& plan, const idea_book& book, const blob_reader& read);

/// The sources that a new candidate must differ from: the whole history and what is in flight.
std::vector<earlier_source> earlier_sources(
  const assignment& work, const idea_book& book, const blob_reader& read);

} // namespace gristmill
