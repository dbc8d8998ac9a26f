#include "cli/audit_text.hpp"
#include "cli/stored_evidence.hpp"
#include "cli/verb.hpp"
#include "protocol/evidence.hpp"
#include "protocol/json_document.hpp"
#include "protocol/nearest.hpp"
#include "scoring/verdict.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <memory>

namespace gristmill {

namespace {

struct audit_arguments {
  std::string run;
  std::string attempt;
  bool json = false;
};

result<std::vector<stored_verdict>> verdicts_of(
  const stored_verdicts& all, const std::string& attempt) {
  std::vector<stored_verdict> out;
  std::vector<std::string> known;
  for (const auto& each : all.all) {
    if (each.attempt == attempt)
      out.push_back(each);
    if (std::find(known.begin(), known.end(), each.attempt) == known.end())
      known.push_back(each.attempt);
  }
  if (out.empty())
    return fail(errc::not_found,
      fmt::format("the run has no verdict on attempt {}{}", attempt,
        known.empty() ? "; it has none at all" : suggestion(attempt, known)));
  return out;
}

ordered_json to_json(const stored_verdict& was, const evidence* seen, const std::string& text) {
  ordered_json out{{"seq", was.seq}, {"kind", was.kind}, {"attempt", was.attempt},
    {"candidate", was.candidate}, {"status", was.status}, {"objective_ns", was.objective_ns},
    {"reason", was.reason}, {"evidence_sha256", was.evidence_sha256}};
  if (seen == nullptr)
    return out;
  const auto now = decide(*seen);
  auto& rules = out["rules"] = ordered_json::array();
  for (const auto& each : now.accounts)
    rules.push_back({{"rule", each.rule}, {"level", to_string(each.level)},
      {"workload", each.workload}, {"fired", each.fired}, {"said", each.said}});
  out["status_today"] = to_string(now.decided.status);
  out["evidence"] = ordered_json::parse(text);
  return out;
}

exit_code audit_command(const audit_arguments& arguments) {
  auto verdicts = read_verdicts(arguments.run);
  if (!verdicts)
    return complain(verdicts.error());
  auto chosen = verdicts_of(*verdicts, arguments.attempt);
  if (!chosen)
    return complain({chosen.error().code, arguments.run + ": " + chosen.error().what});
  std::string text;
  auto json = ordered_json::array();
  for (size_t i = 0; i < chosen->size(); ++i) {
    const auto& each = (*chosen)[i];
    if (each.evidence_sha256.empty()) {
      text += audit_text(each, i + 1, chosen->size());
      json.push_back(to_json(each, nullptr, {}));
      continue;
    }
    auto seen = read_evidence(verdicts->blobs, each);
    if (!seen)
      return complain(seen.error());
    auto stored = gristmill::to_json(*seen);
    if (!stored)
      return complain(stored.error());
    text += audit_text(each, i + 1, chosen->size()) + audit_text(*seen);
    json.push_back(to_json(each, &*seen, *stored));
  }
  if (arguments.json)
    text = ordered_json{{"schema", "gristmill.audit/1"}, {"verdicts", json}}.dump(
             2, ' ', false, ordered_json::error_handler_t::replace)
      + "\n";
  std::fputs(text.c_str(), stdout);
  return exit_code::ok;
}

} // namespace

void add_audit_verb(CLI::App& root, verbs& all) {
  auto* app = root.add_subcommand(
    "audit", "show what a verdict rests on: what was measured and how, and what each rule saw");
  auto arguments = std::make_shared<audit_arguments>();
  app->add_option("run", arguments->run, "run directory")->required();
  app->add_option("attempt", arguments->attempt, "attempt, PROBLEM/LANGUAGE/NUMBER")->required();
  app->add_flag("--json", arguments->json, "as JSON, with the whole evidence");
  all.push_back({app, [arguments] { return audit_command(*arguments); }});
}

} // namespace gristmill
