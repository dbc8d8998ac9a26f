#include "protocol/program/program.hpp"
#include "protocol/program/rule_fields.hpp"
#include "tests/protocol/program/small_program.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <filesystem>

using namespace gristmill;
using namespace gristmill::test;

TEST_CASE("the protocol file that comes along is read") {
  const auto read = parse_program(default_program_text(), "program.md");
  REQUIRE_MESSAGE(read, (read ? std::string{} : read.error().what));
  CHECK(read->name == "default");
  CHECK(read->text == default_program_text());
  CHECK(read->cards.size() >= 14);
  CHECK(read->rules.languages == std::vector<std::string>{"cuda"});
  CHECK(read->find_card("split-k") != nullptr);
  CHECK(read->find_card("nothing") == nullptr);
}

TEST_CASE("sections and cards get their text") {
  const auto program = parsed(small_program_text());
  CHECK(program.goal == "Write fast kernels. Be right first.");
  CHECK(program.cards_preface == "Ideas to try.");
  REQUIRE(program.cards.size() == 2);
  const auto& card = program.cards[0];
  CHECK(card.id == "plain-loop");
  CHECK(card.when == "nothing else is known.");
  CHECK(card.text == "One thread an element.");
  CHECK(card.problem == "relu");
  CHECK(contains(card.source, "__global__ void relu"));
  CHECK(contains(card.plan, "gristmill.plan/1"));
  CHECK(card.withheld.empty());
}

TEST_CASE("a file with other line ends reads the same, and keeps its bytes for the hash") {
  std::string windows;
  for (const char c : small_program_text())
    windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
  const auto program = parsed(windows);
  CHECK(program.text == windows);
  CHECK(program.goal == parsed(small_program_text()).goal);
  CHECK(program.rules == parsed(small_program_text()).rules);
}

TEST_CASE("a card whose example breaks a rule of the file is not offered, and says why") {
  const auto program = parsed(edited(small_program_text(), "candidate.inline_ptx", "false"));
  CHECK(program.find_card("plain-loop")->withheld.empty());
  CHECK(contains(program.find_card("by-assembly")->withheld, "inline PTX is not allowed"));
}

TEST_CASE("a sentence that mentions a rule is typed, every other one advisory") {
  const auto program = parsed(small_program_text());
  const auto has = [&](const std::string& text) {
    return std::any_of(program.advisory.begin(), program.advisory.end(),
      [&](const auto& each) { return each.text == text; });
  };
  CHECK(has("Be right first."));
  CHECK(has("Cheating."));
  CHECK_FALSE(has("After {stop.handoff_attempts} attempts."));
  CHECK(program.advisory[0].line == 49);
  CHECK(program.advisory[0].section == "Goal");
}

TEST_CASE("an unknown rule, table or section is refused with line and cure") {
  const auto text = small_program_text();
  CHECK(contains(refusal(replaced(text, "inline_ptx", "inline_pxt")),
    "p.md:15: candidate.inline_pxt: unknown rule; did you mean `inline_ptx`?"));
  CHECK(contains(refusal(replaced(text, "[search]", "[serach]")),
    "serach: unknown table; did you mean `search`?"));
  CHECK(contains(refusal(replaced(text, "[program]", "loose = 1\n[program]")),
    "loose: every rule stands in a table"));
  CHECK(contains(refusal(replaced(text, "## Goal", "## Gaol")),
    "p.md:47: no section is called 'Gaol'; did you mean `Goal`?"));
}

TEST_CASE("a missing, doubled or empty section is refused with line and cure") {
  const auto text = small_program_text();
  CHECK(contains(refusal(replaced(text, "## Tests\n\nEvery workload.\n", "")),
    "the section 'Tests' is missing; add a heading `## Tests`"));
  CHECK(contains(refusal(text + "\n## Goal\n\nMore.\n"),
    "the section 'Goal' is there twice, first in line 47; join them"));
  CHECK(contains(
    refusal(replaced(text, "Cheating.\n", "")), "p.md:69: the section 'Forbidden' is empty"));
  CHECK(contains(refusal(replaced(text, "# A small protocol", "Prose first.")),
    "text before the first section belongs to none"));
}

TEST_CASE("a value of the wrong kind or out of range is refused with its line") {
  const auto text = small_program_text();
  CHECK(contains(refusal(edited(text, "candidate.inline_ptx", "1")),
    "p.md:15: candidate.inline_ptx: must be true or false"));
  CHECK(contains(refusal(edited(text, "candidate.source_bytes_max", "1.5")),
    "must be a whole number from 256 to 1048576"));
  CHECK(contains(refusal(edited(text, "candidate.source_bytes_max", "-1")), "whole number"));
  CHECK(contains(refusal(edited(text, "stop.floor_share", "nan")), "must be a number from"));
  CHECK(
    contains(refusal(edited(text, "stop.floor_share", "1.1")), "must be a number from 0.01 to 1"));
  CHECK(contains(refusal(edited(text, "candidate.forbidden", "[1]")), "must be a list of strings"));
  CHECK(
    contains(refusal(edited(text, "candidate.forbidden", R"(["a", "a"])")), "stands there twice"));
  CHECK(contains(refusal(edited(text, "candidate.forbidden", R"(["a b"])")), "is no identifier"));
  CHECK(contains(
    refusal(edited(text, "candidate.allowed_headers", R"(["../x.h"])")), "no name of a header"));
  CHECK(
    contains(refusal(edited(text, "candidate.languages", R"(["cudaa"])")), "did you mean `cuda`?"));
  CHECK(contains(refusal(edited(text, "program.schema", "\"gristmill.program/2\"")),
    "p.md:3: program.schema: must be \"gristmill.program/1\""));
}

TEST_CASE("all errors of the front matter come in one message, in the order of their lines") {
  auto text = edited(small_program_text(), "candidate.inline_ptx", "1");
  text = edited(text, "candidate.source_bytes_max", "0");
  text = edited(text, "stop.floor_share", "7");
  const auto why = refusal(text);
  const auto first = why.find("source_bytes_max"), second = why.find("inline_ptx"),
             third = why.find("floor_share");
  CHECK(first < second);
  CHECK(second < third);
  CHECK(third != std::string::npos);
}

TEST_CASE("TOML that does not parse, a missing frame and broken Markdown say where") {
  const auto text = small_program_text();
  CHECK(contains(refusal(edited(text, "turn.format_repairs", "1 1")), "p.md:19: front matter"));
  CHECK(contains(refusal("## Goal\n"), "p.md:1: the file must begin with its typed rules"));
  CHECK(contains(refusal("+++\n[program]\n"), "p.md:1: the line +++ that ends"));
  CHECK(contains(refusal(text + "\n```\nopen\n"), "has no end; close its fence"));
  CHECK(contains(refusal(""), "p.md:1:"));
  CHECK(contains(refusal(std::string(program_bytes_max + 1, 'x')), "at most"));
  CHECK(contains(refusal(std::string("+++\n\0+++\n", 9)), "zero byte"));
}

TEST_CASE("rules that contradict each other are refused with the cure") {
  const auto text = small_program_text();
  CHECK(contains(refusal(edited(text, "candidate.forbidden", R"(["asm"])")),
    "'asm' is forbidden while candidate.inline_ptx = true allows it; delete it here or set "
    "inline_ptx = false"));
  CHECK(contains(refusal(replaced(text, "docs = 4", "docs = 4\nforbidden = [\"docs\"]")),
    "tools.docs: docs is allowed here and stands in tools.forbidden too; delete one"));
  CHECK(contains(refusal(replaced(text, "docs = 4", "forbidden = [\"dosc\"]")),
    "no tool is called 'dosc'; did you mean `docs`?"));
  CHECK(contains(refusal(edited(text, "candidate.languages", R"(["cuda", "cute_dsl"])")),
    "candidate.languages has 'cute_dsl', but the contract shows no ```python block"));
  CHECK(contains(
    refusal(edited(text, "candidate.hypothesis_bytes_min", "300")), "so that no hypothesis fits"));
  CHECK(contains(refusal(edited(text, "turn.temperature_min", "1.5")), "swap them"));
  CHECK(contains(refusal(edited(text, "prompt.section_bytes", "1000")),
    "1000 would cut a source of candidate.source_bytes_max = 4000 bytes"));
}

TEST_CASE("rules that can never matter are refused with the reason") {
  const auto text = small_program_text();
  CHECK(contains(refusal(edited(text, "stop.handoff_plateaus", "5")),
    "stop.handoff_plateaus: can never matter: 5 plateaus of 4 attempts after one that passed are "
    "21 "
    "attempts, and a worker leaves after stop.handoff_attempts = 20"));
  CHECK(contains(refusal(edited(text, "search.plateau_attempts", "20")),
    "search.plateau_attempts: can never matter"));
  CHECK(contains(
    refusal(edited(text, "search.reflect_every", "20")), "search.reflect_every: can never matter"));
  CHECK(contains(refusal(edited(text, "search.same_strategy_max", "20")),
    "search.same_strategy_max: can never matter"));
  CHECK(contains(refusal(edited(text, "search.reflect_every", "0")), "nobody writes insights"));
  CHECK(contains(
    refusal(edited(text, "prompt.insight_lines", "0")), "a reflection would write nothing"));
  // Without a limit on attempts nothing comes first.
  parsed(edited(edited(text, "stop.handoff_attempts", "0"), "stop.handoff_plateaus", "50"));
}

TEST_CASE("a mention of no rule is refused, and a mention of one becomes its value") {
  const auto text = small_program_text();
  CHECK(contains(refusal(replaced(text, "{stop.handoff_attempts}", "{stop.handof_attempts}")),
    "'{stop.handof_attempts}' names no rule; did you mean `stop.handoff_attempts`?"));
  program_rules rules;
  rules.source_bytes_max = 77;
  CHECK(fill_mentions("{candidate.source_bytes_max} {x.y} {a} {", rules) == "77 {x.y} {a} {");
}

TEST_CASE("a card without one of its parts, or with one too many, is refused") {
  const auto text = small_program_text();
  CHECK(contains(refusal(replaced(text, "When: nothing else is known.\n", "")),
    "strategy card 'Plain loop': 'When:' is missing"));
  CHECK(contains(refusal(replaced(text, "Problem: `relu`\n", "")), "'Problem:' is missing"));
  CHECK(contains(refusal(replaced(text, "One thread an element.\n", "")), "it explains nothing"));
  CHECK(contains(refusal(replaced(text, "### By assembly", "### Plain Loop")),
    "another card has the same title"));
  CHECK(contains(refusal(replaced(text, "Say it in PTX.", "Say it in PTX.\n\n```cuda\nx\n```")),
    "a second ```cuda block"));
  CHECK(contains(refusal(replaced(text, "Say it in PTX.", "Say it in PTX.\n\n```sh\nx\n```")),
    "a code block 'sh'"));
}

TEST_CASE("a file that is not there is named") {
  const auto read = load_program("/nonexistent/p.md");
  REQUIRE_FALSE(read);
  CHECK(read.error().code == errc::not_found);
  CHECK(contains(read.error().what, "/nonexistent/p.md"));
}
