// The protocol file: read or refused with a place, and what was read renders into prompts.

#include "fuzz/require.hpp"
#include "protocol/program/program.hpp"
#include "protocol/program/prompt.hpp"
#include "protocol/program/rules.hpp"

using namespace gristmill;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto text = fuzz::text_of(data, size);
  const auto read = parse_program(text, "p.md");
  if (!read) {
    fuzz::require(read.error().code == errc::invalid_input, "a refused file is invalid input");
    fuzz::require(read.error().what.starts_with("p.md:"), "a refusal names the file");
    return 0;
  }
  fuzz::require(read->text == text, "the bytes are kept for the hash");
  const auto again = parse_program(text, "p.md");
  fuzz::require(again && again->rules == read->rules, "reading twice gives the same rules");
  const auto& rules = read->rules;
  fuzz::require(!rules.languages.empty() && rules.hypothesis_bytes_min <= rules.hypothesis_bytes_max
      && rules.temperature_min <= rules.temperature_max
      && rules.section_bytes >= rules.source_bytes_max,
    "rules that were read do not contradict each other");
  const auto instructions = render_prompt(*read, {}).instructions;
  for (const auto& rule : rule_table(*read))
    fuzz::require(instructions.find(rule.says) != std::string::npos, "every rule is in the prompt");
  for (const auto& card : read->cards)
    fuzz::require(
      !card.source.empty() && !card.plan.empty() && !card.when.empty(), "every card has its parts");
  return 0;
}
