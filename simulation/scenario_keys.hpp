#pragma once

#include "messages/result.hpp"
#include "simulation/model/scenario.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace gristmill {

/// A value as a file or a command line gives it.
using scenario_value = std::variant<bool, int64_t, double, std::string>;

/// Reads "true", "12", "0.5" and texts, quoted or not.
scenario_value scenario_value_of(std::string_view text);

/// The four lists of groups of a scenario: "gpus", "agents", "incidents", "chance_incidents".
const std::vector<std::string>& scenario_lists();
/// How many members the list has.
size_t list_size(const scenario& what, std::string_view list);
/// Makes it that long; new members are as they are made by default.
void resize_list(scenario& what, std::string_view list, size_t size);

/// Every key outside the lists, in the order of `canonical_toml`, with dots.
const std::vector<std::string>& scenario_keys();
/// The keys of a member of a list.
std::vector<std::string> list_keys(std::string_view list);

/// Sets one key. Errors: `invalid_input` without the name of the key: an unknown one (with the
/// nearest), a value of another type, a number that the key cannot hold.
result<void> set_key(scenario& what, std::string_view key, const scenario_value& value);
/// The same in member `index` of a list.
result<void> set_list_key(scenario& what, std::string_view list, size_t index, std::string_view key,
  const scenario_value& value);

/// As it is written in TOML; the key must exist.
std::string key_text(const scenario& what, std::string_view key);
std::string list_key_text(
  const scenario& what, std::string_view list, size_t index, std::string_view key);

} // namespace gristmill
