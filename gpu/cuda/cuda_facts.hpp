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

/// What a machine has for real devices. Starts the driver, makes no context.
struct cuda_facts {
  /// Version of the driver's interface, such as 13000 for 13.0.
  int driver_api = 0;
  int devices = 0;
  /// The device of that number reaches any host memory of its process (PAGEABLE_MEMORY_ACCESS), so
  /// no secret may be in there.
  bool pageable_memory_access = false;
  std::string uuid;
  /// "0000:18:00.0"
  std::string pci;
  std::vector<library_found> libraries;
};

/// Fails as `open_cuda_device` does; a process that has called this must not fork.
result<cuda_facts> read_cuda_facts(
  int ordinal, const std::vector<std::string>& library_folders = {});

/// The libraries alone: starts no driver, and works without one.
std::vector<library_found> find_cuda_libraries(const std::vector<std::string>& library_folders);

} // namespace gristmill
