// The table of typed rules: what it names exists, and an edit of a rule changes prompt, enforcement
// and table together.

#include "protocol/program/prompt.hpp"
#include "protocol/program/rule_fields.hpp"
#include "protocol/program/rules.hpp"
#include "tests/protocol/program/rule_probes.hpp"
#include "tests/protocol/program/small_program.hpp"

#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

using namespace gristmill;
using namespace gristmill::test;

namespace {

std::string file_text(const std::string& name) {
  const char* root = std::getenv("GRISTMILL_SOURCE");
  REQUIRE(root != nullptr);
  std::ifstream in(std::filesystem::path(root) / name, std::ios::binary);
  REQUIRE_MESSAGE(in, name);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

/// "file: name" in its two parts.
std::pair<std::string, std::string> split(const std::string& text) {
  const size_t at = text.find(": ");
  REQUIRE(at != std::string::npos);
  return {text.substr(0, at), text.substr(at + 2)};
}

} // namespace

TEST_CASE("every typed rule is in the table once") {
  std::vector<std::string> names;
  for (const auto& rule : rule_table(default_program()))
    names.push_back(rule.name);
  CHECK(names == rule_names());
  CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());
}

TEST_CASE("every function and every test that the table names stands in the sources") {
  for (const auto& rule : rule_table(default_program())) {
    CAPTURE(rule.name);
    const auto [source, function] = split(rule.enforced_by);
    CHECK(contains(file_text(source), " " + function + "("));
    const auto [test, title] = split(rule.violated_by);
    CHECK(contains(file_text(test), "TEST_CASE(\"" + title + "\")"));
    // The test is about this rule.
    const auto text = file_text(test);
    const auto at = text.find("TEST_CASE(\"" + title + "\")");
    const auto end = text.find("TEST_CASE", at + 1);
    CHECK(contains(std::string_view(text).substr(at, end - at), "\"" + rule.name + "\""));
  }
}

TEST_CASE("an edit of a typed rule changes prompt, enforcement and table together") {
  std::set<std::string> seen;
  const auto before = parsed(small_program_text());
  const auto table_before = rule_table(before);
  for (const auto& each : rule_probes()) {
    CAPTURE(each.rule);
    seen.insert(each.rule);
    const auto outcome = probe(each.rule);
    CHECK(outcome.before != outcome.after);

    std::string text = edited(small_program_text(), each.rule, each.value);
    if (each.rule == "candidate.languages")
      text = replaced(text, "and a plan.", "and a plan, or\n\n```python\ndef run(): ...\n```\n");
    const auto after = parsed(text);
    CHECK(render_prompt(before, {}).instructions != render_prompt(after, {}).instructions);
    const auto table_after = rule_table(after);
    REQUIRE(table_after.size() == table_before.size());
    for (size_t i = 0; i < table_after.size(); ++i) {
      CAPTURE(table_after[i].name);
      CHECK((table_after[i].says != table_before[i].says) == (table_after[i].name == each.rule));
      // The sentence of the table is the prompt's.
      CHECK(contains(render_prompt(after, {}).instructions, table_after[i].says));
    }
  }
  const auto names = rule_names();
  CHECK(seen == std::set<std::string>(names.begin(), names.end()));
}
