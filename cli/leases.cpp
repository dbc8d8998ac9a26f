#include "cli/lease_log.hpp"
#include "cli/read_run.hpp"
#include "cli/verb.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>

namespace gristmill {

namespace {

/// Time since the start of a run whose last event is `last`.
std::chrono::nanoseconds now_in_run(const event& last) {
  auto wall = std::chrono::duration_cast<std::chrono::nanoseconds>(
    std::chrono::system_clock::now().time_since_epoch())
                .count();
  return last.t + std::chrono::nanoseconds{std::max<int64_t>(wall - last.wall, 0)};
}

exit_code leases_command(const std::string& run, bool json) {
  auto events = read_events(run);
  if (!events)
    return complain(events.error());
  auto log = read_lease_log(
    *events, events->empty() ? std::chrono::nanoseconds{0} : now_in_run(events->back()));
  if (!log)
    return complain({log.error().code, run + ": " + log.error().what});
  std::fputs((json ? to_json(*log) : to_text(*log)).c_str(), stdout);
  return exit_code::ok;
}

} // namespace

void add_leases_verb(CLI::App& root, verbs& all) {
  auto* app = root.add_subcommand(
    "leases", "who holds, who waits, and what the lease broker of a run has done");
  auto run = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  app->add_option("run", *run, "run directory, of a run that goes on or is over")->required();
  app->add_flag("--json", *json, "the same as JSON");
  all.push_back({app, [run, json] { return leases_command(*run, *json); }});
}

} // namespace gristmill
