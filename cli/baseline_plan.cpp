#include "cli/baseline_plan.hpp"

#include "protocol/nearest.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>

namespace gristmill {

namespace {

namespace fs = std::filesystem;

/// The code of a problem for a mode; none where it has no such mode, empty for a general one.
using mode_code = std::function<std::optional<std::string>(const problem&)>;

result<std::set<std::string>> chosen_modes(
  const std::string& given, const std::vector<problem>& problems) {
  std::vector<std::string> known = general_baseline_modes();
  for (const auto& target : problems)
    for (const auto& [mode, file] : problem_baseline_modes(target))
      if (std::find(known.begin(), known.end(), mode) == known.end())
        known.push_back(mode);
  if (given.empty())
    return std::set<std::string>(known.begin(), known.end());
  std::set<std::string> out;
  std::string rest = given;
  while (!rest.empty()) {
    const auto comma = std::min(rest.find(','), rest.size());
    const auto mode = rest.substr(0, comma);
    rest.erase(0, std::min(comma + 1, rest.size()));
    if (std::find(known.begin(), known.end(), mode) == known.end())
      return fail(
        errc::invalid_input, "--modes: " + mode + ": unknown mode" + suggestion(mode, known));
    out.insert(mode);
  }
  return out;
}

mode_code brought_along(const std::string& mode) {
  return [mode](const problem& target) -> std::optional<std::string> {
    for (const auto& [name, file] : problem_baseline_modes(target))
      if (name == mode)
        return fs::absolute(file).string();
    return std::nullopt;
  };
}

/// In the order in which they are measured: what problems bring along comes before the dearest
/// general mode.
std::vector<std::pair<std::string, mode_code>> in_order(
  const std::set<std::string>& modes, const std::string& code) {
  std::vector<std::pair<std::string, mode_code>> out;
  for (const auto& mode : general_baseline_modes()) {
    if (mode == "max-autotune")
      for (const auto& own : modes)
        out.emplace_back(own, brought_along(own));
    if (modes.contains(mode))
      out.emplace_back(mode, [](const problem&) { return std::string{}; });
  }
  if (!code.empty())
    out.emplace_back("agent", [code](const problem&) { return fs::absolute(code).string(); });
  return out;
}

} // namespace

result<baseline_plan> make_baseline_plan(std::vector<problem> problems, const std::string& modes,
  const std::string& code, const baseline_protocol& how, const fs::path& scratch) {
  baseline_plan plan;
  plan.problems = std::move(problems);
  auto chosen = chosen_modes(modes, plan.problems);
  if (!chosen)
    return pass(chosen);
  for (const auto& target : plan.problems)
    for (const auto& work : target.workloads) {
      auto row = baseline_row(target, work);
      if (!row)
        return pass(row);
      plan.rows.push_back(std::move(*row));
    }
  for (const auto& [mode, code_of] : in_order(*chosen, code)) {
    auto row = plan.rows.begin();
    for (const auto& target : plan.problems) {
      const auto file = code_of(target);
      for (const auto& work : target.workloads) {
        const uint64_t bytes = (row++)->work.bytes;
        if (!file)
          continue;
        auto task =
          write_baseline_job(target, work, mode, *file, mode == "eager" ? bytes : 0, how, scratch);
        if (!task)
          return pass(task);
        plan.tasks.push_back(std::move(*task));
      }
    }
  }
  return plan;
}

} // namespace gristmill
