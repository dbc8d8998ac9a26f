#pragma once

#include "actors/run_context.hpp"

#include <filesystem>
#include <string>

namespace gristmill {

/// Names one set of inputs of a workload, with the references that belong to it.
struct data_set {
  /// The promotion that it was made for (`prepare_request::draw`); empty for the run's own pool.
  std::string draw;
  /// "0" for the first set of the pool, "1" and so on, "clock" for the patterns of the clock run,
  /// "fresh 0" or "large" in a draw.
  std::string name = "0";

  bool is_first() const { return draw.empty() && name == "0"; }

  friend bool operator==(const data_set&, const data_set&) = default;
};

/// The patterns that a clock run of a modelled device reads.
inline data_set clock_set() {
  return {{}, "clock"};
}

/// Where the oracle writes an input and the runner maps it. Names of tensors, sets and draws may be
/// any text, so files and folders are named by hashes.
std::filesystem::path input_file(const run_context& context, const std::string& problem_name,
  const std::string& uuid, const std::string& tensor, const data_set& set);

/// Where the oracle writes a reference output and the judge reads it.
std::filesystem::path reference_file(const run_context& context, const std::string& problem_name,
  const std::string& uuid, const std::string& tensor, const data_set& set);

/// Removes everything that was made for a draw; nothing for the empty name, which is the pool's.
void remove_draw(const run_context& context, const std::string& draw);

/// Where the numbers that a custom entry point returned are kept for the runs.
std::filesystem::path custom_numbers_file(
  const run_context& context, const std::string& problem_name, const std::string& uuid);

} // namespace gristmill
