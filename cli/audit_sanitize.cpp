#include "cli/audit_sanitize.hpp"

#include "cli/audit_text.hpp"
#include "cli/baseline_lease.hpp"
#include "cli/read_run.hpp"
#include "cli/sanitize_bench.hpp"
#include "cli/sanitizer_evidence.hpp"
#include "cli/scratch_folder.hpp"
#include "cli/stored_evidence.hpp"
#include "protocol/duration_text.hpp"
#include "protocol/json_document.hpp"
#include "protocol/nearest.hpp"
#include "protocol/sanitizer_record.hpp"
#include "scoring/sanitizer_report.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <map>
#include <optional>

namespace gristmill {

namespace {

namespace fs = std::filesystem;
using std::chrono::nanoseconds;

/// What a lease takes besides the look itself.
constexpr std::chrono::seconds lease_room{30};

/// Everything that was asked for, looked up.
struct sanitize_plan {
  std::vector<sanitizer_tool> tools;
  nanoseconds limit{0};
  /// None where the interpreter looks by itself.
  std::optional<sanitizer_program> program;
  /// Newest evidence of each candidate.
  std::vector<evidence> targets;
};

result<std::vector<std::string>> incumbents_of(const fs::path& run) {
  auto back = read_run(run);
  if (!back)
    return pass(back);
  std::vector<std::string> out;
  for (const auto& row : back->table.problems)
    if (!row.best_candidate.empty()
      && std::find(out.begin(), out.end(), row.best_candidate) == out.end())
      out.push_back(row.best_candidate);
  if (out.empty())
    return fail(errc::not_found, run.string() + ": the run has no incumbent yet");
  return out;
}

result<std::vector<evidence>> targets_of(
  const sanitize_arguments& arguments, const stored_verdicts& verdicts) {
  std::vector<std::string> wanted;
  if (arguments.attempt.empty()) {
    auto found = incumbents_of(arguments.run);
    if (!found)
      return pass(found);
    wanted = std::move(*found);
  }
  std::vector<std::string> known;
  std::map<std::string, const stored_verdict*> newest;
  for (const auto& each : verdicts.all) {
    if (each.evidence_sha256.empty())
      continue;
    if (std::find(known.begin(), known.end(), each.attempt) == known.end())
      known.push_back(each.attempt);
    newest[arguments.attempt.empty() ? each.candidate : each.attempt] = &each;
  }
  if (!arguments.attempt.empty())
    wanted.push_back(arguments.attempt);
  std::vector<evidence> out;
  for (const auto& name : wanted) {
    const auto found = newest.find(name);
    if (found == newest.end())
      return fail(errc::not_found,
        fmt::format("{}: no evidence is kept of {} {}{}", arguments.run,
          arguments.attempt.empty() ? "candidate" : "attempt", name,
          arguments.attempt.empty() ? "" : suggestion(name, known)));
    auto seen = read_evidence(verdicts.blobs, *found->second);
    if (!seen)
      return pass(seen);
    out.push_back(std::move(*seen));
  }
  return out;
}

result<sanitize_plan> plan_of(
  const sanitize_arguments& arguments, const stored_verdicts& verdicts) {
  sanitize_plan out;
  auto tools = read_sanitizer_tools(arguments.tools);
  if (!tools)
    return pass(tools);
  out.tools = std::move(*tools);
  const auto limit = parse_duration_ns(arguments.limit);
  if (!limit || *limit == 0 || *limit > uint64_t{3600} * 1'000'000'000)
    return fail(
      errc::invalid_input, "--limit " + arguments.limit + ": a time such as 60s, at most 1h");
  out.limit = nanoseconds(static_cast<int64_t>(*limit));
  auto targets = targets_of(arguments, verdicts);
  if (!targets)
    return pass(targets);
  out.targets = std::move(*targets);
  if (arguments.gpus.starts_with("mock") && arguments.program.empty())
    return out;
  auto program = find_sanitizer(arguments.program);
  if (!program)
    return pass(program);
  out.program = std::move(*program);
  return out;
}

std::string now_text() {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
}

/// One look, under a lease where there is a device to share.
sanitizer_look look_under_lease(const sanitize_plan& plan, sanitizer_tool tool,
  const sanitize_target& target, const std::optional<baseline_leases>& leases) {
  const auto* program = plan.program ? &*plan.program : nullptr;
  if (!leases)
    return look_with(program, tool, target.what);
  auto lease = leases->acquire("sanitize " + to_string(tool), plan.limit + lease_room);
  if (!lease) {
    sanitizer_look out;
    out.tool = tool;
    out.why = "no lease: " + lease.error().what;
    return out;
  }
  auto out = look_with(program, tool, target.what);
  (void)lease->release(
    out.end == look_end::did_not_look ? lease_outcome::fault : lease_outcome::fine, "looked");
  return out;
}

/// The tool's own texts into the folder that the user named: for people.
void copy_texts(const sanitize_arguments& arguments, sanitizer_tool tool,
  const sanitize_target& target, const evidence& of, sanitizer_look& look) {
  if (arguments.reports.empty())
    return;
  std::error_code error;
  for (const auto& from : texts_of(tool, target.what)) {
    auto name = to_string(of.attempt) + "-" + from.filename().string();
    std::replace(name.begin(), name.end(), '/', '-');
    if (fs::exists(from, error))
      fs::copy_file(
        from, fs::path(arguments.reports) / name, fs::copy_options::overwrite_existing, error);
    if (error)
      look.notes.push_back("--reports: " + name + ": " + error.message());
  }
}

sanitizer_record look_at(const sanitize_arguments& arguments, const sanitize_plan& plan,
  sanitize_bench& bench, const evidence& of, const std::optional<baseline_leases>& leases) {
  sanitizer_record out;
  out.attempt = to_string(of.attempt);
  out.candidate = of.candidate.hash;
  out.device = bench.device_title();
  out.program = plan.program ? plan.program->version
                             : "the checks of the interpreter of gristmill " GRISTMILL_VERSION;
  out.jail = jail_of(plan.program ? &*plan.program : nullptr);
  out.at = now_text();
  auto target = bench.prepare(of);
  if (target) {
    target->what.limit = plan.limit;
    target->what.limit_text = arguments.limit;
    out.same_code = target->same_code;
    out.workloads = target->workloads;
  }
  for (const auto tool : plan.tools) {
    sanitizer_look look;
    look.tool = tool;
    if (target) {
      look = look_under_lease(plan, tool, *target, leases);
      copy_texts(arguments, tool, *target, of, look);
    } else {
      look.why = target.error().what;
    }
    out.looks.push_back(std::move(look));
  }
  return out;
}

exit_code code_of(const std::vector<sanitizer_record>& records) {
  auto out = exit_code::ok;
  for (const auto& record : records)
    for (const auto& look : record.looks) {
      if (look.end == look_end::found)
        return exit_code::not_sound;
      if (look.end == look_end::did_not_look)
        out = exit_code::failure;
    }
  return out;
}

void print(const std::vector<sanitizer_record>& records, bool json) {
  std::string text;
  if (json) {
    auto all = ordered_json::array();
    for (const auto& record : records)
      all.push_back(ordered_json::parse(to_json(record)));
    text = ordered_json{{"schema", "gristmill.sanitize/1"}, {"records", std::move(all)}}.dump(
             2, ' ', false, ordered_json::error_handler_t::replace)
      + "\n";
  } else {
    for (const auto& record : records)
      text += audit_text(record);
  }
  std::fputs(text.c_str(), stdout);
}

} // namespace

exit_code sanitize_command(const sanitize_arguments& arguments) {
  auto directory = open_run(arguments.run);
  if (!directory)
    return complain(directory.error());
  auto verdicts = read_verdicts(arguments.run);
  if (!verdicts)
    return complain(verdicts.error());
  auto plan = plan_of(arguments, *verdicts);
  if (!plan)
    return complain(plan.error());
  auto events = read_events(arguments.run);
  if (!events)
    return complain(events.error());
  auto beginning = read_beginning(*events);
  if (!beginning)
    return complain(beginning.error());
  auto settings = read_settings(*directory);
  if (!settings)
    return complain(settings.error());
  if (std::error_code error; !arguments.reports.empty()) {
    fs::create_directories(arguments.reports, error);
    if (error)
      return complain(
        {errc::invalid_input, "--reports " + arguments.reports + ": " + error.message()});
  }
  auto scratch = scratch_folder::create("gristmill-sanitize-");
  if (!scratch)
    return complain(scratch.error());
  auto bench = sanitize_bench::open(
    *settings, *beginning, verdicts->blobs, arguments.gpus, scratch->path() / "bench");
  if (!bench)
    return complain(bench.error());
  std::optional<baseline_leases> leases;
  if ((*bench)->is_real()) {
    auto opened = baseline_leases::open(arguments.gpus, arguments.socket, scratch->path().string());
    if (!opened)
      return complain(opened.error());
    leases.emplace(std::move(*opened));
  }
  std::vector<sanitizer_record> records;
  for (const auto& each : plan->targets) {
    records.push_back(look_at(arguments, *plan, **bench, each, leases));
    // After each: what was seen stays when a later one is cut off.
    if (auto kept = keep_record(directory->root(), records.back()); !kept)
      return complain(kept.error());
  }
  print(records, arguments.json);
  return code_of(records);
}

} // namespace gristmill
