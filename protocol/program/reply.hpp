#pragma once

#include "protocol/program/program_rules.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace gristmill {

enum class reply_kind : uint8_t {
  /// A kernel to judge.
  candidate = 0,
  /// A question to a tool.
  tool,
  /// Neither can be read from it; `fault` and `message` say why.
  malformed,
};

/// Why a reply cannot be read. Names are stable: they are counted in reports.
enum class format_fault : uint8_t {
  none = 0,
  empty_reply,
  reply_too_large,
  no_code_block,
  several_code_blocks,
  unclosed_block,
  empty_code_block,
  /// A code block that is neither source nor plan nor tool.
  unknown_block,
  /// A language that the rules do not list, or that this build cannot judge.
  language_refused,
  no_plan,
  several_plans,
  plan_not_json,
  plan_too_large,
  source_too_large,
  no_hypothesis,
  several_hypotheses,
  hypothesis_too_short,
  hypothesis_too_long,
  bad_strategy,
  several_tools,
  tool_not_json,
  tool_unknown,
  /// `docs` together with code, or `compile` and `emulate` without.
  tool_and_code,
};

std::string to_string(format_fault fault);

/// A question to a tool. `compile` and `emulate` are about the code of the same reply, which stands
/// in its own blocks and never within JSON.
struct tool_request {
  std::string name;
  /// A JSON object; "{}" when the reply gave none.
  std::string arguments;
};

struct parsed_reply {
  reply_kind kind = reply_kind::malformed;
  /// Of a candidate, and of a question about code.
  std::string language;
  std::string source;
  std::string plan;
  /// One line; may be empty in a question to a tool.
  std::string hypothesis;
  /// What the line "STRATEGY: id" says; empty without one.
  std::string strategy;
  tool_request tool;
  format_fault fault = format_fault::none;
  /// For the model: what is wrong and what would be right. Names the line of the reply.
  std::string message;
};

/// Longest reply that is looked at.
constexpr size_t reply_bytes_max = size_t{1} << 20;

/// Reads a reply by its Markdown structure. Nothing is guessed: a reply is a candidate, a question
/// or malformed, and prose is never code.
parsed_reply parse_reply(std::string_view text, const program_rules& rules);

} // namespace gristmill
