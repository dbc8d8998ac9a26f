#include "protocol/program/turn_rules.hpp"

#include "protocol/nearest.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

/// Index behind the last attempt that made the best faster by the gain; 0 when nothing passed.
size_t behind_last_gain(const program_rules& rules, const std::vector<finished_turn>& turns) {
  size_t out = 0;
  uint64_t best = 0;
  for (size_t i = 0; i < turns.size(); ++i) {
    if (!turns[i].passed)
      continue;
    const auto now = static_cast<double>(turns[i].objective_ns);
    if (best == 0 || now <= static_cast<double>(best) * (1 - rules.plateau_gain)) {
      best = turns[i].objective_ns;
      out = i + 1;
    }
  }
  return out;
}

/// Attempts since the last gain; none before the first that passed.
size_t attempts_without_gain(const program_rules& rules, const std::vector<finished_turn>& turns) {
  const size_t behind = behind_last_gain(rules, turns);
  return behind == 0 ? 0 : turns.size() - behind;
}

} // namespace

result<void> check_tool_call(
  const program_rules& rules, std::string_view tool, uint32_t calls_before) {
  const auto* limit = rules.find_tool(tool);
  if (limit == nullptr) {
    std::vector<std::string> names;
    for (const auto& each : rules.tools)
      names.push_back(each.name);
    return fail(errc::refused,
      fmt::format("the tool '{}' is not allowed (tools){}", tool,
        names.empty() ? std::string("; none is") : suggestion(tool, names)));
  }
  if (calls_before >= limit->calls_max)
    return fail(errc::refused,
      fmt::format("the attempt has used its {} calls of {} (tools.{}); hand in a candidate",
        limit->calls_max, tool, tool));
  return {};
}

bool repair_allowed(const program_rules& rules, uint32_t repairs_before) {
  return repairs_before < rules.format_repairs;
}

double temperature_at(const program_rules& rules, double share) {
  const double within = std::clamp(share, 0.0, 1.0);
  return rules.temperature_min + (rules.temperature_max - rules.temperature_min) * within;
}

result<void> check_strategy(
  const program_rules& rules, std::string_view strategy, const std::vector<finished_turn>& turns) {
  if (strategy.empty() || turns.size() < rules.same_strategy_max)
    return {};
  const bool same = std::all_of(turns.end() - rules.same_strategy_max, turns.end(),
    [&](const auto& turn) { return turn.strategy == strategy; });
  if (!same)
    return {};
  return fail(errc::refused,
    fmt::format("the last {} attempts were all '{}' (search.same_strategy_max); try something else",
      rules.same_strategy_max, strategy));
}

bool at_plateau(const program_rules& rules, const std::vector<finished_turn>& turns) {
  return attempts_without_gain(rules, turns) >= rules.plateau_attempts;
}

uint32_t plateaus_in_row(const program_rules& rules, const std::vector<finished_turn>& turns) {
  return static_cast<uint32_t>(attempts_without_gain(rules, turns) / rules.plateau_attempts);
}

bool reflection_due(const program_rules& rules, const std::vector<finished_turn>& turns) {
  if (rules.reflect_every == 0 || turns.empty())
    return false;
  return turns.size() % rules.reflect_every == 0
    || attempts_without_gain(rules, turns) == rules.plateau_attempts;
}

std::string handoff_reason(const program_rules& rules, const std::vector<finished_turn>& turns) {
  if (rules.handoff_attempts > 0 && turns.size() >= rules.handoff_attempts)
    return fmt::format("{} attempts by one worker (stop.handoff_attempts)", turns.size());
  if (rules.handoff_plateaus > 0 && plateaus_in_row(rules, turns) >= rules.handoff_plateaus)
    return fmt::format(
      "{} plateaus in a row (stop.handoff_plateaus)", plateaus_in_row(rules, turns));
  return {};
}

std::string good_enough(const program_rules& rules, double floor_share) {
  if (floor_share < rules.floor_share)
    return {};
  return fmt::format(
    "the best is at {:.0f} % of the lower bound, and the program calls {:.0f} % good "
    "enough (stop.floor_share)",
    floor_share * 100, rules.floor_share * 100);
}

} // namespace gristmill
