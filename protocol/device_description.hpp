#pragma once

#include "messages/result.hpp"
#include "messages/verdict.hpp"
#include "protocol/json_document.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// What `gristmill-runner --describe`, `--health` and `--canary` print, for those who start it.
namespace gristmill {

/// A library that a device's driver or measuring loads at run time.
struct device_library {
  /// "nvrtc", "nvjitlink", "cupti", "nvml".
  std::string name;
  bool found = false;
  /// Its version as it tells it, empty when it tells none; when it was not found, why.
  std::string detail;

  friend bool operator==(const device_library&, const device_library&) = default;
};

/// One device, as `--describe` tells it in one line. What a plan may ask, and how to find it again.
struct device_description {
  /// "cuda:0" or "mock:h200", as a job names it.
  std::string device;
  /// "h200": what a lease asks for.
  std::string model;
  /// "NVIDIA H200".
  std::string title;
  /// Compilation target, "sm_90a".
  std::string arch;
  uint32_t sm_count = 0;
  uint64_t shared_per_block = 0;
  uint64_t shared_per_sm = 0;
  uint64_t l2_bytes = 0;
  uint64_t memory_bytes = 0;
  uint32_t threads_per_block = 0;
  /// modelled or measured.
  time_origin origin = time_origin::none;
  /// Stands beside every time of the device.
  std::string time_label;
  /// "GPU-…"; empty when the management library is not there, and for a mock.
  std::string uuid;
  /// Of the driver: "580.159.04", and the CUDA it speaks, such as 13000. Empty and 0 for a mock.
  std::string driver;
  uint32_t cuda_version = 0;
  /// The device can read the host's memory by itself: then no secret may lie in the process that
  /// runs a candidate.
  bool pageable_memory_access = false;
  std::vector<device_library> libraries;

  friend bool operator==(const device_description&, const device_description&) = default;
};

/// One line, without its line feed.
ordered_json to_json(const device_description& what);
/// The reverse. Strict: `invalid_input` names what is missing, unknown or of the wrong type.
result<device_description> description_from_json(std::string_view line);
/// All lines of `--describe cuda:all` in their order; empty lines do not count. At most 4,096
/// devices. `invalid_input` names the line.
result<std::vector<device_description>> descriptions_from_text(std::string_view text);

struct device_process {
  uint32_t pid = 0;
  /// 0 where the library does not tell.
  uint64_t memory_bytes = 0;

  friend bool operator==(const device_process&, const device_process&) = default;
};

/// A device seen from outside, without a context on it, as `--health` tells it in one line.
struct health_report {
  std::string device;
  std::string uuid;
  /// All that have a context on it. The one that asked has none.
  std::vector<device_process> processes;
  uint64_t memory_used_bytes = 0;
  uint64_t memory_total_bytes = 0;
  /// Errors of memory since the driver started that could not be mended.
  uint64_t uncorrected_errors = 0;
  uint32_t temperature_c = 0;
  uint64_t throttle_bits = 0;

  friend bool operator==(const health_report&, const health_report&) = default;
};

ordered_json to_json(const health_report& what);
result<health_report> health_from_json(std::string_view line);

} // namespace gristmill
