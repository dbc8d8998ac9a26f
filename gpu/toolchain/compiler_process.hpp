#pragma once

#include "messages/result.hpp"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace gristmill {

/// How a run of a compiler ended.
struct compiler_run {
  /// Exit status, or 128 + signal.
  int status = 0;
  bool timed_out = false;
  /// stdout and stderr together, the first `output_max` bytes.
  std::string output;

  static constexpr size_t output_max = 65536;
};

/// Runs a program with these arguments, no shell, an empty environment apart from the locale,
/// nothing on standard input, in a process group of its own that is killed when the limit is over.
/// Fails with `io_failed` when it cannot be started.
result<compiler_run> run_compiler(const std::string& program,
  const std::vector<std::string>& arguments, const std::filesystem::path& folder,
  std::chrono::milliseconds limit);

} // namespace gristmill
