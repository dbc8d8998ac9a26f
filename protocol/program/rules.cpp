#include "protocol/program/rules.hpp"

#include "protocol/program/rule_fields.hpp"

#include <cassert>
#include <map>

namespace gristmill {

namespace {

struct rule_words {
  /// With mentions of rules for their values.
  const char* says;
  /// Of a truth value: what it says when it is false.
  const char* says_not = nullptr;
  const char* enforced_by;
  const char* violated_by;
};

constexpr const char* candidate_file = "protocol/program/candidate_rules.cpp: ";
constexpr const char* turn_file = "protocol/program/turn_rules.cpp: ";
constexpr const char* prompt_file = "protocol/program/prompt.cpp: ";
constexpr const char* reply_file = "protocol/program/reply.cpp: ";
constexpr const char* similarity_file = "protocol/program/similarity.cpp: ";
constexpr const char* test_file = "tests/protocol/program/violations_test.cpp: ";

struct placed_words {
  rule_words words;
  const char* file;
};

const std::map<std::string, placed_words>& all_words() {
  static const std::map<std::string, placed_words> table{
    {"candidate.languages",
      {{"Candidates are written in {candidate.languages}; the first is the one to use.", nullptr,
         "check_candidate", "a language that is not asked for is refused"},
        candidate_file}},
    {"candidate.source_bytes_max",
      {{"A source has at most {candidate.source_bytes_max} bytes.", nullptr, "check_candidate",
         "a source that is too large is refused"},
        candidate_file}},
    {"candidate.plan_bytes_max",
      {{"A launch plan has at most {candidate.plan_bytes_max} bytes.", nullptr, "check_candidate",
         "a plan that is too large is refused"},
        candidate_file}},
    {"candidate.other_blocks",
      {{"Code blocks besides the source, the plan and a tool request are read over.",
         "A reply has no code blocks besides the source, the plan and a tool request.",
         "sort_blocks", "a code block that is neither source nor plan is refused"},
        reply_file}},
    {"candidate.hypothesis_required",
      {{"Each candidate comes with a line that begins with HYPOTHESIS:.",
         "A line that begins with HYPOTHESIS: is welcome but not required.", "check_hypothesis",
         "a candidate without a hypothesis is refused"},
        candidate_file}},
    {"candidate.hypothesis_bytes_min",
      {{"A hypothesis has at least {candidate.hypothesis_bytes_min} bytes.", nullptr,
         "check_hypothesis", "a hypothesis that says too little is refused"},
        candidate_file}},
    {"candidate.hypothesis_bytes_max",
      {{"A hypothesis has at most {candidate.hypothesis_bytes_max} bytes.", nullptr,
         "check_hypothesis", "a hypothesis that is too long is refused"},
        candidate_file}},
    {"candidate.forbidden",
      {{"These names must not stand in the code: {candidate.forbidden}.", nullptr, "check_names",
         "a forbidden name is refused"},
        candidate_file}},
    {"candidate.allowed_headers",
      {{"Headers that may be included: {candidate.allowed_headers}.", nullptr, "check_names",
         "a header that is not allowed is refused"},
        candidate_file}},
    {"candidate.inline_ptx",
      {{"Inline PTX is allowed.", "Inline PTX is not allowed.", "check_names",
         "inline PTX is refused where it is not allowed"},
        candidate_file}},
    {"candidate.extra_entries",
      {{"Kernels that no step of the plan launches may stand in the source.",
         "Every kernel of the source is launched by a step of the plan.", "check_plan",
         "a kernel that the plan does not launch is refused"},
        candidate_file}},
    {"candidate.similarity_max",
      {{"A candidate that agrees with an earlier one in a share of {candidate.similarity_max} of "
        "its "
        "tokens or more, own names and comments aside, and in its plan, is refused unseen.",
         nullptr, "check_duplicate", "a near-duplicate is refused"},
        similarity_file}},
    {"turn.format_repairs",
      {{"A reply that cannot be read is sent back {turn.format_repairs} times, then the attempt is "
        "lost.",
         nullptr, "repair_allowed", "no repair beyond those allowed"},
        turn_file}},
    {"turn.output_tokens_max",
      {{"A reply has at most {turn.output_tokens_max} tokens, reasoning included; one that is cut "
        "off is asked for again with more room, as far as the model has it.",
         nullptr, "conversation::ask", "no reply may be longer than the rule says"},
        "llm/mind/conversation.cpp: "}},
    {"turn.temperature_min",
      {{"Replies are drawn at a temperature of {turn.temperature_min} or more.", nullptr,
         "temperature_at", "no temperature is below the range"},
        turn_file}},
    {"turn.temperature_max",
      {{"Replies are drawn at a temperature of {turn.temperature_max} or less.", nullptr,
         "temperature_at", "no temperature is above the range"},
        turn_file}},
    {"tools.compile",
      {{"Calls of the tool compile in one attempt: {tools.compile}.", nullptr, "check_tool_call",
         "no call of compile beyond those allowed"},
        turn_file}},
    {"tools.emulate",
      {{"Calls of the tool emulate in one attempt: {tools.emulate}.", nullptr, "check_tool_call",
         "no call of emulate beyond those allowed"},
        turn_file}},
    {"tools.docs",
      {{"Calls of the tool docs in one attempt: {tools.docs}.", nullptr, "check_tool_call",
         "no call of docs beyond those allowed"},
        turn_file}},
    {"prompt.history_rows",
      {{"The history shows the newest {prompt.history_rows} attempts.", nullptr, "write_history",
         "no more rows of history than allowed are shown"},
        prompt_file}},
    {"prompt.insight_lines",
      {{"Insights are at most {prompt.insight_lines} lines.", nullptr, "parse_reflection",
         "no more insight lines than allowed are kept"},
        prompt_file}},
    {"prompt.feedback_bytes",
      {{"Feedback on a candidate is at most {prompt.feedback_bytes} bytes: the first failing class "
        "only.",
         nullptr, "write_feedback", "feedback that is too long is cut and says so"},
        prompt_file}},
    {"prompt.inspirations",
      {{"Other candidates that are shown for inspiration: at most {prompt.inspirations}.", nullptr,
         "write_candidates", "no more inspirations than allowed are shown"},
        prompt_file}},
    {"prompt.notes",
      {{"Notes of earlier workers that are shown: the newest {prompt.notes}.", nullptr,
         "write_lists", "no more notes than allowed are shown"},
        prompt_file}},
    {"prompt.section_bytes",
      {{"Any other part of a prompt is cut at {prompt.section_bytes} bytes and says so.", nullptr,
         "cut_text", "a part that is too long is cut and says so"},
        prompt_file}},
    {"search.same_strategy_max",
      {{"After {search.same_strategy_max} attempts of one strategy in a row another one must "
        "follow.",
         nullptr, "check_strategy", "a strategy is refused after its turns in a row"},
        turn_file}},
    {"search.plateau_attempts",
      {{"After {search.plateau_attempts} attempts without a gain, change the structure of the "
        "kernel, "
        "not its constants.",
         nullptr, "at_plateau", "a plateau is as long as the rule says"},
        turn_file}},
    {"search.plateau_gain",
      {{"A gain is a share of {search.plateau_gain} of the best time or more.", nullptr,
         "at_plateau", "a gain below the rule's share is none"},
        turn_file}},
    {"search.reflect_every",
      {{"Insights are written anew every {search.reflect_every} attempts (0: never) and when a "
        "plateau begins.",
         nullptr, "reflection_due", "a reflection comes when the rule says"},
        turn_file}},
    {"stop.handoff_attempts",
      {{"A worker hands the problem on after {stop.handoff_attempts} attempts (0: never for that "
        "reason).",
         nullptr, "handoff_reason", "a worker leaves after its attempts"},
        turn_file}},
    {"stop.handoff_plateaus",
      {{"A worker hands the problem on after {stop.handoff_plateaus} plateaus in a row (0: never "
        "for "
        "that reason).",
         nullptr, "handoff_reason", "a worker leaves after its plateaus"},
        turn_file}},
    {"stop.floor_share",
      {{"Where the lower bound on time is a share of {stop.floor_share} of the best time or more, "
        "the "
        "problem is done.",
         nullptr, "good_enough", "a problem that is good enough gets no more attempts"},
        turn_file}},
  };
  return table;
}

} // namespace

std::vector<program_rule> rule_table(const protocol_program& program) {
  std::vector<program_rule> out;
  for (const auto& name : rule_names()) {
    const auto found = all_words().find(name);
    assert(found != all_words().end() && "every rule has its words: a test walks the table");
    if (found == all_words().end())
      continue;
    const auto& [words, file] = found->second;
    const bool negative = words.says_not != nullptr && rule_value(program.rules, name) == "no";
    out.push_back({name, fill_mentions(negative ? words.says_not : words.says, program.rules),
      std::string(file) + words.enforced_by, std::string(test_file) + words.violated_by});
  }
  return out;
}

} // namespace gristmill
