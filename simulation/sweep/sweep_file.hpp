#pragma once

#include "messages/result.hpp"
#include "simulation/report/lab_plan.hpp"

#include <filesystem>
#include <string>
#include <string_view>

namespace gristmill {

/// Reads a sweep (TOML; docs/lab.md): a scenario, policies, planners, seeds, cases and a grid.
/// `where` names the file in errors; the path of a scenario file counts from `folder`. At most
/// 1 MiB.
///
/// Errors: `invalid_input` with file, line, key and the nearest valid one, for what is unknown, of
/// the wrong type or empty; what `load_scenario` and `set_scenario_key` refuse.
result<lab_wishes> sweep_from_toml(
  std::string_view text, const std::string& where, const std::filesystem::path& folder);

} // namespace gristmill
