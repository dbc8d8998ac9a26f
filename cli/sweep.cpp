#include "cli/lab_session.hpp"
#include "cli/verb.hpp"
#include "simulation/lab.hpp"
#include "simulation/report/lab_page.hpp"
#include "simulation/report/lab_summary.hpp"
#include "simulation/report/lab_trace.hpp"
#include "simulation/sweep/sweep_file.hpp"
#include "simulation/sweep/sweep_folder.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <memory>
#include <sstream>

namespace gristmill {

namespace {

namespace fs = std::filesystem;

/// Of the Gantt chart of the report.
constexpr double gantt_minutes = 60;

struct sweep_arguments {
  std::string file;
  std::string out;
  uint32_t jobs = 0;
  bool json = false;
};

result<std::string> text_of(const std::string& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error))
    return fail(errc::not_found, file + ": is no file");
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in)
    return fail(errc::io_failed, file + ": cannot be read");
  return std::move(text).str();
}

/// The first minutes of the first seed of the first variant.
result<std::vector<event>> first_minutes(const lab_plan& plan) {
  std::vector<event> out;
  auto ran = run_with_events(
    plan.variants.front(), plan.first_seed, plan.engine, run_lab, [&out](event&& e) {
      const bool inside = std::chrono::duration<double>(e.t).count() <= gantt_minutes * 60
        && out.size() < window_events_max;
      if (inside)
        out.push_back(for_timeline(std::move(e)));
      return inside;
    });
  if (!ran && ran.error().code != errc::shutting_down)
    return pass(ran);
  return out;
}

result<void> write_report(const sweep_folder& folder, const lab_plan& plan,
  const lab_summary& summary, const std::vector<lab_row>& rows, const lab_identity& who) {
  auto events = first_minutes(plan);
  if (!events)
    return pass(events);
  auto page = to_html({plan, summary, rows, who, *events, gantt_minutes});
  if (!page)
    return pass(page);
  for (const auto& [name, text] : {std::pair{"summary.csv", summary_csv(plan, summary)},
         std::pair{"differences.csv", differences_csv(plan, summary)},
         std::pair{"report.html", *page}})
    if (auto written = folder.write(name, text); !written)
      return written;
  return {};
}

exit_code sweep_command(const sweep_arguments& arguments) {
  auto text = text_of(arguments.file);
  if (!text)
    return complain(text.error());
  auto wishes = sweep_from_toml(*text, arguments.file, fs::path(arguments.file).parent_path());
  if (!wishes)
    return complain(wishes.error());
  const auto of_file = [&](const failure& what) {
    return complain({what.code, arguments.file + ": " + what.what});
  };
  auto plan = make_plan(*wishes);
  if (!plan)
    return of_file(plan.error());
  if (auto fine = check_plan(*plan, run_lab); !fine)
    return of_file(fine.error());
  const auto who = this_program();
  auto folder = sweep_folder::open(arguments.out, *plan, *text, who);
  if (!folder)
    return complain(folder.error());
  auto rows = folder->rows();
  if (!rows.empty())
    std::fprintf(stderr, "gristmill: %s: %zu of %llu runs are there already\n",
      arguments.out.c_str(), rows.size(), static_cast<unsigned long long>(plan->runs()));
  auto ran =
    run_with_progress(*plan, folder->have(), arguments.jobs, [&](lab_row&& row) -> result<void> {
      auto kept = folder->append(row);
      rows.push_back(std::move(row));
      return kept;
    });
  if (!ran)
    return complain_or_interrupted({ran.error().code,
      ran.error().code == errc::shutting_down
        ? fmt::format("interrupted: {} of {} runs are in {}; the same command goes on", rows.size(),
          plan->runs(), arguments.out)
        : ran.error().what});
  sort_rows(rows);
  if (auto finished = folder->finish(rows); !finished)
    return complain(finished.error());
  auto summary = summarise(*plan, rows);
  if (!summary)
    return complain(summary.error());
  if (auto written = write_report(*folder, *plan, *summary, rows, who); !written)
    return complain(written.error());
  const auto out =
    arguments.json ? to_json(*plan, *summary, rows, who) : to_text(*plan, *summary, who);
  std::fputs(out.c_str(), stdout);
  std::fprintf(
    stderr, "gristmill: %s: results, summary and report.html are written\n", arguments.out.c_str());
  return exit_code::ok;
}

} // namespace

void add_sweep_verb(CLI::App& root, verbs& all) {
  auto* app = root.add_subcommand(
    "sweep", "simulate a grid of scenarios, policies, planners and seeds; goes on where it was");
  auto arguments = std::make_shared<sweep_arguments>();
  app->add_option("file", arguments->file, "TOML file of the sweep")->required();
  app->add_option("--out", arguments->out, "folder of the results")->required();
  app->add_option("--jobs", arguments->jobs, "threads; one for each processor")
    ->check(CLI::Range(0, 1024));
  app->add_flag("--json", arguments->json, "the summary as JSON");
  all.push_back({app, [arguments] { return sweep_command(*arguments); }});
}

} // namespace gristmill
