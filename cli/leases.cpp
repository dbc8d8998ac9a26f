#include "cli/lease_log.hpp"
#include "cli/read_run.hpp"
#include "cli/verb.hpp"
#include "protocol/nearest.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>

namespace gristmill {

namespace {

namespace fs = std::filesystem;

/// Runs beside the folder that was named, and those in the usual place.
std::vector<std::string> runs_near(const fs::path& folder) {
  std::vector<std::string> out;
  for (const auto& place :
    {folder.parent_path().empty() ? fs::path(".") : folder.parent_path(), fs::path("runs")}) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(place, error)) {
      std::error_code ignored;
      if (fs::exists(entry.path() / "run.db", ignored))
        out.push_back(entry.path().lexically_normal().string());
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

/// Time since the start of a run whose last event is `last`.
std::chrono::nanoseconds now_in_run(const event& last) {
  auto wall = std::chrono::duration_cast<std::chrono::nanoseconds>(
    std::chrono::system_clock::now().time_since_epoch())
                .count();
  return last.t + std::chrono::nanoseconds{std::max<int64_t>(wall - last.wall, 0)};
}

exit_code leases_command(const std::string& run, bool json) {
  auto events = read_events(run);
  if (!events) {
    auto told = events.error();
    if (told.code == errc::not_found)
      told.what += suggestion(fs::path(run).lexically_normal().string(), runs_near(run));
    return complain(told);
  }
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
