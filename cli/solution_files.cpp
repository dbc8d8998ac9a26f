#include "cli/solution_files.hpp"

#include "cli/read_run.hpp"
#include "protocol/plan.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>

namespace gristmill {

namespace fs = std::filesystem;

result<void> write_file(const fs::path& path, const std::string& text) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (error || !out)
    return fail(errc::io_failed, path.string() + ": cannot be written");
  return {};
}

fs::path solution_files::folder_of(const std::string& problem_name) const {
  const bool is_plain = !problem_name.empty() && problem_name[0] != '.'
    && std::all_of(problem_name.begin(), problem_name.end(), [](char c) {
         return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
           || c == '_' || c == '-' || c == '.';
       });
  return out_ / (is_plain ? problem_name : identifier_of(problem_name));
}

result<void> solution_files::write(const winner& best, const problem& target) {
  auto source = stored_text(blobs_, best.source_sha256);
  if (!source)
    return pass(source);
  auto plan_text = stored_text(blobs_, best.plan_sha256);
  if (!plan_text)
    return pass(plan_text);
  auto parsed = parse_plan(*plan_text);
  if (!parsed)
    return pass(parsed);
  auto built =
    export_plan({std::move(*source), std::move(*parsed), target.def, target.workloads, facts_});
  if (!built)
    return pass(built);
  const auto solved = solution_of(best, target, *built);
  auto traces = traces_of(run_, best, target, solved.name);
  if (!traces)
    return pass(traces);
  std::string lines;
  for (const auto& each : *traces) {
    auto line = to_json(each);
    if (!line)
      return pass(line);
    lines += *line + "\n";
  }
  const auto folder = folder_of(best.problem);
  const std::vector<std::pair<std::string, std::string>> files{{"solution.json", to_json(solved)},
    {"traces.jsonl", lines}, {"definition.json", target.definition_text},
    {"workload.jsonl", target.workload_text}};
  for (const auto& [name, text] : files)
    if (auto written = write_file(folder / name, text); !written)
      return written;
  all_traces += lines;
  return write_operator(folder / "op", best, target, *built);
}

solution solution_files::solution_of(
  const winner& best, const problem& target, const exported_plan& built) const {
  solution out;
  out.name = fmt::format("gristmill_{}_{}", identifier_of(best.problem), best.hash.substr(0, 12));
  out.definition_name = target.def.name;
  out.author = "gristmill";
  out.description = fmt::format("{} ({}) of a gristmill run; times of the run: {}.",
    best.kind == "baseline" ? "The frozen plain kernel; the search found nothing faster"
                            : "The fastest kernel found",
    best.key.empty() ? best.hash.substr(0, 12) : best.key, run_.time_note);
  out.languages = {"cuda_cpp"};
  out.target_hardware = {"LOCAL"};
  out.entry_point = built.entry_point;
  out.destination_passing_style = true;
  out.binding = "torch";
  out.options = built.options;
  out.sources = built.sources;
  return out;
}

result<void> solution_files::write_operator(
  const fs::path& folder, const winner& best, const problem& target, const exported_plan& built) {
  const auto name = identifier_of(best.problem);
  auto text = operator_text(
    target.def, name, fmt::format("# Problem {}, candidate {}.", name, best.hash), built);
  if (!text) {
    notes.push_back(fmt::format("{}: no torch operator: {}", best.problem, text.error().what));
    return {};
  }
  if (auto written = write_file(folder / (name + "_op.py"), *text); !written)
    return written;
  for (const auto& file : built.sources)
    if (auto written = write_file(folder / file.path, file.content); !written)
      return written;
  return {};
}

} // namespace gristmill
