#include "cli/new_file.hpp"
#include "cli/sanitizer_evidence.hpp"
#include "cli/stored_evidence.hpp"
#include "cli/verb.hpp"
#include "protocol/json_document.hpp"
#include "scoring/verdict.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <set>

namespace gristmill {

namespace {

struct rescore_arguments {
  std::string run;
  std::string write;
  bool json = false;
};

/// A verdict judged again.
struct rescored {
  const stored_verdict* was = nullptr;
  verdict now;
  /// What is different, in words; empty when nothing is.
  std::vector<std::string> changes;
};

using rule_names = std::set<std::string>;

rule_names names_of(const std::vector<finding>& findings) {
  rule_names out;
  for (const auto& f : findings)
    out.insert(f.workload.empty() ? f.rule : f.rule + " on " + f.workload);
  return out;
}

void compare(std::vector<std::string>& changes, const rule_names& was, const rule_names& now,
  const char* more, const char* less) {
  for (const auto& each : now)
    if (!was.contains(each))
      changes.push_back(fmt::format("{} {}", more, each));
  for (const auto& each : was)
    if (!now.contains(each))
      changes.push_back(fmt::format("{} {}", less, each));
}

rescored judge_again(const stored_verdict& was, const evidence& seen) {
  rescored out;
  out.was = &was;
  out.now = decide(seen).decided;
  const auto status = to_string(out.now.status);
  if (status != was.status)
    out.changes.push_back(fmt::format("{} -> {}", was.status, status));
  if (out.now.objective_ns != was.objective_ns)
    out.changes.push_back(
      fmt::format("objective {} -> {} ns", was.objective_ns, out.now.objective_ns));
  rule_names need_audit;
  for (const auto& w : out.now.workloads)
    if (w.needs_audit)
      need_audit.insert(w.uuid);
  compare(out.changes, rule_names(was.need_audit.begin(), was.need_audit.end()), need_audit,
    "now needs an audit:", "needs no audit any more:");
  compare(out.changes, names_of(was.findings), names_of(out.now.findings),
    "now found:", "not found any more:");
  return out;
}

ordered_json to_json(const rescored& one) {
  auto findings = ordered_json::array();
  for (const auto& f : one.now.findings)
    findings.push_back(
      {{"rule", f.rule}, {"workload", f.workload}, {"detail", f.detail}, {"fatal", f.fatal}});
  auto need_audit = ordered_json::array();
  for (const auto& w : one.now.workloads)
    if (w.needs_audit)
      need_audit.push_back(w.uuid);
  return {{"seq", one.was->seq}, {"kind", one.was->kind}, {"attempt", one.was->attempt},
    {"candidate", one.was->candidate}, {"evidence", one.was->evidence_sha256},
    {"was", {{"status", one.was->status}, {"objective_ns", one.was->objective_ns}}},
    {"now",
      {{"status", to_string(one.now.status)}, {"objective_ns", one.now.objective_ns},
        {"speedup", double(one.now.speedup)}, {"sol_score", double(one.now.sol_score)},
        {"need_audit", need_audit}, {"findings", findings}, {"reason", one.now.reason}}},
    {"changes", one.changes}};
}

std::string line_of(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

exit_code rescore_command(const rescore_arguments& arguments) {
  auto verdicts = read_verdicts(arguments.run);
  if (!verdicts)
    return complain(verdicts.error());
  std::vector<rescored> all;
  size_t without = 0;
  for (const auto& each : verdicts->all) {
    if (each.evidence_sha256.empty()) {
      ++without;
      continue;
    }
    auto seen = read_evidence(verdicts->blobs, each);
    if (!seen)
      return complain(seen.error());
    all.push_back(judge_again(each, with_records(std::move(*seen), verdicts->sanitizer)));
  }
  // After everything could be read, so that nothing half is left behind.
  if (!arguments.write.empty()) {
    auto file = new_file::create(arguments.write);
    if (!file)
      return complain(file.error());
    for (const auto& each : all)
      file->write(line_of(to_json(each)));
    if (auto done = file->finish(); !done)
      return complain(done.error());
  }
  const auto changed = static_cast<size_t>(
    std::count_if(all.begin(), all.end(), [](const rescored& r) { return !r.changes.empty(); }));
  std::string text;
  if (arguments.json) {
    auto changes = ordered_json::array();
    for (const auto& each : all)
      if (!each.changes.empty())
        changes.push_back(to_json(each));
    text = line_of({{"schema", "gristmill.rescore/1"}, {"judged_again", all.size()},
      {"without_evidence", without}, {"changed", changes}});
  } else {
    for (const auto& each : all)
      if (!each.changes.empty())
        text += fmt::format("{} ({}, event {}): {}\n", each.was->attempt, each.was->kind,
          each.was->seq, fmt::join(each.changes, "; "));
    text +=
      fmt::format("{} verdicts judged again by the rules of this program, {} come out otherwise",
        all.size(), changed);
    if (without > 0)
      text += fmt::format("; {} have no evidence, because the compiler refused the candidate or "
                          "the run is older than evidence, and stay as they are",
        without);
    text += "\n";
    if (all.empty())
      text += "nothing of this run can be judged again\n";
  }
  std::fputs(text.c_str(), stdout);
  return changed == 0 ? exit_code::ok : exit_code::differs;
}

} // namespace

void add_rescore_verb(CLI::App& root, verbs& all) {
  auto* app = root.add_subcommand(
    "rescore", "judge the evidence of a run again by the rules of this program");
  auto arguments = std::make_shared<rescore_arguments>();
  app->add_option("run", arguments->run, "run directory, which is not changed")->required();
  app->add_option("--write", arguments->write,
    "also write every verdict as it comes out now to this new file, one JSON object a line");
  app->add_flag("--json", arguments->json, "as JSON");
  all.push_back({app, [arguments] { return rescore_command(*arguments); }});
}

} // namespace gristmill
