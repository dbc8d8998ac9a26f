#include "cli/read_run.hpp"
#include "cli/verb.hpp"
#include "journal/event_line.hpp"
#include "journal/log_check.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fmt/format.h>
#include <memory>

namespace gristmill {

namespace {

exit_code log_verify_command(const std::string& run) {
  auto events = read_events(run);
  if (!events)
    return complain(events.error());
  auto found = check_log(*events);
  constexpr size_t shown_max = 20;
  size_t shown = 0;
  for (const auto& f : found.faults) {
    if (++shown > shown_max)
      break;
    if (f.seq == 0) {
      std::fputs(fmt::format("{}: {}\n", run, f.what).c_str(), stdout);
      continue;
    }
    auto e = std::find_if(
      events->begin(), events->end(), [&](const event& each) { return each.seq == f.seq; });
    std::fputs(fmt::format("{}: event {} ({}): {}\n", run, f.seq, e->kind, f.what).c_str(), stdout);
  }
  if (found.faults.size() > shown_max)
    std::printf("and %zu more\n", found.faults.size() - shown_max);
  auto state = found.ended ? std::string{"the run has ended"}
                           : fmt::format("the run goes on or was killed; {} leases and {} attempts "
                                         "are open",
                             found.open_leases, found.open_attempts);
  std::fputs(
    fmt::format("{} events, {} verdicts, {} leases; {}\ndigest {}\n{}\n", found.events,
      found.verdicts, found.leases, state, digest(*events),
      found.faults.empty() ? "the log is sound" : fmt::format("{} faults", found.faults.size()))
      .c_str(),
    stdout);
  return found.faults.empty() ? exit_code::ok : exit_code::not_sound;
}

} // namespace

void add_log_verify_verb(CLI::App& root, verbs& all) {
  auto* app = verb_group(root, "log", "the event log of a run")
                .add_subcommand("verify", "hold the log against what must be true of every log");
  auto run = std::make_shared<std::string>();
  app->add_option("run", *run, "run directory")->required();
  all.push_back({app, [run] { return log_verify_command(*run); }});
}

} // namespace gristmill
