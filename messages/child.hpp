#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace gristmill {

/// Which limits `gristmill-jail` applies.
enum class child_profile : uint8_t {
  compiler = 0,
  oracle,
  runner,
  judge,
  /// A coding agent: any command line of the user's, with the network and the user's environment.
  command,
};

std::string to_string(child_profile profile);

/// Start one child with its private job directory; contracts section 2.
struct child_request {
  /// Chosen by the asker, unique in the process: names the child for `child_cancel`.
  uint64_t id = 0;
  child_profile profile = child_profile::runner;
  /// Program in our own folder and its arguments; the job directory is appended by the caller.
  std::vector<std::string> argv;
  /// Private folder of the child; holds job.json, receives its outputs.
  std::string job_directory;
  /// Expected in every line on descriptor 3.
  std::string nonce;
  std::chrono::nanoseconds deadline{0};
  /// Killed when no line came for this long; 0 switches the check off.
  std::chrono::nanoseconds silence_limit{0};
  /// Name of the device that it works on, such as "mock:h200#0"; empty: none.
  std::string device;
};

/// End a child; its `child_result` follows.
struct child_cancel {
  uint64_t id = 0;
  /// SIGTERM to its process group instead of SIGKILL: it may clean up, or pay no heed.
  bool gently = false;
};

/// Tell me when no child works on this device (any more).
struct device_quiet_query {
  std::string device;
};

struct device_quiet {
  std::string device;
};

enum class child_end : uint8_t {
  /// A `done` line arrived and the child exited.
  done = 0,
  /// Ended without `done`, whatever the exit code.
  no_done,
  deadline,
  silent,
  cancelled,
  could_not_start,
  /// A line with a wrong nonce, broken JSON or too much of it.
  protocol_error,
};

std::string to_string(child_end end);

struct child_result {
  uint64_t id = 0;
  child_end end = child_end::could_not_start;
  /// Exit status, or 128 + signal.
  int32_t status = 0;
  /// The JSON lines of descriptor 3 in order, `hello` to `done`, without heartbeats; at most 1 MiB.
  std::vector<std::string> lines;
  /// stdout and stderr, the first 64 KiB; for people only, never parsed, except where the child is
  /// a probe's command (gpu/probe.hpp).
  std::string log;
  std::chrono::nanoseconds wall{0};
  /// Processes of its group outlived SIGKILL: what it used is not free.
  bool group_left = false;
};

} // namespace gristmill
