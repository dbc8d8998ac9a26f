#pragma once

#include "messages/result.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// The optional `config.json` of a problem folder (specification 5.1), with its defaults.
struct config_file {
  /// Calls before the timed ones; 0 or more.
  int64_t warmup_runs = 10;
  /// Timed calls; more than 0.
  int64_t iterations = 50;
  bool lock_clocks = false;
  bool benchmark_reference = true;
  int64_t seed = 200;

  friend bool operator==(const config_file&, const config_file&) = default;
};

/// Unlike in the other files, an unknown key is an error. All errors come in one message, a line
/// each ("file:line: field: rule").
result<config_file> parse_config_file(std::string_view text, const std::string& file_name);

/// The same from a file; `not_found` when there is none.
result<config_file> load_config_file(const std::filesystem::path& path);

/// All fields, with indentation and a final newline.
std::string to_json(const config_file& given);

} // namespace gristmill
