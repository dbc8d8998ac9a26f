#include "simulation/replay/replay.hpp"
#include "cli/new_file.hpp"
#include "cli/verb.hpp"
#include "journal/event_line.hpp"
#include "protocol/duration_text.hpp"
#include "simulation/replay/trace_file.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

namespace gristmill {

namespace {

struct replay_arguments {
  std::string journal;
  std::vector<std::string> policies;
  std::string out;
  std::string out_journal;
  std::string until;
  bool json = false;
  bool check = false;
};

/// Tried where nobody asks for others.
const char* const usual_policies[] = {"fifo", "stride", "sept(ageing=0.2)"};

exit_code check_journal(const replay_arguments& a, const lease_trace_limits& limits) {
  auto found = check_lease_trace(a.journal, limits);
  if (!found)
    return complain(found.error());
  const auto& t = found->trace;
  if (a.json) {
    nlohmann::json root{{"schema", "gristmill.replay-check/1"}, {"sound", found->faults_total == 0},
      {"faults", found->faults}, {"faults_total", found->faults_total}, {"lines", t.lines},
      {"requests", t.requests.size()}, {"grants", t.grants.size()}, {"gpus", t.gpus.size()},
      {"agents", t.agents.size()}, {"lease_policy", t.policy}, {"notes", t.notes}};
    std::puts(root.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  } else {
    for (const auto& fault : found->faults)
      std::puts(fault.c_str());
    if (found->faults_total > found->faults.size())
      std::puts(fmt::format("and {} more", found->faults_total - found->faults.size()).c_str());
    for (const auto& note : t.notes)
      std::puts(("note: " + note).c_str());
    std::puts(fmt::format("{}: {} lines, {} requests, {} grants, {} agents, {} GPUs: {}", a.journal,
      t.lines, t.requests.size(), t.grants.size(), t.agents.size(), t.gpus.size(),
      found->faults_total == 0 ? "sound" : fmt::format("{} faults", found->faults_total))
                .c_str());
  }
  return found->faults_total == 0 ? exit_code::ok : exit_code::usage;
}

exit_code replay_command(const replay_arguments& a) {
  lease_trace_limits limits;
  if (!a.until.empty()) {
    auto until = parse_duration_ns(a.until);
    if (!until || *until == 0 || *until > INT64_MAX)
      return complain({errc::invalid_input,
        "--until " + a.until + ": must be a time above 0 such as 90s, 10m or 1.5h"});
    limits.until = std::chrono::nanoseconds{static_cast<int64_t>(*until)};
  }
  if (a.check) {
    if (!a.policies.empty() || !a.out.empty() || !a.out_journal.empty())
      return complain({errc::invalid_input,
        "--check only reads: it goes with neither --policy, --out nor --journal"});
    return check_journal(a, limits);
  }
  auto trace = read_lease_trace(a.journal, limits);
  if (!trace)
    return complain(trace.error());
  replay_options options;
  options.policies = a.policies;
  if (a.policies.empty())
    options.policies.assign(std::begin(usual_policies), std::end(usual_policies));
  std::optional<new_file> journal;
  std::optional<new_file> report;
  for (auto [path, file] : {std::pair{&a.out_journal, &journal}, std::pair{&a.out, &report}}) {
    if (path->empty())
      continue;
    auto created = new_file::create(*path);
    if (!created)
      return complain(created.error());
    file->emplace(std::move(*created));
  }
  if (journal)
    options.journal = [&](event&& e) { journal->write(canonical_line(e) + "\n"); };
  auto done = replay_trace(*trace, options);
  if (!done)
    return complain({done.error().code, a.journal + ": " + done.error().what});
  if (report)
    report->write(to_json(*done));
  for (auto* file : {&report, &journal})
    if (*file)
      if (auto written = (*file)->finish(); !written)
        return complain(written.error());
  std::fputs((a.json ? to_json(*done) : to_text(*done)).c_str(), stdout);
  return exit_code::ok;
}

} // namespace

void add_replay_verb(CLI::App& root, verbs& all) {
  auto* app = root.add_subcommand(
    "replay", "play the leases of a recorded run again, under its own policy and under others");
  auto a = std::make_shared<replay_arguments>();
  app
    ->add_option("journal", a->journal,
      "run directory, state folder of a broker, or a journal of leases as JSONL")
    ->required();
  app
    ->add_option("--policy", a->policies,
      "a lease policy to replay under, besides the recorded one; may be given several times")
    ->expected(1)
    ->allow_extra_args(false)
    ->take_all();
  app->add_option("--out", a->out, "also write the result as JSON to this new file");
  app->add_option(
    "--journal", a->out_journal, "write the leases of the first replay to this new file");
  app->add_option("--until", a->until, "read only up to this time of the journal, such as 2h");
  app->add_flag("--json", a->json, "the result as JSON");
  app->add_flag("--check", a->check, "only say what is wrong with the journal");
  all.push_back({app, [a] { return replay_command(*a); }});
}

} // namespace gristmill
