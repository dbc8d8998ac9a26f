#pragma once

#include "messages/result.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gristmill {

/// A library of NVIDIA's that is loaded while the program runs.
struct library_found {
  /// "nvrtc", "nvjitlink", "cupti", "nvml"
  std::string name;
  bool found = false;
  /// Its version, or why it does not load.
  std::string detail;
};

/// What a machine has for a real device. Starts the driver, makes no context.
struct cuda_facts {
  /// Version of the driver's interface, such as 13000 for 13.0.
  int driver_api = 0;
  /// The device of that number reaches any host memory of its process (PAGEABLE_MEMORY_ACCESS), so
  /// no secret may be in there.
  bool pageable_memory_access = false;
  std::vector<library_found> libraries;
};

/// Fails as `open_cuda_device` does; a process that has called this must not fork.
result<cuda_facts> read_cuda_facts(
  int ordinal, const std::vector<std::string>& library_folders = {});

} // namespace gristmill
