#include "cli/problem_paths.hpp"
#include "cli/verb.hpp"
#include "journal/hash.hpp"
#include "protocol/json_document.hpp"
#include "protocol/problem.hpp"
#include "report/score_traces.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

namespace gristmill {

namespace {

struct score_arguments {
  std::vector<std::string> traces;
  std::string bounds;
  std::vector<std::string> problems;
  std::vector<std::string> solutions;
  std::string device;
  std::vector<std::string> audited;
  bool json = false;
};

/// The problems of the suite, whose workloads are the denominators. The folder above a problem's
/// own names its category when that is one of the published ones.
result<std::vector<suite_problem>> load_suite(const std::vector<std::string>& given) {
  std::vector<suite_problem> out;
  for (const auto& path : given) {
    auto found = find_problems(path);
    if (!found.errors.empty())
      return tl::unexpected(found.errors.front());
    for (const auto& each : found.found) {
      if (each.kind != problem_path_kind::folder)
        return fail(errc::invalid_input,
          each.path.string()
            + ": --problems takes folders, with a definition.json and a workload.jsonl");
      auto loaded = load_problem(each.path);
      if (!loaded)
        return pass(loaded);
      suite_problem one;
      one.name = loaded->def.name;
      std::error_code error;
      auto folder = std::filesystem::absolute(each.path, error).lexically_normal();
      if (!folder.has_filename())
        folder = folder.parent_path();
      const auto above = folder.parent_path().filename().string();
      for (const char* category : {"L1", "L2", "Quant", "FlashInfer", "FlashInfer-Bench"})
        if (above == category)
          one.category = above;
      for (const auto& work : loaded->workloads)
        one.uuids.push_back(work.uuid);
      out.push_back(std::move(one));
    }
  }
  return out;
}

result<trace_score> score(const score_arguments& arguments) {
  score_request request;
  auto text = read_text_file(arguments.bounds, json_limits{}.bytes);
  if (!text)
    return fail(text.error().code, "--bounds " + arguments.bounds + ": " + text.error().what);
  auto table = parse_bounds(*text, arguments.bounds);
  if (!table)
    return pass(table);
  request.bounds = std::move(*table);
  request.bounds_file = arguments.bounds;
  request.bounds_sha256 = sha256_hex(*text);
  for (const auto& file : arguments.traces) {
    auto traces = load_traces(file);
    if (!traces)
      return pass(traces);
    request.files.push_back({file, std::move(*traces)});
  }
  auto suite = load_suite(arguments.problems);
  if (!suite)
    return pass(suite);
  request.problems = std::move(*suite);
  request.solutions = arguments.solutions;
  request.other_device = arguments.device;
  request.audited = arguments.audited;
  return score_traces(request);
}

exit_code score_command(const score_arguments& arguments) {
  auto scored = score(arguments);
  if (!scored)
    return complain(scored.error());
  const auto text = arguments.json ? to_json(*scored) : to_text(*scored);
  std::fputs(text.c_str(), stdout);
  return exit_code::ok;
}

} // namespace

void add_score_verb(CLI::App& root, verbs& all) {
  auto* app = root.add_subcommand("score", "score traces against a table of bounds and baselines");
  auto arguments = std::make_shared<score_arguments>();
  app->add_option("traces", arguments->traces, "traces.jsonl files")->required();
  app->add_option("--bounds", arguments->bounds, "table of T_SOL and T_b, gristmill.bounds/2")
    ->required();
  app->add_option("--problems", arguments->problems,
    "problem folders, or folders of them: the suite, instead of all problems of the table");
  app->add_option("--solution", arguments->solutions, "only traces of this solution; repeatable");
  app->add_option("--device", arguments->device,
    "the traces' device, where it is not the table's: scores then compare with nobody's");
  app->add_option("--audited", arguments->audited,
    "PROBLEM:UUID of a time below the bound that somebody has looked at; repeatable");
  app->add_flag("--json", arguments->json, "as JSON");
  all.push_back({app, [arguments] { return score_command(*arguments); }});
}

} // namespace gristmill
