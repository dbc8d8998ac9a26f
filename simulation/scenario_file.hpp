#pragma once

#include "messages/result.hpp"
#include "simulation/model/scenario.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gristmill {

/// Reads and checks a scenario (TOML; docs/lab-model.md). A file may begin from a preset with
/// `preset = "seed-run"` and change keys of it. `where` names the file in errors. At most 1 MiB.
/// Errors: `invalid_input` naming file, key and the nearest valid one, for what is unknown, of the
/// wrong type, out of range or contradictory.
result<scenario> scenario_from_toml(std::string_view text, const std::string& where);

/// A preset by its name, else the file. Errors: as above, `not_found` with the nearest preset,
/// `io_failed`.
result<scenario> load_scenario(const std::string& preset_or_path);

/// Changes one key, as the command line does: "agents.count" and "500". Keys as in the file, with
/// dots; a list of groups is reached when it has one member. Errors: `invalid_input`.
result<void> set_scenario_key(scenario& what, std::string_view key, std::string_view value);

/// Every key with its value, in one fixed order: what the hash of a configuration is made of, and a
/// file that reads back as the same scenario.
std::string canonical_toml(const scenario& what);

struct preset {
  std::string name;
  /// One line.
  std::string what;
  /// The file, with the source of every number.
  std::string toml;
};

/// Sorted by name.
const std::vector<preset>& presets();

} // namespace gristmill
