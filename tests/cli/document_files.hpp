#pragma once

#include "tests/cli/program.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace gristmill::test {

/// Documents of our own that load without a warning.
extern const std::string good_definition;
extern const std::string good_workloads;
extern const std::string good_solution;
extern const std::string good_traces;

/// Writes a file and the folders above it.
void write_file(const std::filesystem::path& file, const std::string& text);

/// What a finished command has said.
struct outcome {
  int code = -1;
  std::string out;
  std::string err;

  /// Both must be there: what went wrong, and where.
  bool says(const std::vector<std::string>& texts) const;
  /// The standard output, which must be one JSON document.
  nlohmann::json json() const;
};

/// Runs the program to its end.
outcome ended(const std::vector<std::string>& arguments, const variables& environment = {});

} // namespace gristmill::test
