#include "cli/read_run.hpp"
#include "cli/solution_files.hpp"
#include "cli/verb.hpp"
#include "gpu/mock/profile.hpp"
#include "journal/blob_store.hpp"
#include "journal/run_directory.hpp"
#include "kernels/builtin.hpp"
#include "protocol/device_name.hpp"
#include "protocol/exporter/export_plan.hpp"
#include "protocol/json_document.hpp"
#include "protocol/run_settings.hpp"
#include "report/export_run.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <memory>

namespace gristmill {

namespace {

namespace fs = std::filesystem;

constexpr size_t text_max = size_t{64} << 20;

struct export_arguments {
  std::string run;
  std::string out;
  std::vector<std::string> problems;
};

result<run_settings> settings_of(const run_directory& directory) {
  auto text = read_text_file(directory.config_file(), text_max);
  if (!text)
    return pass(text);
  run_settings settings;
  if (auto read = apply_toml(settings, *text, directory.config_file().string()); !read)
    return pass(read);
  return settings;
}

/// The problems of the run by the names that it calls them; folders may have moved since, so the
/// user may name them.
result<std::map<std::string, problem>> problems_of(
  const run_settings& settings, const std::vector<std::string>& given) {
  std::map<std::string, problem> out;
  for (const auto* list : {&given, &settings.problems})
    for (const auto& each : *list) {
      std::error_code error;
      const bool is_folder = fs::is_directory(each, error);
      auto loaded = is_folder ? load_problem(each) : builtin_problem(each);
      if (!loaded && list == &settings.problems)
        continue; // Refused by name below, unless the user has named its folder.
      if (!loaded)
        return pass(loaded);
      auto name = loaded->name;
      out.emplace(std::move(name), std::move(*loaded));
    }
  return out;
}

/// What plans were told about the device, and so what their units are compiled for.
result<device_facts> facts_of_run(const run_winners& run) {
  const auto& gpus = run.gpus;
  auto devices = parse_devices(gpus, known_profiles());
  if (!devices)
    return pass(devices);
  if (devices->front().what == device_group::kind::sleep)
    return fail(
      errc::refused, "the run was a rehearsal on " + gpus + ": no kernel ran, so there is none");
  const auto told = [&](const char* name) {
    const auto found = run.facts.find(name);
    return found == run.facts.end() ? uint64_t{0} : found->second;
  };
  if (!run.facts.empty()) {
    device_facts facts;
    facts.sm_count = static_cast<uint32_t>(told("sm_count"));
    facts.smem_per_block = static_cast<uint32_t>(told("smem_per_block"));
    facts.smem_per_sm = static_cast<uint32_t>(told("smem_per_sm"));
    facts.l2_bytes = told("l2_bytes");
    facts.arch = static_cast<uint32_t>(told("arch"));
    return facts;
  }
  auto gpu = profile(devices->front().model);
  if (!gpu)
    return pass(gpu);
  const auto device = properties_of(*gpu);
  device_facts facts;
  facts.sm_count = device.sm_count;
  facts.smem_per_block = static_cast<uint32_t>(device.shared_per_block);
  facts.smem_per_sm = static_cast<uint32_t>(device.shared_per_sm);
  facts.l2_bytes = device.l2_bytes;
  // "sm_90a" is 90 for a plan.
  facts.arch = static_cast<uint32_t>(std::strtoul(device.arch.c_str() + 3, nullptr, 10));
  return facts;
}

result<void> write_tables(
  const run_winners& run, const fs::path& out, const std::string& run_name) {
  auto problems = problem_metrics(run);
  if (!problems)
    return pass(problems);
  const std::vector<std::pair<std::string, std::string>> files{
    {"combined_metrics.csv", combined_metrics(run)}, {"problem_level_metrics.csv", *problems},
    {"bounds.json", to_json(bounds_of(run, run_name))}};
  for (const auto& [name, text] : files)
    if (auto written = write_file(out / name, text); !written)
      return written;
  return {};
}

exit_code export_command(const export_arguments& arguments) {
  auto directory = open_run(arguments.run);
  if (!directory)
    return complain(directory.error());
  const auto out = arguments.out.empty() ? directory->root() / "export" : fs::path(arguments.out);
  std::error_code error;
  if (fs::exists(out, error) && !(fs::is_directory(out, error) && fs::is_empty(out, error)))
    return complain({errc::invalid_input,
      out.string() + ": exists and is not an empty folder; name another with --out"});
  auto events = read_events(arguments.run);
  if (!events)
    return complain(events.error());
  auto run = read_winners(*events);
  if (!run)
    return complain({run.error().code, arguments.run + ": " + run.error().what});
  auto settings = settings_of(*directory);
  if (!settings)
    return complain(settings.error());
  auto problems = problems_of(*settings, arguments.problems);
  if (!problems)
    return complain(problems.error());
  auto facts = facts_of_run(*run);
  if (!facts)
    return complain({facts.error().code, arguments.run + ": " + facts.error().what});
  auto blobs = blob_store::open(directory->blobs());
  if (!blobs)
    return complain(blobs.error());
  solution_files writer{*run, *blobs, *facts, out};
  auto worst = exit_code::ok;
  uint32_t written = 0;
  for (auto& best : run->problems) {
    const auto target = problems->find(best.problem);
    result<void> done;
    if (target != problems->end())
      best.definition_name = target->second.def.name;
    if (best.hash.empty()) {
      if (target != problems->end())
        for (const auto& work : target->second.workloads) {
          logged_workload row;
          row.uuid = work.uuid;
          row.status = "no candidate";
          best.workloads.push_back(std::move(row));
        }
      writer.notes.push_back(best.problem + ": no candidate passed, so there is no solution");
      continue;
    }
    if (target == problems->end())
      done = fail(errc::not_found, "its folder is not where it was; name it with --problems");
    else
      done = writer.write(best, target->second);
    if (!done)
      worst = complain({done.error().code, best.problem + ": not exported: " + done.error().what});
    written += done ? 1 : 0;
  }
  if (auto tables = write_tables(*run, out, directory->name()); !tables)
    return complain(tables.error());
  if (auto traces = write_file(out / "traces.jsonl", writer.all_traces); !traces)
    return complain(traces.error());
  for (const auto& note : writer.notes)
    std::fprintf(stderr, "gristmill: note: %s\n", note.c_str());
  if (!run->ended)
    std::fputs("gristmill: note: the log has no end: the run goes on or was killed\n", stderr);
  std::fputs(fmt::format("{}: {} of {} problems; times {}\n", out.string(), written,
               run->problems.size(), run->time_note)
               .c_str(),
    stdout);
  return worst;
}

} // namespace

void add_export_verb(CLI::App& root, verbs& all) {
  auto* app = root.add_subcommand(
    "export", "write a run's best kernels as solutions, traces, tables and torch operators");
  auto arguments = std::make_shared<export_arguments>();
  app->add_option("run", arguments->run, "run directory")->required();
  app->add_option("--out", arguments->out, "folder to write; RUN/export when it is not given");
  app->add_option("--problems", arguments->problems, "folders of problems that have moved since");
  all.push_back({app, [arguments] { return export_command(*arguments); }});
}

} // namespace gristmill
