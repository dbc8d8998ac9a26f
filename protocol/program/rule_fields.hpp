#pragma once

#include "messages/result.hpp"
#include "protocol/program/program_rules.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// What a value may be: of a number itself, of a list the count of its entries.
struct rule_range {
  double least = 0;
  double most = 0;
};

/// Calls `use(name, member, range)` for every typed rule except the tools, in the order of the
/// front matter: reading, checking, telling and the table of rules all walk this one list.
template <class Rules, class F>
void each_rule(Rules& r, F use) {
  use("candidate.languages", r.languages, rule_range{1, 2});
  use("candidate.source_bytes_max", r.source_bytes_max, rule_range{256, 1 << 20});
  use("candidate.plan_bytes_max", r.plan_bytes_max, rule_range{64, 65536});
  use("candidate.other_blocks", r.other_blocks, rule_range{});
  use("candidate.hypothesis_required", r.hypothesis_required, rule_range{});
  use("candidate.hypothesis_bytes_min", r.hypothesis_bytes_min, rule_range{0, 1000});
  use("candidate.hypothesis_bytes_max", r.hypothesis_bytes_max, rule_range{1, 4000});
  use("candidate.forbidden", r.forbidden, rule_range{0, 200});
  use("candidate.allowed_headers", r.allowed_headers, rule_range{0, 200});
  use("candidate.inline_ptx", r.inline_ptx, rule_range{});
  use("candidate.extra_entries", r.extra_entries, rule_range{});
  use("candidate.similarity_max", r.similarity_max, rule_range{0.5, 1});
  use("turn.format_repairs", r.format_repairs, rule_range{0, 5});
  use("turn.output_tokens_max", r.output_tokens_max, rule_range{256, 1'000'000});
  use("turn.temperature_min", r.temperature_min, rule_range{0, 2});
  use("turn.temperature_max", r.temperature_max, rule_range{0, 2});
  use("prompt.history_rows", r.history_rows, rule_range{0, 200});
  use("prompt.insight_lines", r.insight_lines, rule_range{0, 200});
  use("prompt.feedback_bytes", r.feedback_bytes, rule_range{200, 100'000});
  use("prompt.inspirations", r.inspirations, rule_range{0, 4});
  use("prompt.notes", r.notes, rule_range{0, 16});
  use("prompt.section_bytes", r.section_bytes, rule_range{1000, 1 << 20});
  use("search.same_strategy_max", r.same_strategy_max, rule_range{1, 1000});
  use("search.plateau_attempts", r.plateau_attempts, rule_range{1, 1000});
  use("search.plateau_gain", r.plateau_gain, rule_range{0.0001, 1});
  use("search.reflect_every", r.reflect_every, rule_range{0, 1000});
  use("stop.handoff_attempts", r.handoff_attempts, rule_range{0, 100'000});
  use("stop.handoff_plateaus", r.handoff_plateaus, rule_range{0, 1000});
  use("stop.floor_share", r.floor_share, rule_range{0.01, 1});
}

/// The tools that there are.
const std::vector<std::string>& known_tools();

/// Names of all rules, "tools.compile" and the like included.
std::vector<std::string> rule_names();

/// The value as a prompt has it, such as "65536", "yes" or "`cuda`, `cute_dsl`"; nothing for a name
/// that is no rule.
std::optional<std::string> rule_value(const program_rules& rules, std::string_view name);

/// `{candidate.source_bytes_max}` in a text.
struct rule_mention {
  size_t first = 0;
  size_t end = 0;
  /// Without the braces.
  std::string name;
};

/// Every "{table.key}" whose table is one of the front matter's.
std::vector<rule_mention> rule_mentions(std::string_view text);

/// The text with each mention replaced by its value. Mentions of no rule stay; `parse_program` has
/// refused them.
std::string fill_mentions(std::string_view text, const program_rules& rules);

/// Reads the front matter; `first_line` is the line of the file on which `text` begins. All that is
/// wrong in one message, a line each: "file:line: field: rule".
result<program_rules> parse_rules(
  std::string_view text, const std::string& file_name, size_t first_line, std::string& name);

} // namespace gristmill
