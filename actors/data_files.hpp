#pragma once

#include "actors/run_context.hpp"

#include <filesystem>
#include <string>

namespace gristmill {

/// Where the oracle writes an input and the runner maps it: the tensor of the correctness run, or
/// the pattern of the clock run. Names of tensors may be any text, so the file is named by a hash.
std::filesystem::path input_file(const run_context& context, const std::string& problem_name,
  const std::string& uuid, const std::string& tensor, bool clock);

/// Where the oracle writes a reference output and the judge reads it.
std::filesystem::path reference_file(const run_context& context, const std::string& problem_name,
  const std::string& uuid, const std::string& tensor);

/// Where the numbers that a custom entry point returned are kept for the runs.
std::filesystem::path custom_numbers_file(
  const run_context& context, const std::string& problem_name, const std::string& uuid);

} // namespace gristmill
