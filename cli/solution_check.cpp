#include "cli/verb.hpp"

#include "cli/checked_path.hpp"
#include "kernels/builtin.hpp"
#include "protocol/json_document.hpp"
#include "protocol/solution.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <memory>
#include <optional>

namespace gristmill {

namespace {

constexpr size_t text_max = size_t{64} << 20;

std::string joined(const std::vector<std::string>& all) {
  std::string out;
  for (const auto& each : all)
    out += (out.empty() ? "" : ", ") + each;
  return out;
}

checked_path check_solution(const std::string& file, const std::optional<problem>& target) {
  checked_path out;
  out.path = file;
  out.kind = "solution";
  if (const auto why = unreadable(file, ".json")) {
    out.refuse(*why, file);
    return out;
  }
  std::vector<std::string> warnings;
  const auto read = load_solution(file, &warnings);
  out.warn(warnings, file);
  if (!read) {
    out.refuse(read.error(), file);
    if (const auto text = read_text_file(file, text_max))
      hint_other_kind(*text, document_kind::solution, out);
    return out;
  }
  out.facts["name"] = read->name;
  out.facts["definition"] = read->definition_name;
  out.facts["languages"] = read->languages;
  out.facts["target_hardware"] = read->target_hardware;
  out.facts["entry_point"] = read->entry_point;
  out.facts["sources"] = read->sources.size();
  out.summary = fmt::format("{} for {}, {}, {} source{}", read->name, read->definition_name,
    read->languages.empty() ? "Python" : joined(read->languages), read->sources.size(),
    read->sources.size() == 1 ? "" : "s");
  if (target)
    if (auto fits = check_solution_fits(*read, *target); !fits)
      out.refuse({fits.error().code, file + ": " + fits.error().what}, file);
  return out;
}

/// A problem folder, or a built-in problem where no such path exists.
result<problem> target_problem(const std::string& given) {
  std::error_code code;
  if (std::filesystem::exists(given, code))
    return load_problem(given);
  if (auto built_in = builtin_problem(given))
    return built_in;
  auto why = missing_path(given);
  return fail(why.code, why.what + "; it is no built-in problem either");
}

exit_code solution_check_command(
  const std::vector<std::string>& files, const std::string& given_problem, bool json) {
  std::optional<problem> target;
  std::vector<checked_path> all;
  if (!given_problem.empty()) {
    auto found = target_problem(given_problem);
    if (!found) {
      // The files are looked at all the same.
      checked_path out;
      out.path = given_problem;
      out.kind = "problem";
      out.refuse({found.error().code, "--problem " + found.error().what}, given_problem);
      all.push_back(std::move(out));
    } else {
      target = std::move(*found);
    }
  }
  for (const auto& file : files)
    all.push_back(check_solution(file, target));
  return print_checked(all, json);
}

} // namespace

void add_solution_check_verb(CLI::App& root, verbs& all) {
  struct flags {
    std::vector<std::string> files;
    std::string problem;
    bool json = false;
  };
  auto* app = verb_group(root, "solution", "solutions")
                .add_subcommand("check", "load solutions and say what is wrong with them");
  auto given = std::make_shared<flags>();
  app->add_option("file", given->files, "solution.json files")->required();
  app->add_option("--problem", given->problem,
    "the folder of the problem that they must be for, or the name of a built-in one");
  app->add_flag("--json", given->json, "as JSON");
  all.push_back(
    {app, [given] { return solution_check_command(given->files, given->problem, given->json); }});
}

} // namespace gristmill
