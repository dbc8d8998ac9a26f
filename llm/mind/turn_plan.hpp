#pragma once

#include "messages/attempt.hpp"
#include "protocol/program/program.hpp"
#include "protocol/program/turn_rules.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// Names a candidate of a model: "llm/STRATEGY/HASH", so that the strategy of every trial is known
/// from the history alone.
std::string model_key(std::string_view strategy, std::string_view hash);
/// Of any key: the strategy in it; of other proposers' keys the part before the first slash.
std::string strategy_of(std::string_view key);

/// The history as the rules of search look at it; what the house broke is left out.
std::vector<finished_turn> turns_of(const trial_history& history);

/// What one attempt is about, before a model is asked.
struct turn_plan {
  /// Places in the history.
  std::optional<size_t> best;
  /// What is to be changed: the best, a failure that can be repaired, or a diverse one.
  std::optional<size_t> parent;
  std::vector<size_t> inspirations;
  /// Card to try; empty for a free choice.
  std::string card;
  /// Place in the range of temperatures, 0 to 1.
  double heat = 0;
  bool plateau = false;
  /// The parent failed, and the task is to mend it.
  bool repair = false;
  /// The task; empty for the usual sentence.
  std::string task;
  /// The best is good enough: nothing is to be tried. Empty else.
  std::string enough;
};

/// What a worker remembers of its own doing.
struct own_work {
  /// Hashes of the candidates that it proposed for this problem, newest last.
  std::vector<std::string> proposed;
  /// Cards that led to a refusal in this attempt.
  std::vector<std::string> cards_refused;
};

/// Depends on nothing but its arguments; the chance in it comes from the assignment's seed. Any few
/// consecutive attempts of a problem get different cards, whoever works on them: cards go round by
/// the attempt's ordinal.
turn_plan plan_turn(const protocol_program& program, const assignment& work, const own_work& own);

} // namespace gristmill
