#include "cli/read_run.hpp"
#include "cli/verb.hpp"
#include "report/run_page.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <memory>

namespace gristmill {

namespace {

namespace fs = std::filesystem;

/// Complete or not at all: a page that is open in a browser is never half written.
result<void> replace_file(const fs::path& file, const std::string& text) {
  auto fresh = file;
  fresh += ".part";
  std::ofstream out(fresh, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out)
    return fail(errc::io_failed, fresh.string() + ": cannot be written");
  std::error_code error;
  fs::rename(fresh, file, error);
  if (error)
    return fail(errc::io_failed, file.string() + ": " + error.message());
  return {};
}

/// Source and plan of each winner; a text that is lost is named in its place.
std::map<std::string, winner_texts> texts_of(const run_winners& winners, const blob_store& blobs) {
  std::map<std::string, winner_texts> out;
  const auto text = [&](const std::string& sha256) {
    auto stored = stored_text(blobs, sha256);
    return stored ? *stored : "(not here: " + stored.error().what + ")";
  };
  for (const winner& best : winners.problems) {
    if (!best.hash.empty())
      out[best.hash] = {text(best.source_sha256), text(best.plan_sha256)};
  }
  return out;
}

exit_code write_page(const report_arguments& arguments) {
  auto directory = open_run(arguments.run);
  if (!directory)
    return complain(directory.error());
  auto events = read_events(arguments.run);
  if (!events)
    return complain(events.error());
  const auto of_run = [&](const failure& what) {
    return complain({what.code, arguments.run + ": " + what.what});
  };
  run_page page;
  page.name = directory->name();
  auto table = read_run(arguments.run);
  if (!table)
    return complain(table.error());
  page.table = std::move(table->table);
  auto timeline = read_timeline(*events);
  if (!timeline)
    return of_run(timeline.error());
  page.timeline = std::move(*timeline);
  auto winners = read_winners(*events);
  if (!winners)
    return of_run(winners.error());
  page.winners = std::move(*winners);
  auto blobs = blob_store::open(directory->blobs());
  if (!blobs)
    return complain(blobs.error());
  page.texts = texts_of(page.winners, *blobs);
  const fs::path file = arguments.out.empty() ? directory->report_file() : fs::path(arguments.out);
  std::error_code ignored;
  if (fs::is_directory(file, ignored))
    return complain(
      {errc::invalid_input, file.string() + ": --out is a folder; name a file in it"});
  const auto text = to_html(page);
  if (auto written = replace_file(file, text); !written)
    return complain(written.error());
  std::fputs(fmt::format("{}: {} problems, {} bytes; times {}\n", file.string(),
               page.table.problems.size(), text.size(), page.table.time_note)
               .c_str(),
    stdout);
  return exit_code::ok;
}

} // namespace

exit_code report_command(const report_arguments& arguments) {
  if (arguments.html)
    return write_page(arguments);
  auto read = read_run(arguments.run);
  if (!read)
    return complain(read.error());
  auto text = arguments.json ? to_json(read->table) : to_text(read->table);
  std::fputs(text.c_str(), stdout);
  return exit_code::ok;
}

void add_report_verb(CLI::App& root, verbs& all) {
  auto* app =
    root.add_subcommand("report", "print the table of a run from its log, or write its page");
  auto arguments = std::make_shared<report_arguments>();
  app->add_option("run", arguments->run, "run directory")->required();
  auto* json = app->add_flag("--json", arguments->json, "the table as JSON");
  auto* html = app->add_flag("--html", arguments->html,
    "write one self-contained HTML page: table, progress, devices, best candidates");
  html->excludes(json);
  app->add_option("--out", arguments->out, "file of the page; RUN/report.html when it is not given")
    ->needs(html);
  all.push_back({app, [arguments] { return report_command(*arguments); }});
}

} // namespace gristmill
