// The tool `hand_in`: the final answer for a problem.

#include "cli/mcp_tools.hpp"

#include "cli/read_run.hpp"
#include "cli/solution_files.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

mcp_outcome mcp_tools::hand_in(const json& arguments) {
  auto refuse = [](const std::string& why) { return mcp_outcome{why, nullptr, true}; };
  auto of = find_problem(arguments.at("problem").get<std::string>());
  if (!of)
    return refuse(of.error().what);
  const auto& target = **of;
  auto events = read_events(run_.context->directory);
  if (!events)
    return refuse(events.error().what);
  auto winners = read_winners(*events);
  if (!winners)
    return refuse(winners.error().what);
  auto best = std::find_if(winners->problems.begin(), winners->problems.end(),
    [&](const winner& w) { return w.problem == target.name; });
  if (best == winners->problems.end() || best->hash.empty())
    return refuse("nothing to hand in: no candidate of " + target.name + " has passed");
  best->definition_name = target.def.name;
  const auto out = run_.context->directory / "hand_in";
  // One at a time: two answers for one problem would share a folder.
  std::lock_guard lock(mutex_);
  solution_files files{*winners, *run_.context->blobs, run_.context->facts, out};
  const auto folder = files.folder_of(target.name);
  std::error_code error;
  std::filesystem::remove_all(folder, error);
  auto exported = files.write(*best, target);
  // A kernel that cannot be exported is handed in all the same: its own two files are the answer.
  std::string note = exported ? "" : "no solution.json: " + exported.error().what;
  auto source = stored_text(*run_.context->blobs, best->source_sha256);
  auto plan = stored_text(*run_.context->blobs, best->plan_sha256);
  if (!source || !plan)
    return refuse(source ? plan.error().what : source.error().what);
  for (const auto& [name, text] :
    {std::pair<std::string, std::string>{"candidate.cu", *source}, {"candidate.plan.json", *plan}})
    if (auto written = write_file(folder / name, text); !written)
      return refuse(written.error().what);
  uint64_t ns = run_.watch->problem(target.name).best_ns;
  bool recorded = false;
  {
    std::lock_guard peers(run_.peers->mutex);
    if (run_.peers->journal) {
      event e{.t = std::chrono::duration_cast<std::chrono::nanoseconds>(
                run_.system->clock().now() - run_.peers->run_start),
        .kind = "handed_in",
        .problem = target.name,
        .candidate = best->hash,
        .reason = arguments.value("note", std::string{}),
        .data = nlohmann::json{{"kind", best->kind}, {"key", best->key}}.dump()};
      seam::post(run_.peers->journal, journal_append{{std::move(e)}, durability::relaxed});
      recorded = true;
    }
  }
  auto folder_name = folder.lexically_relative(run_.context->directory).string();
  auto text =
    fmt::format("Handed in for {}: candidate {} ({}), {:.2f} us, {}. Files in {} of the run "
                "directory.{}{}\n",
      target.name, best->hash,
      best->kind == "baseline" ? "the plain kernel; nothing was faster" : best->key,
      static_cast<double>(ns) / 1e3, times_are(), folder_name, note.empty() ? "" : " " + note,
      recorded ? "" : " The run is over, so its log does not say so.");
  return {text,
    {{"candidate", best->hash}, {"kind", best->kind}, {"folder", folder_name}, {"best_ns", ns},
      {"recorded", recorded}, {"exported", exported.has_value()}, {"note", note}},
    false};
}

} // namespace gristmill
