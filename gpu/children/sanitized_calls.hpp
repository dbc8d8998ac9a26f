#pragma once

#include "messages/result.hpp"

#include <string>

namespace gristmill {

/// The word on the command line by which a runner knows that it is looked at:
/// `gristmill-runner --sanitized TOOL JOBDIR`.
inline constexpr const char* sanitized_option = "--sanitized";

/// Calls each workload of the job once, on its first case, and writes how that went beside the job
/// (`sanitized_calls_file`). No time is taken, nothing is traced, no output is written, and nobody
/// is told on descriptor 3: on a real device this process is the target of compute-sanitizer, whose
/// report says what was wrong. On a mock the interpreter's own checks look instead, those that the
/// tool stands for. Errors: `invalid_input` for a tool that is none or a job that is no run,
/// `io_failed`, and those of opening the device.
result<void> run_sanitized(const std::string& tool, const std::string& folder);

} // namespace gristmill
