#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gristmill {

/// The tools of compute-sanitizer.
enum class sanitizer_tool : uint8_t {
  /// Accesses out of bounds or misaligned.
  memcheck = 0,
  /// Accesses to shared memory without a barrier between.
  racecheck,
  /// Barriers that not all threads reach.
  synccheck,
  /// Values that nobody has written.
  initcheck,
};

/// All tools, in the order in which they are run.
const std::vector<sanitizer_tool>& sanitizer_tools();

/// The names on the command line of compute-sanitizer, "memcheck" and so on; in records as well.
std::string to_string(sanitizer_tool tool);

/// How a look with one tool ended.
enum class look_end : uint8_t {
  clean = 0,
  found,
  /// Nothing is known, and `sanitizer_look::why` says why. Never a pass.
  did_not_look,
};

/// In words: "did not look".
std::string to_string(look_end end);

/// Reports of one kind at one place.
struct sanitizer_finding {
  /// "Invalid __global__ write of size 4 bytes", in the tool's own words.
  std::string kind;
  /// Empty where the report names none.
  std::string kernel;
  /// "kernel+0x90 in kernel.cu:12", or a PTX line.
  std::string where;
  /// What the first report says besides: address, thread.
  std::string example;
  uint64_t count = 1;
};

/// What one tool said of one candidate.
struct sanitizer_look {
  sanitizer_tool tool = sanitizer_tool::memcheck;
  look_end end = look_end::did_not_look;
  /// Why it did not look; of findings: why there may be more of them. Else empty.
  std::string why;
  std::vector<sanitizer_finding> findings;
  /// Reports beyond the kinds that are kept, and those that the tool counted and did not print.
  uint64_t left_out = 0;
  /// Worth knowing, decides nothing: warnings, failed calls of the driver.
  std::vector<std::string> notes;
};

/// What was looked at of one candidate, kept beside the log of its run.
struct sanitizer_record {
  /// "softmax/cuda/17": of the newest verdict with evidence when it was looked at.
  std::string attempt;
  std::string candidate;
  /// "NVIDIA H200", "mock:h200".
  std::string device;
  /// "compute-sanitizer 2025.3.1", or whose checks they were.
  std::string program;
  /// What protected the machine from it: "limits", "as a runner".
  std::string jail;
  /// The code was compiled anew, and is byte for byte what the run measured.
  bool same_code = false;
  /// Whose shapes were called, each once.
  std::vector<std::string> workloads;
  /// UTC, "2026-12-02T00:10:00Z".
  std::string at;
  std::vector<sanitizer_look> looks;
};

} // namespace gristmill
