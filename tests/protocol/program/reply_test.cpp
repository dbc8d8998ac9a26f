#include "protocol/program/reply.hpp"
#include "tests/protocol/program/small_program.hpp"

#include <doctest/doctest.h>

using namespace gristmill;
using namespace gristmill::test;

namespace {

const program_rules& rules() {
  static const program_rules of_small = parsed(small_program_text()).rules;
  return of_small;
}

parsed_reply read(const std::string& text) {
  return parse_reply(text, rules());
}

void check_fault(const std::string& text, format_fault fault, std::string_view message) {
  CAPTURE(text.substr(0, 400));
  const auto out = read(text);
  CHECK(out.kind == reply_kind::malformed);
  CHECK(to_string(out.fault) == to_string(fault));
  CHECK_MESSAGE(contains(out.message, message), out.message);
}

const std::string source = std::string("```cuda\n") + good_source + "```\n";
const std::string plan = std::string("```json\n") + good_plan + "\n```\n";
const std::string hypothesis = std::string("HYPOTHESIS: ") + good_hypothesis + "\n";

} // namespace

TEST_CASE("a whole reply is a candidate") {
  const auto out = read(good_reply());
  CHECK(out.kind == reply_kind::candidate);
  CHECK(out.fault == format_fault::none);
  CHECK(out.language == "cuda");
  CHECK(out.source == good_source);
  CHECK(out.plan == std::string(good_plan) + "\n");
  CHECK(out.hypothesis == good_hypothesis);
  CHECK(out.strategy == "plain-loop");
}

TEST_CASE("line ends, prose around, longer fences, lists and emphasis change nothing") {
  std::string windows;
  for (const char c : good_reply())
    windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
  for (const std::string& text :
    {windows, "I thought about it.\n\n" + good_reply() + "\nThat is all.\n",
      hypothesis + "~~~~cuda\n" + good_source + "~~~~\n" + plan,
      hypothesis + "`````cuda title=\"relu.cu\"\n" + good_source + "`````\n" + plan,
      "**HYPOTHESIS:** " + std::string(good_hypothesis) + "\n\n" + source + plan,
      "- HYPOTHESIS: " + std::string(good_hypothesis) + "\n\n" + source + plan,
      "HYPOTHESIS: One thread an element\nkeeps every SM busy.\n\n" + plan + source,
      hypothesis + "```CUDA\n" + good_source + "```\n" + plan}) {
    CAPTURE(text);
    const auto out = read(text);
    CHECK_MESSAGE(out.kind == reply_kind::candidate, out.message);
    CHECK(out.source == good_source);
    CHECK(out.hypothesis == good_hypothesis);
  }
}

TEST_CASE("tabs and backticks of the source are kept as they are") {
  const std::string code = "// `a` and ```\n__global__ void k() {\n\tint x = 1;\n}\n";
  const auto out = read(hypothesis + "````cuda\n" + code + "````\n" + plan);
  CHECK_MESSAGE(out.kind == reply_kind::candidate, out.message);
  CHECK(out.source == code);
}

TEST_CASE("prose is never code") {
  check_fault("", format_fault::empty_reply, "empty");
  check_fault(" \n\t\n", format_fault::empty_reply, "empty");
  check_fault(good_source, format_fault::no_code_block, "never taken as code");
  check_fault(hypothesis + plan, format_fault::no_code_block, "```cuda");
  check_fault("    __global__ void k() {}\n", format_fault::no_code_block, "```cuda");
}

TEST_CASE("each way to break the form has its own words") {
  check_fault(hypothesis + source + source + plan, format_fault::several_code_blocks,
    "there are 2 code blocks, in the lines 2 and 9");
  check_fault(hypothesis + "```cuda\n" + good_source, format_fault::unclosed_block,
    "begins in line 2 is not closed");
  check_fault(
    hypothesis + source + "```json\n" + good_plan, format_fault::unclosed_block, "line 9");
  check_fault(
    hypothesis + "```cuda\n \n```\n" + plan, format_fault::empty_code_block, "line 2 is empty");
  check_fault(hypothesis + source, format_fault::no_plan, "```json");
  check_fault(hypothesis + source + plan + plan, format_fault::several_plans, "2 ```json blocks");
  check_fault(hypothesis + source + "```json\n{,}\n```\n", format_fault::plan_not_json, "line 9");
  check_fault(hypothesis + source + "```json\n[1]\n```\n", format_fault::plan_not_json, "line 9");
  check_fault(
    hypothesis + source + "```json\n{\"a\": 1, \"a\": 2}\n```\n", format_fault::plan_not_json, "a");
  check_fault(source + plan, format_fault::no_hypothesis, "HYPOTHESIS:");
  check_fault("HYPOTHESIS:\n\n" + source + plan, format_fault::no_hypothesis, "HYPOTHESIS:");
  check_fault("HYPOTHESIS: short\n" + source + plan, format_fault::hypothesis_too_short, "5 bytes");
  check_fault("HYPOTHESIS: " + std::string(300, 'x') + "\n" + source + plan,
    format_fault::hypothesis_too_long, "300 bytes, and 200");
  check_fault(hypothesis + "\n" + hypothesis + source + plan, format_fault::several_hypotheses,
    "lines 1 and 3");
  check_fault(hypothesis + "STRATEGY: Use TMA!\n\n" + source + plan, format_fault::bad_strategy,
    "lower case with hyphens");
  check_fault(hypothesis + "```\n" + good_source + "```\n" + plan, format_fault::unknown_block,
    "without a language");
  check_fault(
    hypothesis + "```cpp\n" + good_source + "```\n" + plan, format_fault::unknown_block, "'cpp'");
  check_fault(hypothesis + source + plan + "```text\nfor example\n```\n",
    format_fault::unknown_block, "'text'");
}

TEST_CASE("what is too large is refused by its own name") {
  const std::string large = "// " + std::string(5000, 'x') + "\n";
  check_fault(hypothesis + "```cuda\n" + large + "```\n" + plan, format_fault::source_too_large,
    "4000 are allowed");
  check_fault(hypothesis + source + "```json\n{\"a\": \"" + std::string(3000, 'x') + "\"}\n```\n",
    format_fault::plan_too_large, "2000 are allowed");
  check_fault(std::string(reply_bytes_max + 1, 'x'), format_fault::reply_too_large, "bytes");
}

TEST_CASE("a long reply of 200 KB is read, and so is one of nothing but fences") {
  std::string prose;
  while (prose.size() < 200'000)
    prose += "The kernel waits for memory, > so * it [could] _do_ more at once.\n\n- and\n";
  CHECK(read(prose + good_reply()).kind == reply_kind::candidate);
  std::string fences;
  while (fences.size() < 200'000)
    fences += "> - ```cuda\n";
  CHECK(read(fences).kind == reply_kind::malformed);
  CHECK(read(std::string(200'000, '`')).kind == reply_kind::malformed);
  CHECK(read(std::string(200'000, '>')).kind == reply_kind::malformed);
  CHECK(read(std::string(200'000, '[')).kind == reply_kind::malformed);
}

TEST_CASE("a question to docs stands alone") {
  const auto out =
    read("```tool\n{\"name\": \"docs\", \"arguments\": {\"query\": \"copy atoms\"}}\n```\n");
  CHECK_MESSAGE(out.kind == reply_kind::tool, out.message);
  CHECK(out.tool.name == "docs");
  CHECK(out.tool.arguments == R"({"query":"copy atoms"})");
  CHECK(out.source.empty());
  check_fault(hypothesis + source + plan + "```tool\n{\"name\": \"docs\"}\n```\n",
    format_fault::tool_and_code, "stands alone");
}

TEST_CASE("compile and emulate work on the code of the same reply") {
  const auto out = read(source + plan + "```tool\n{\"name\": \"compile\"}\n```\n");
  CHECK_MESSAGE(out.kind == reply_kind::tool, out.message);
  CHECK(out.tool.name == "compile");
  CHECK(out.tool.arguments == "{}");
  CHECK(out.source == good_source);
  check_fault("```tool\n{\"name\": \"emulate\"}\n```\n", format_fault::tool_and_code,
    "add the ```cuda block");
  check_fault(source + "```tool\n{\"name\": \"emulate\"}\n```\n", format_fault::no_plan, "```json");
}

TEST_CASE("a question that cannot be read says what is wrong with it") {
  check_fault("```tool\ncompile\n```\n", format_fault::tool_not_json, "line 1");
  check_fault("```tool\n{\"nam\": \"docs\"}\n```\n", format_fault::tool_not_json,
    "unknown key 'nam'; did you mean `name`?");
  check_fault("```tool\n{}\n```\n", format_fault::tool_not_json, "the name is missing");
  check_fault("```tool\n{\"name\": \"docs\", \"arguments\": 1}\n```\n", format_fault::tool_not_json,
    "must be an object");
  check_fault(
    "```tool\n{\"name\": \"dosc\"}\n```\n", format_fault::tool_unknown, "did you mean `docs`?");
  check_fault("```tool\n{\"name\": \"docs\"}\n```\n```tool\n{\"name\": \"docs\"}\n```\n",
    format_fault::several_tools, "one thing at a time");
}

TEST_CASE("the CuTe DSL contract is read where the rules ask for it") {
  program_rules both = rules();
  const std::string python = hypothesis + "```python\ndef run(x, y): ...\n```\n"
    + "```json\n{\"schema\": \"gristmill.cute-plan/1\", \"entry\": \"run\"}\n```\n";
  const auto refused = parse_reply(python, both);
  CHECK(refused.fault == format_fault::language_refused);
  both.languages = {"cute_dsl", "cuda"};
  const auto out = parse_reply(python, both);
  CHECK_MESSAGE(out.kind == reply_kind::candidate, out.message);
  CHECK(out.language == "cute_dsl");
  CHECK(parse_reply(good_reply(), both).language == "cuda");
}
