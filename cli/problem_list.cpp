#include "cli/verb.hpp"

#include "cli/checked_path.hpp"
#include "cli/problem_paths.hpp"
#include "cli/resolved_tensors.hpp"
#include "kernels/builtin.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <memory>

namespace gristmill {

namespace {

void add_once(std::vector<std::string>& all, std::string_view one) {
  if (std::find(all.begin(), all.end(), one) == all.end())
    all.emplace_back(one);
}

std::string joined(const std::vector<std::string>& all) {
  std::string out;
  for (const auto& each : all)
    out += (out.empty() ? "" : ",") + each;
  return out;
}

/// Types of inputs and outputs in the order in which they first appear.
std::vector<std::string> dtypes_of(const definition& def) {
  std::vector<std::string> out;
  for (const auto* specs : {&def.inputs, &def.outputs})
    for (const auto& each : *specs)
      add_once(out, name(each.type));
  return out;
}

/// What the inputs are made of, over all workloads.
std::vector<std::string> kinds_of(const problem& p) {
  std::vector<std::string> out;
  for (const auto& work : p.workloads)
    for (const auto& spec : p.def.inputs) {
      const auto* input = work.find_input(spec.name);
      add_once(out, kind_name(input == nullptr ? input_kind::random : input->kind));
    }
  return out;
}

/// The start of a description, as much of it as fits on a line.
std::string first_words(std::string_view text) {
  constexpr size_t columns = 72;
  text = text.substr(0, text.find('\n'));
  if (text.size() <= columns)
    return std::string(text);
  const size_t blank = text.rfind(' ', columns);
  return blank == std::string_view::npos ? "" : std::string(text.substr(0, blank)) + " …";
}

struct listing {
  std::vector<problem> problems;
  std::vector<failure> errors;
};

listing problems_below(const std::vector<std::string>& folders) {
  listing out;
  for (const auto& folder : folders) {
    auto found = find_problems(folder);
    out.errors.insert(out.errors.end(), found.errors.begin(), found.errors.end());
    for (const auto& each : found.found) {
      auto loaded = load_problem(
        each.kind == problem_path_kind::folder ? each.path : each.path.parent_path() / "");
      if (loaded)
        out.problems.push_back(std::move(*loaded));
      else
        out.errors.push_back(loaded.error());
    }
  }
  return out;
}

exit_code problem_list_command(const std::vector<std::string>& folders, bool json) {
  const auto all = folders.empty() ? listing{builtin_problems(), {}} : problems_below(folders);
  for (const auto& why : all.errors)
    complain({why.code, printable(why.what)});
  auto rows = nlohmann::ordered_json::array();
  for (const auto& p : all.problems) {
    if (!json)
      std::fputs(
        printable(fmt::format("{:<32} {:<13} {:>3} workloads  {:<24} {:<20} {}", p.name,
                    p.def.op_type.empty() ? "-" : p.def.op_type, p.workloads.size(),
                    joined(dtypes_of(p.def)), joined(kinds_of(p)), first_words(p.def.description)))
          .append("\n")
          .c_str(),
        stdout);
    rows.push_back({{"name", p.name}, {"category", p.def.op_type},
      {"workloads", p.workloads.size()}, {"dtypes", dtypes_of(p.def)}, {"kinds", kinds_of(p)},
      {"description", p.def.description}, {"path", p.folder.string()}});
  }
  if (json)
    print_json(rows);
  return all.errors.empty() ? exit_code::ok : exit_code::usage;
}

} // namespace

void add_problem_list_verb(CLI::App& root, verbs& all) {
  struct flags {
    std::vector<std::string> folders;
    bool json = false;
  };
  auto* app = verb_group(root, "problem", "problems")
                .add_subcommand("list", "the built-in problems, or those below folders");
  auto given = std::make_shared<flags>();
  app->add_option("folder", given->folders, "folders with problems; default: the built-in ones");
  app->add_flag("--json", given->json, "as JSON");
  all.push_back({app, [given] { return problem_list_command(given->folders, given->json); }});
}

} // namespace gristmill
