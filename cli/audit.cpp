#include "cli/audit_sanitize.hpp"
#include "cli/audit_text.hpp"
#include "cli/sanitizer_evidence.hpp"
#include "cli/stored_evidence.hpp"
#include "cli/verb.hpp"
#include "protocol/evidence.hpp"
#include "protocol/json_document.hpp"
#include "protocol/nearest.hpp"
#include "protocol/sanitizer_record.hpp"
#include "scoring/verdict.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <memory>

namespace gristmill {

namespace {

struct audit_arguments {
  bool incumbents = false;
  bool sanitize = false;
  /// Of a look by compute-sanitizer; run, attempt and form are those of the verb.
  sanitize_arguments look;
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

ordered_json to_json(const stored_verdict& was, const evidence* seen, const std::string& text,
  const std::vector<sanitizer_record>& records) {
  ordered_json out{{"seq", was.seq}, {"kind", was.kind}, {"attempt", was.attempt},
    {"candidate", was.candidate}, {"status", was.status}, {"objective_ns", was.objective_ns},
    {"reason", was.reason}, {"evidence_sha256", was.evidence_sha256}};
  if (seen == nullptr)
    return out;
  auto& looks = out["sanitizer"] = ordered_json::array();
  for (const auto& each : records_of(records, was.candidate))
    looks.push_back(ordered_json::parse(gristmill::to_json(each)));
  const auto now = decide(with_records(*seen, records));
  auto& rules = out["rules"] = ordered_json::array();
  for (const auto& each : now.accounts)
    rules.push_back({{"rule", each.rule}, {"level", to_string(each.level)},
      {"workload", each.workload}, {"fired", each.fired}, {"said", each.said}});
  out["status_today"] = to_string(now.decided.status);
  out["evidence"] = ordered_json::parse(text);
  return out;
}

exit_code show_command(const sanitize_arguments& arguments) {
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
      json.push_back(to_json(each, nullptr, {}, {}));
      continue;
    }
    auto seen = read_evidence(verdicts->blobs, each);
    if (!seen)
      return complain(seen.error());
    auto stored = gristmill::to_json(*seen);
    if (!stored)
      return complain(stored.error());
    text += audit_text(each, i + 1, chosen->size())
      + audit_text(with_records(*seen, verdicts->sanitizer));
    json.push_back(to_json(each, &*seen, *stored, verdicts->sanitizer));
  }
  for (const auto& each : records_of(verdicts->sanitizer, chosen->back().candidate))
    text += "\n" + audit_text(each);
  if (arguments.json)
    text = ordered_json{{"schema", "gristmill.audit/1"}, {"verdicts", json}}.dump(
             2, ' ', false, ordered_json::error_handler_t::replace)
      + "\n";
  std::fputs(text.c_str(), stdout);
  return exit_code::ok;
}

exit_code audit_command(const audit_arguments& arguments) {
  const auto& look = arguments.look;
  if (arguments.incumbents && !look.attempt.empty())
    return complain({errc::invalid_input,
      "--incumbents: either all of them or one attempt, and " + look.attempt + " is named"});
  if (arguments.sanitize) {
    if (look.gpus.empty())
      return complain({errc::invalid_input,
        "--sanitize: --gpus is missing: the device to call the candidate on, such as cuda:0 or "
        "mock:h200"});
    return sanitize_command(look);
  }
  if (!look.gpus.empty() || !look.program.empty() || arguments.incumbents)
    return complain({errc::invalid_input,
      "--gpus, --sanitizer-program and --incumbents belong to --sanitize, which is missing"});
  if (look.attempt.empty())
    return complain({errc::invalid_input,
      "audit: ATTEMPT is missing, PROBLEM/LANGUAGE/NUMBER; only --sanitize does without"});
  return show_command(look);
}

} // namespace

void add_audit_verb(CLI::App& root, verbs& all) {
  auto* app = root.add_subcommand(
    "audit", "show what a verdict rests on: what was measured and how, and what each rule saw");
  auto arguments = std::make_shared<audit_arguments>();
  auto& look = arguments->look;
  app->add_option("run", look.run, "run directory")->required();
  app->add_option("attempt", look.attempt, "attempt, PROBLEM/LANGUAGE/NUMBER");
  app->add_flag("--json", look.json, "as JSON, with the whole evidence");
  auto* sanitize = app->add_option("--sanitize", look.tools,
    "instead call the attempt's candidate, or the incumbents, once under compute-sanitizer and "
    "keep "
    "what it says with the run: memcheck,racecheck,synccheck,initcheck; all without names");
  sanitize->expected(0, 1);
  app->add_flag("--incumbents", arguments->incumbents, "the incumbents, as without an attempt");
  app->add_option("--gpus", look.gpus, "where: one device, cuda:0 or mock:h200");
  app->add_option("--sanitizer-program", look.program, "compute-sanitizer, where it is not found");
  app->add_option("--limit", look.limit, "longest time of one tool on one candidate");
  app->add_option("--reports", look.reports, "a folder for the tools' own texts");
  app->add_option("--socket", look.socket, "of the broker that gives leases of a GPU");
  all.push_back({app, [arguments, sanitize] {
                   arguments->sanitize = sanitize->count() > 0;
                   return audit_command(*arguments);
                 }});
}

} // namespace gristmill
