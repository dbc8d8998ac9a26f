// A model's reply: a candidate, a question or malformed, and never a guess.

#include "fuzz/require.hpp"
#include "protocol/program/candidate_rules.hpp"
#include "protocol/program/prompt.hpp"
#include "protocol/program/reply.hpp"

#include <nlohmann/json.hpp>

using namespace gristmill;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto& program = default_program();
  const auto& rules = program.rules;
  const auto text = fuzz::text_of(data, size);
  const auto read = parse_reply(text, rules);
  fuzz::require((read.kind == reply_kind::malformed) == (read.fault != format_fault::none),
    "exactly what is malformed has a fault");
  if (read.kind == reply_kind::malformed) {
    fuzz::require(!read.message.empty(), "a fault has words");
    fuzz::require(!render_repair(program, read).empty(), "a fault can be sent back");
  } else {
    fuzz::require(read.source.empty() == read.plan.empty(), "code comes with its plan");
    fuzz::require(read.source.size() <= rules.source_bytes_max, "a source fits the rule");
    fuzz::require(read.hypothesis.size() <= rules.hypothesis_bytes_max, "so does a hypothesis");
  }
  if (read.kind == reply_kind::candidate) {
    fuzz::require(!read.source.empty(), "a candidate has a source");
    fuzz::require(nlohmann::json::parse(read.plan, nullptr, false).is_object(), "a plan is JSON");
    fuzz::require(
      read.hypothesis.size() >= rules.hypothesis_bytes_min, "a hypothesis says something");
    const auto checked = check_candidate(program, read.source, read.plan, read.hypothesis);
    fuzz::require(checked || !checked.error().what.empty(), "a refusal has words");
    fuzz::require(source_similarity(read.source, read.source) == 1, "a source is like itself");
  }
  if (read.kind == reply_kind::tool)
    fuzz::require(rules.find_tool(read.tool.name) != nullptr, "only offered tools are asked");
  // Whatever it is: insights and notes are read from replies too.
  if (const auto lines = parse_reflection(text, rules))
    fuzz::require(lines->size() <= rules.insight_lines, "insights fit the rule");
  if (const auto note = parse_handoff(text))
    fuzz::require(note->size() <= 400 && note->find('\n') == std::string::npos, "a note is a line");
  return 0;
}
