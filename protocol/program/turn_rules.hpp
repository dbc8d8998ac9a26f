#pragma once

#include "messages/result.hpp"
#include "protocol/program/program_rules.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// A finished attempt, as far as the rules of search and stop look at it.
struct finished_turn {
  /// Card or name of one's own; empty when unknown.
  std::string strategy;
  /// The candidate passed; `objective_ns` is its time.
  bool passed = false;
  uint64_t objective_ns = 0;
};

/// `refused` for a tool that is not allowed, or of which the attempt has used up its calls.
result<void> check_tool_call(
  const program_rules& rules, std::string_view tool, uint32_t calls_before);

/// Another repair prompt may be sent in this attempt.
bool repair_allowed(const program_rules& rules, uint32_t repairs_before);

/// Within the rule's range by `share` of it, 0 to 1.
double temperature_at(const program_rules& rules, double share);

/// `refused` when the last `same_strategy_max` attempts, oldest first in `turns`, were all of this
/// strategy.
result<void> check_strategy(
  const program_rules& rules, std::string_view strategy, const std::vector<finished_turn>& turns);

/// The last `plateau_attempts` attempts brought no gain of `plateau_gain` over the best before
/// them. False with fewer attempts, and as long as nothing passed before them.
bool at_plateau(const program_rules& rules, const std::vector<finished_turn>& turns);

/// Plateaus one after another since the best last improved.
uint32_t plateaus_in_row(const program_rules& rules, const std::vector<finished_turn>& turns);

/// It is time to write insights: every `reflect_every` attempts, and at a plateau's start.
bool reflection_due(const program_rules& rules, const std::vector<finished_turn>& turns);

/// Why a worker that made these attempts on the problem should leave it; empty to stay.
std::string handoff_reason(const program_rules& rules, const std::vector<finished_turn>& turns);

/// Why the problem needs no more attempts; empty when it does. `floor_share` is the lower bound on
/// time over the best time, 0 when one of them is unknown.
std::string good_enough(const program_rules& rules, double floor_share);

} // namespace gristmill
