#pragma once

#include "protocol/program/program.hpp"
#include "protocol/program/reply.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gristmill {

/// A candidate as a prompt shows it.
struct shown_candidate {
  /// How the history calls it, such as "12".
  std::string id;
  std::string language = "cuda";
  std::string source;
  std::string plan;
  std::string strategy;
  /// What was measured, in words: "42.1 us, 1.83x the plain kernel, 61 % of the lower bound".
  /// Empty when it has no numbers.
  std::string numbers;
};

/// One line of the history table.
struct history_row {
  std::string id;
  std::string hypothesis;
  std::string strategy;
  /// PASSED, COMPILE_ERROR, ...
  std::string outcome;
  /// Time against the best before it, in percent, negative is faster: "-3.1"; empty for none.
  std::string change;
  std::string reason;
};

/// What a tool said in this attempt.
struct shown_answer {
  std::string name;
  std::string arguments;
  std::string text;
};

/// The problem, in texts that are shown as they are.
struct prompt_problem {
  std::string name;
  /// What it computes, in words; may be empty.
  std::string description;
  /// Inputs, outputs and scalars with dtype and shape, a line each.
  std::string signature;
  /// Workloads with their axes and tolerances, a line each.
  std::string workloads;
  /// Python.
  std::string reference;
  /// Calls and words that this problem forbids besides the file's; may be empty.
  std::vector<std::string> forbidden;
};

/// All that a prompt is made of besides the protocol file. Empty parts leave no heading behind.
struct prompt_facts {
  prompt_problem problem;
  /// "SMs: 132", "shared memory per block: 232448 bytes", … a line each.
  std::vector<std::string> device;
  std::optional<shown_candidate> best;
  /// Left out when it is the best.
  std::optional<shown_candidate> parent;
  /// Other good or different candidates; the rules say how many are shown.
  std::vector<shown_candidate> inspirations;
  /// Oldest first; the newest `history_rows` are shown.
  std::vector<history_row> history;
  /// Of the parent, first failing class only; cut at `feedback_bytes`.
  std::string feedback;
  /// Lines; the first `insight_lines` are shown.
  std::vector<std::string> insights;
  /// What earlier workers of the problem left behind, newest last.
  std::vector<std::string> notes;
  /// What is known of related problems, one entry each.
  std::vector<std::string> knowledge;
  /// Id of the card to try; empty for a free choice.
  std::string card;
  /// Of the rules' tools, those that work in this run: name and one line of what it does and which
  /// arguments it takes. Others are not offered.
  std::vector<std::pair<std::string, std::string>> tools;
  std::vector<shown_answer> tool_answers;
  /// The one task; empty for the usual sentence.
  std::string task;
};

struct prompt {
  /// Equal for all calls of one program, device and language, so that providers can keep it.
  std::string instructions;
  std::string user;
};

/// The prompt of a turn. Equal arguments give equal bytes. A part that is longer than its rule
/// allows is cut at a line and says "[cut: N of M bytes shown]".
prompt render_prompt(const protocol_program& program, const prompt_facts& facts);

/// What follows a malformed reply, as the next user message: its fault, and the contract in short.
/// A reply that was cut off gets the SAME prompt with a larger cap instead.
std::string render_repair(const protocol_program& program, const parsed_reply& reply);

/// What follows a candidate that `check_candidate` or `check_duplicate` refused.
std::string render_refusal(const protocol_program& program, std::string_view why);

/// Asks for insights from the history: at most `insight_lines` lines.
prompt render_reflection(const protocol_program& program, const prompt_facts& facts);

/// The insight lines of a reply: those of its list, at most `insight_lines`, each at most 200
/// bytes. `invalid_input` when there is none.
result<std::vector<std::string>> parse_reflection(
  std::string_view reply, const program_rules& rules);

/// Asks for a note to whoever works on the problem next: two sentences.
prompt render_handoff(const protocol_program& program, const prompt_facts& facts);

/// The note of a reply: its text in one line, at most 400 bytes. `invalid_input` when it is empty.
result<std::string> parse_handoff(std::string_view reply);

/// Cuts `text` at the last line end within `bytes` and says so in a last line; as it is when it
/// fits.
std::string cut_text(std::string_view text, size_t bytes);

} // namespace gristmill
