#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// What an agent may ask for instead of handing in, and how often in one attempt.
struct tool_limit {
  /// "compile", "emulate" or "docs".
  std::string name;
  uint32_t calls_max = 0;

  friend bool operator==(const tool_limit&, const tool_limit&) = default;
};

/// The typed rules of a protocol file: its front matter. Each is rendered into the prompt, enforced
/// by a function and violated by a test; `rules.hpp` has the table. The defaults are those of a key
/// that the file leaves out.
struct program_rules {
  // [candidate]: what is handed in.

  /// "cuda", "cute_dsl"; the first is the one that prompts ask for.
  std::vector<std::string> languages{"cuda"};
  uint32_t source_bytes_max = 65536;
  uint32_t plan_bytes_max = 16384;
  /// Code blocks that are neither the source nor the plan are read over. Else they are refused.
  bool other_blocks = false;
  bool hypothesis_required = true;
  uint32_t hypothesis_bytes_min = 20;
  uint32_t hypothesis_bytes_max = 400;
  /// Identifiers, or several with `::` between, that must not stand in the code. A `*` at the end
  /// stands for any rest. Comments and texts in quotes are no code.
  std::vector<std::string> forbidden;
  /// Of `#include`; the compiler has no others in any case.
  std::vector<std::string> allowed_headers;
  /// `asm` statements.
  bool inline_ptx = true;
  /// `__global__` functions that no launch of the plan names.
  bool extra_entries = false;
  /// A candidate whose tokens agree with an earlier one's to this share or more is a near-duplicate
  /// and is not compiled; above 0, at most 1.
  double similarity_max = 0.98;

  // [turn]: one attempt of an agent.

  /// How often a reply without a readable candidate is sent back with what is wrong.
  uint32_t format_repairs = 1;
  /// First cap on what the model writes in one reply, hidden reasoning included. The gateway asks
  /// again for a reply that was cut off, with twice that, up to the deployment's own limit.
  uint32_t output_tokens_max = 16384;
  double temperature_min = 0.2;
  double temperature_max = 1.0;
  /// Allowed tools; what is not here is refused.
  std::vector<tool_limit> tools;

  // [prompt]: how much of what is known is shown.

  uint32_t history_rows = 15;
  uint32_t insight_lines = 30;
  uint32_t feedback_bytes = 1500;
  uint32_t inspirations = 2;
  uint32_t notes = 4;
  /// Each of: a source that is shown, an answer of a tool, the problem's text.
  uint32_t section_bytes = 24000;

  // [search]: when a worker changes course.

  /// Attempts of one strategy that may follow each other.
  uint32_t same_strategy_max = 3;
  /// A plateau is this many attempts in a row ...
  uint32_t plateau_attempts = 5;
  /// ... of which none made the best of the problem faster by this share or more.
  double plateau_gain = 0.01;
  /// Attempts between two reflections.
  uint32_t reflect_every = 8;

  // [stop]: when a worker leaves a problem.

  /// Attempts that one worker spends on a problem before it hands off; 0: never for that reason.
  uint32_t handoff_attempts = 24;
  /// Plateaus after which it hands off; 0: never for that reason.
  uint32_t handoff_plateaus = 3;
  /// Share of the lower bound on time that is good enough; above 0, at most 1.
  double floor_share = 0.95;

  const tool_limit* find_tool(std::string_view name) const;
  friend bool operator==(const program_rules&, const program_rules&) = default;
};

} // namespace gristmill
