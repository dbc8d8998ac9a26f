#include "cli/verb.hpp"

#include "cli/checked_path.hpp"
#include "protocol/trace.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <set>
#include <tuple>

namespace gristmill {

namespace {

constexpr size_t repeats_shown_max = 20;

/// One solution has one trace for each workload; a second one makes it unclear which counts.
void warn_of_repeats(const std::vector<trace>& traces, const std::string& file, checked_path& out) {
  std::set<std::tuple<std::string, std::string, std::string>> seen;
  size_t repeats = 0;
  for (const auto& each : traces) {
    if (seen.emplace(each.definition_name, each.solution_name, each.work.uuid).second)
      continue;
    if (++repeats <= repeats_shown_max)
      out.warn({fmt::format("{}: a second trace of solution `{}` on workload `{}` of `{}`", file,
                 each.solution_name, each.work.uuid, each.definition_name)},
        file);
  }
  if (repeats > repeats_shown_max)
    out.warn({fmt::format("{}: and {} more such traces", file, repeats - repeats_shown_max)}, file);
}

checked_path check_traces(const std::string& file) {
  checked_path out;
  out.path = file;
  out.kind = "traces";
  if (const auto why = unreadable(file, ".jsonl")) {
    out.refuse(*why, file);
    return out;
  }
  std::vector<std::string> warnings;
  const auto traces = load_traces(file, &warnings);
  out.warn(warnings, file);
  if (!traces) {
    out.refuse(traces.error(), file);
    return out;
  }
  if (traces->empty())
    out.refuse({errc::invalid_input, file + ": no trace in it"}, file);
  std::map<std::string, size_t> by_status;
  std::set<std::string> definitions;
  std::set<std::string> solutions;
  size_t without = 0;
  for (const auto& each : *traces) {
    definitions.insert(each.definition_name);
    if (!each.solution_name.empty())
      solutions.insert(each.solution_name);
    if (each.evaluation)
      ++by_status[std::string(name(each.evaluation->status))];
    else
      ++without;
  }
  out.facts["traces"] = traces->size();
  out.facts["definitions"] = definitions.size();
  out.facts["solutions"] = solutions.size();
  out.facts["statuses"] = by_status;
  out.facts["without_evaluation"] = without;
  out.summary = fmt::format("{} trace{}", traces->size(), traces->size() == 1 ? "" : "s");
  for (const auto& [status, count] : by_status)
    out.summary += fmt::format(", {} {}", count, status);
  if (without > 0)
    out.summary += fmt::format(", {} without evaluation", without);
  warn_of_repeats(*traces, file, out);
  return out;
}

exit_code trace_check_command(const std::vector<std::string>& files, bool json) {
  std::vector<checked_path> all;
  for (const auto& file : files)
    all.push_back(check_traces(file));
  return print_checked(all, json);
}

} // namespace

void add_trace_check_verb(CLI::App& root, verbs& all) {
  struct flags {
    std::vector<std::string> files;
    bool json = false;
  };
  auto* app = verb_group(root, "trace", "traces")
                .add_subcommand("check", "load traces and say what is wrong with them");
  auto given = std::make_shared<flags>();
  app->add_option("file", given->files, "trace files, a JSON object a line")->required();
  app->add_flag("--json", given->json, "as JSON");
  all.push_back({app, [given] { return trace_check_command(given->files, given->json); }});
}

} // namespace gristmill
