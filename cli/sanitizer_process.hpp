#pragma once

#include "messages/result.hpp"
#include "messages/sanitizer.hpp"

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace gristmill {

/// compute-sanitizer, as it was found on this machine.
struct sanitizer_program {
  std::string path;
  /// "compute-sanitizer 2025.3.1", as far as it says.
  std::string version;
  /// Its help: options that we can do without are used where it names them.
  std::string help;
};

/// The program of that name or path; with an empty one compute-sanitizer on the PATH, then where
/// toolkits have it. Asks it for its version, which shows that it starts. `invalid_input` names
/// `--sanitizer-program` and what there is.
result<sanitizer_program> find_sanitizer(const std::string& given);

/// The names of tools, with commas between; all for an empty text. `invalid_input` names the
/// nearest.
result<std::vector<sanitizer_tool>> read_sanitizer_tools(const std::string& text);

/// One look at the calls of a runner's job.
struct sanitized_job {
  /// Folder of gristmill-jail and gristmill-runner.
  std::filesystem::path programs;
  /// With `job.json`; what is written stays here.
  std::string folder;
  /// "cuda:0" or "mock:h200".
  std::string device;
  /// How many workloads the job has.
  size_t workloads = 0;
  std::chrono::nanoseconds limit{0};
  std::string limit_text;
};

/// Runs the job's calls in a runner that compute-sanitizer starts, and reads its report. The
/// jail has its limits alone, no namespaces and no filter of system calls: the sanitizer follows
/// its target by means that both forbid. With a null program the runner is started in its usual
/// jail and looks by itself, which only one on a mock can.
sanitizer_look look_with(
  const sanitizer_program* program, sanitizer_tool tool, const sanitized_job& what);

/// What the last look of a tool has left in the job's folder: its report, and what was printed.
/// Either may be missing.
std::vector<std::filesystem::path> texts_of(sanitizer_tool tool, const sanitized_job& what);

/// What the jail was in `look_with`, for the record.
std::string jail_of(const sanitizer_program* program);

} // namespace gristmill
