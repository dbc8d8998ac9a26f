#include "cli/verb.hpp"

#include "cli/checked_path.hpp"
#include "cli/problem_paths.hpp"
#include "cli/resolved_tensors.hpp"
#include "protocol/config_file.hpp"
#include "protocol/convert.hpp"
#include "protocol/json_document.hpp"
#include "protocol/op_graph.hpp"
#include "protocol/workload.hpp"
#include "tensors/safetensors.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <memory>
#include <set>

namespace gristmill {

namespace {

namespace fs = std::filesystem;

constexpr size_t text_max = size_t{64} << 20;
/// A workload file may be wrong on every line for one reason.
constexpr size_t lines_shown_max = 20;

/// The text of a file; what is wrong with it is added to `out`.
std::optional<std::string> text_of(const fs::path& file, checked_path& out) {
  if (const auto why = unreadable(file, file.extension().string())) {
    out.refuse(*why, file.string());
    return std::nullopt;
  }
  auto text = read_text_file(file, text_max);
  if (!text) {
    out.refuse(text.error(), file.string());
    return std::nullopt;
  }
  return std::move(*text);
}

std::optional<definition> check_definition(const fs::path& file, checked_path& out) {
  const auto text = text_of(file, out);
  if (!text)
    return std::nullopt;
  std::vector<std::string> warnings;
  auto def = parse_definition(*text, file.string(), &warnings);
  out.warn(warnings, file.string());
  if (!def) {
    out.refuse(def.error(), file.string());
    return std::nullopt;
  }
  out.facts["name"] = def->name;
  out.facts["axes"] = def->axes.size();
  out.facts["inputs"] = def->inputs.size();
  out.facts["outputs"] = def->outputs.size();
  return std::move(*def);
}

/// Numbers of the lines that are not blank.
std::vector<size_t> filled_lines(std::string_view text) {
  std::vector<size_t> out;
  for (size_t line = 1; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (text.substr(0, end).find_first_not_of(" \t\r\f\v") != std::string_view::npos)
      out.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

/// Every workload must give every tensor a shape; one that takes more memory than an address can
/// say is worth a warning.
void check_shapes(const definition& def, const std::vector<workload>& workloads,
  const std::vector<size_t>& lines, const fs::path& file, checked_path& out) {
  size_t wrong = 0;
  for (size_t i = 0; i < workloads.size(); ++i) {
    const auto resolved = resolve_tensors(def, workloads[i]);
    const auto where = fmt::format("{}:{}: ", file.string(), i < lines.size() ? lines[i] : 0);
    if (!resolved) {
      if (++wrong <= lines_shown_max)
        out.refuse({errc::invalid_input, where + resolved.error().what}, file.string());
      continue;
    }
    for (const auto* tensors : {&resolved->inputs, &resolved->outputs})
      for (const auto& each : *tensors)
        if (!each.bytes_problem.empty())
          out.warn({where + each.field + ": " + each.bytes_problem}, file.string());
  }
  if (wrong > lines_shown_max)
    out.refuse(
      {errc::invalid_input,
        fmt::format("{}: {} more lines are wrong", file.string(), wrong - lines_shown_max)},
      file.string());
}

/// A file of inputs that is not there is nobody's mistake in the problem, so only a warning.
void check_blobs(const std::vector<workload>& workloads, const std::vector<size_t>& lines,
  const fs::path& file, checked_path& out) {
  std::vector<fs::path> roots{file.has_parent_path() ? file.parent_path() : fs::path(".")};
  if (const char* shared = std::getenv("FLASHINFER_TRACE_DIR"))
    roots.emplace_back(shared);
  const auto exists = [](const fs::path& place) {
    std::error_code code;
    return fs::exists(place, code);
  };
  std::set<std::string> seen;
  size_t missing = 0;
  for (size_t i = 0; i < workloads.size(); ++i) {
    for (const auto& input : workloads[i].inputs) {
      if (input.kind != input_kind::safetensors || !seen.insert(input.path).second)
        continue;
      if (const auto found = find_blob(input.path, roots, exists);
          !found && ++missing <= lines_shown_max)
        out.warn({fmt::format("{}:{}: inputs.{}.path: {}", file.string(),
                   i < lines.size() ? lines[i] : 0, input.name, found.error().what)},
          file.string());
    }
  }
  if (missing > lines_shown_max)
    out.warn({fmt::format("{}: {} more files of inputs are missing", file.string(),
               missing - lines_shown_max)},
      file.string());
}

void check_workloads(
  const fs::path& file, const std::optional<definition>& def, checked_path& out) {
  const auto text = text_of(file, out);
  if (!text)
    return;
  std::vector<std::string> warnings;
  const auto workloads = parse_workloads(*text, file.string(), &warnings);
  out.warn(warnings, file.string());
  if (!workloads) {
    out.refuse(workloads.error(), file.string());
    return;
  }
  if (workloads->empty())
    out.refuse({errc::invalid_input, file.string() + ": no workload in it"}, file.string());
  out.facts["workloads"] = workloads->size();
  out.summary = fmt::format("{} workload{}", workloads->size(), workloads->size() == 1 ? "" : "s");
  const auto lines = filled_lines(*text);
  if (def)
    check_shapes(*def, *workloads, lines, file, out);
  check_blobs(*workloads, lines, file, out);
}

checked_path check_folder(const fs::path& folder) {
  checked_path out;
  out.path = folder.string();
  out.kind = "problem";
  const auto def = check_definition(folder / "definition.json", out);
  std::error_code code;
  if (const auto file = folder / "workload.jsonl"; fs::exists(file, code))
    check_workloads(file, def, out);
  else
    out.refuse({errc::not_found,
                 missing_path(file).what
                   + "; a definition without workloads is checked by the path of its file"},
      file.string());
  if (const auto file = folder / "config.json"; fs::exists(file, code))
    if (const auto text = text_of(file, out))
      if (auto config = parse_config_file(*text, file.string()); !config)
        out.refuse(config.error(), file.string());
  if (const auto file = folder / "graph.json"; fs::exists(file, code))
    if (const auto text = text_of(file, out))
      if (auto graph = parse_op_graph(*text); !graph)
        out.refuse({graph.error().code, file.string() + ": " + graph.error().what}, file.string());
  return out;
}

checked_path check_definition_alone(const fs::path& file) {
  checked_path out;
  out.path = file.string();
  out.kind = "definition";
  if (const auto def = check_definition(file, out))
    out.summary = fmt::format("{} inputs, {} outputs", def->inputs.size(), def->outputs.size());
  else if (const auto text = read_text_file(file, text_max))
    hint_other_kind(*text, document_kind::definition, out);
  return out;
}

checked_path check_workloads_alone(const fs::path& file) {
  checked_path out;
  out.path = file.string();
  out.kind = "workloads";
  // Shapes only need a definition that loads; what is wrong with it is another path's verdict.
  std::optional<definition> def;
  const auto beside = file.parent_path() / "definition.json";
  if (auto text = read_text_file(beside, text_max)) {
    if (auto read = parse_definition(*text, beside.string()))
      def = std::move(*read);
    else
      out.warn({file.string()
                 + ": the definition beside it does not load, so that no shape was "
                   "looked at"},
        file.string());
  } else {
    out.warn({file.string() + ": there is no definition beside it, so that no shape was looked at"},
      file.string());
  }
  check_workloads(file, def, out);
  if (const auto text = read_text_file(file, text_max); text && !out.errors.empty())
    hint_other_kind(*text, document_kind::workloads, out);
  return out;
}

checked_path check_one(const problem_path& each) {
  switch (each.kind) { // no default: the compiler reports a missing case
  case problem_path_kind::folder:
    return check_folder(each.path);
  case problem_path_kind::definition:
    return check_definition_alone(each.path);
  case problem_path_kind::workloads:
    break;
  }
  return check_workloads_alone(each.path);
}

exit_code problem_check_command(const std::vector<std::string>& paths, bool json) {
  std::vector<checked_path> all;
  for (const auto& path : paths) {
    const auto found = find_problems(path);
    for (const auto& each : found.found)
      all.push_back(check_one(each));
    for (const auto& why : found.errors) {
      checked_path out;
      out.path = path;
      out.kind = "path";
      out.refuse(why, path);
      all.push_back(std::move(out));
    }
  }
  return print_checked(all, json);
}

} // namespace

void add_problem_check_verb(CLI::App& root, verbs& all) {
  struct flags {
    std::vector<std::string> paths;
    bool json = false;
  };
  auto* app = verb_group(root, "problem", "problems")
                .add_subcommand("check", "load problems and say what is wrong with them");
  auto given = std::make_shared<flags>();
  app
    ->add_option("path", given->paths,
      "problem folders, folders of them, definition.json or workload.jsonl files")
    ->required();
  app->add_flag("--json", given->json, "as JSON");
  all.push_back({app, [given] { return problem_check_command(given->paths, given->json); }});
}

} // namespace gristmill
