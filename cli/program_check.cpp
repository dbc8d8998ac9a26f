#include "cli/verb.hpp"
#include "journal/hash.hpp"
#include "protocol/program/program.hpp"
#include "protocol/program/rules.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>

namespace gristmill {

namespace {

constexpr const char* schema = "gristmill.program-check/1";

void print_rules_as_json(const protocol_program& program) {
  nlohmann::ordered_json out;
  out["schema"] = schema;
  out["file"] = program.file_name;
  out["name"] = program.name;
  out["sha256"] = sha256_hex(program.text);
  auto& rules = out["rules"] = nlohmann::ordered_json::array();
  for (const auto& rule : rule_table(program))
    rules.push_back({{"rule", rule.name}, {"says", rule.says}, {"enforced_by", rule.enforced_by},
      {"violated_by", rule.violated_by}});
  auto& cards = out["cards"] = nlohmann::ordered_json::array();
  for (const auto& card : program.cards)
    cards.push_back({{"id", card.id}, {"line", card.line}, {"problem", card.problem},
      {"language", card.language}, {"withheld", card.withheld}});
  auto& advisory = out["advisory"] = nlohmann::ordered_json::array();
  for (const auto& each : program.advisory)
    advisory.push_back({{"line", each.line}, {"section", each.section}, {"text", each.text}});
  std::puts(out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
}

void print_text(const protocol_program& program) {
  const auto rules = rule_table(program);
  fmt::print("{}: '{}', sha256 {}\n\n{} typed rules, each enforced by a function and violated by a "
             "test:\n",
    program.file_name, program.name, sha256_hex(program.text), rules.size());
  for (const auto& rule : rules)
    fmt::print("\n{}\n  says      {}\n  enforced  {}\n  test      {}\n", rule.name, rule.says,
      rule.enforced_by, rule.violated_by);
  const auto offered = std::count_if(program.cards.begin(), program.cards.end(),
    [](const auto& card) { return card.withheld.empty(); });
  fmt::print("\n{} strategy cards, {} of them offered:\n", program.cards.size(), offered);
  for (const auto& card : program.cards) {
    std::string why = card.withheld;
    std::replace(why.begin(), why.end(), '\n', ';');
    fmt::print("  {}:{} {} (problem {}){}\n", program.file_name, card.line, card.id, card.problem,
      why.empty() ? "" : "; NOT OFFERED, its example breaks a rule: " + why);
  }
  fmt::print("\n{} sentences that name no typed rule, so advisory: read by the model, enforced by "
             "nobody:\n",
    program.advisory.size());
  for (const auto& each : program.advisory)
    fmt::print("  {}:{} [{}] {}\n", program.file_name, each.line, each.section, each.text);
}

exit_code program_check_command(const std::string& file, bool json) {
  const auto program =
    file.empty() ? parse_program(default_program_text(), "program.md") : load_program(file);
  if (!program)
    return complain(program.error());
  if (json)
    print_rules_as_json(*program);
  else
    print_text(*program);
  return exit_code::ok;
}

} // namespace

void add_program_check_verb(CLI::App& root, verbs& all) {
  struct flags {
    std::string file;
    bool json = false;
  };
  auto* app = verb_group(root, "program", "protocol files")
                .add_subcommand("check",
                  "which rules a protocol file has, who enforces each, and what is only advice");
  auto given = std::make_shared<flags>();
  app->add_option("file", given->file, "a protocol file; default: the one that comes along");
  app->add_flag("--json", given->json, "as JSON");
  all.push_back({app, [given] { return program_check_command(given->file, given->json); }});
}

void add_program_show_verb(CLI::App& root, verbs& all) {
  auto* app = verb_group(root, "program", "protocol files")
                .add_subcommand("show", "print the protocol file that comes along, to be edited");
  all.push_back({app, [] {
                   const auto text = default_program_text();
                   std::fwrite(text.data(), 1, text.size(), stdout);
                   return exit_code::ok;
                 }});
}

} // namespace gristmill
