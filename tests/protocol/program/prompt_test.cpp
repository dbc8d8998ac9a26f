#include "protocol/program/prompt.hpp"
#include "tests/protocol/program/small_program.hpp"

#include <doctest/doctest.h>

using namespace gristmill;
using namespace gristmill::test;

namespace {

const protocol_program& program() {
  static const protocol_program small = parsed(small_program_text());
  return small;
}

prompt_facts full_facts() {
  prompt_facts out;
  out.problem = {
    "relu", "Keeps what is positive.", "x: float32 [N]", "N = 5", "def run(x): ...", {"torch"}};
  out.device = {"SMs: 132"};
  out.best = shown_candidate{"12", "cuda", good_source, good_plan, "plain-loop", "42.1 us"};
  out.parent = shown_candidate{"11", "cuda", good_source, good_plan, "", ""};
  out.inspirations = {{"4", "cuda", good_source, good_plan, "split-k", "50 us"}};
  out.history = {{"11", "a | b\nc", "plain-loop", "PASSED", "-3.1", "limited by memory"}};
  out.feedback = "3 of 5 elements miss";
  out.insights = {"works: vector loads"};
  out.notes = {"try TMA"};
  out.knowledge = {"gelu: 16-byte loads won"};
  out.card = "plain-loop";
  out.tools = {{"compile", "compiles only"}, {"unknown", "never offered"}};
  out.tool_answers = {{"compile", "{}", "kernel.cu:3: error"}};
  return out;
}

/// Of each heading in order.
std::vector<size_t> places(const std::string& text, const std::vector<std::string>& parts) {
  std::vector<size_t> out;
  for (const auto& part : parts) {
    CAPTURE(part);
    out.push_back(text.find(part));
    CHECK(out.back() != std::string::npos);
  }
  return out;
}

} // namespace

TEST_CASE("a full prompt has all its parts in their order") {
  const auto out = render_prompt(program(), full_facts());
  const auto at = places(out.user,
    {"# Problem relu", "x: float32 [N]", "N = 5", "def run(x)", "- torch", "# Best so far",
      "42.1 us", "# Parent", "# Inspiration", "# History", "# Feedback on the parent", "# Insights",
      "# Notes of earlier workers", "# Known of related problems",
      "# Strategy to try: `plain-loop`", "# Answers of the tools", "# Task"});
  CHECK(std::is_sorted(at.begin(), at.end()));
  const auto in = places(out.instructions,
    {"# Goal", "# Hardware", "- SMs: 132", "# Contract", "# Allowed", "# Forbidden", "# Rules",
      "# Feedback", "# Tests", "# Stop", "# Tools", "- `compile` (3 calls", "# Strategy cards",
      "- `plain-loop`"});
  CHECK(std::is_sorted(in.begin(), in.end()));
  CHECK_FALSE(contains(out.instructions, "never offered"));
  CHECK(contains(out.user, "a \\| b c"));
}

TEST_CASE("equal facts give equal bytes, and the instructions do not depend on the problem") {
  const auto facts = full_facts();
  auto other = facts;
  other.problem.name = "softmax";
  other.history.clear();
  other.best.reset();
  CHECK(render_prompt(program(), facts).user == render_prompt(program(), facts).user);
  CHECK(
    render_prompt(program(), facts).instructions == render_prompt(program(), other).instructions);
}

TEST_CASE("what is not known leaves no heading behind") {
  prompt_facts facts;
  facts.problem.name = "relu";
  const auto out = render_prompt(program(), facts).user;
  for (const char* heading : {"# Best", "# Parent", "# History", "# Feedback", "# Insights",
         "# Notes", "# Known", "# Strategy", "# Answers"})
    CHECK_FALSE(contains(out, heading));
  CHECK(contains(out, "Write a first correct kernel."));
}

TEST_CASE("the best is not shown a second time as its own parent") {
  auto facts = full_facts();
  facts.parent = facts.best;
  CHECK_FALSE(contains(render_prompt(program(), facts).user, "# Parent"));
}

TEST_CASE("older rows are left out, and their number is told") {
  auto facts = full_facts();
  facts.history.clear();
  for (int i = 0; i < 9; ++i)
    facts.history.push_back({"n" + std::to_string(i), "h", "s", "PASSED", "", ""});
  const auto out = render_prompt(program(), facts).user;
  CHECK_FALSE(contains(out, "| n3 |"));
  CHECK(contains(out, "| n4 |"));
  CHECK(contains(out, "[cut: 4 older attempts are not shown]"));
}

TEST_CASE("a fence is longer than any within what it holds") {
  auto facts = full_facts();
  facts.best->source = "// ```` four\n";
  CHECK(contains(render_prompt(program(), facts).user, "`````cuda\n// ```` four\n`````\n"));
}

TEST_CASE("a card that is not offered is not shown") {
  const auto strict = parsed(edited(small_program_text(), "candidate.inline_ptx", "false"));
  auto facts = full_facts();
  facts.card = "by-assembly";
  const auto out = render_prompt(strict, facts);
  CHECK_FALSE(contains(out.instructions, "by-assembly"));
  CHECK_FALSE(contains(out.user, "# Strategy to try"));
}

TEST_CASE("a text is cut at a line, never within a character, and says so") {
  CHECK(cut_text("ab\ncd\n", 6) == "ab\ncd\n");
  CHECK(cut_text("ab\ncd\n", 5) == "ab\n[cut: 3 of 6 bytes shown]\n");
  CHECK(cut_text("äöü", 3) == "ä\n[cut: 2 of 6 bytes shown]\n");
  CHECK(cut_text("äöü", 1) == "[cut: 0 of 6 bytes shown]\n");
  CHECK(cut_text("", 0).empty());
}

TEST_CASE("a repair names the fault and the form, and nothing else of the prompt") {
  parsed_reply reply;
  reply.fault = format_fault::no_plan;
  reply.message = "there is no ```json block";
  const auto out = render_repair(program(), reply);
  CHECK(contains(out, "no_plan"));
  CHECK(contains(out, "there is no ```json block"));
  CHECK(contains(out, "HYPOTHESIS:"));
  CHECK(contains(out, "```cuda"));
  CHECK(out.size() < 600);
  CHECK(contains(render_refusal(program(), "source:3: `printf` is forbidden"), "source:3"));
}

TEST_CASE("insights are the lines of a list, as many as the rule allows, each cut") {
  CHECK(contains(render_reflection(program(), full_facts()).user, "at most 6 lines"));
  const auto out = parse_reflection(
    "Here:\r\n\r\n- works: a\r\n* fails: b\r\nprose\n  - untried: c\n", program().rules);
  REQUIRE(out);
  CHECK(*out == std::vector<std::string>{"works: a", "fails: b", "untried: c"});
  const auto longer = parse_reflection("- " + std::string(500, 'x'), program().rules);
  CHECK(longer->front().size() == 200);
  CHECK_FALSE(parse_reflection("nothing to say", program().rules));
  CHECK_FALSE(parse_reflection("", program().rules));
}

TEST_CASE("a note is one line of bounded length") {
  CHECK(contains(render_handoff(program(), full_facts()).user, "two sentences"));
  CHECK(*parse_handoff("  The loads\n are   narrow. \n") == "The loads are narrow.");
  CHECK(parse_handoff(std::string(999, 'x'))->size() == 400);
  CHECK_FALSE(parse_handoff(" \n"));
}
