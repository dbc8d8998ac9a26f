#pragma once

#include "messages/result.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gristmill {

/// A GPU as NVML sees it, without a context of ours: for a probe between leases. What the library
/// does not tell is 0, and its name stands in `not_told`.
struct device_health {
  /// "GPU-…"
  std::string uuid;
  /// "00000000:18:00.0"
  std::string pci;
  std::string name;
  /// "580.159.04"
  std::string driver;
  uint64_t memory_used = 0;
  uint64_t memory_total = 0;
  /// Compute processes on the device, as NVML numbers them: in a container these may be the
  /// host's numbers.
  std::vector<uint32_t> processes;
  uint64_t ecc_corrected = 0;
  uint64_t ecc_uncorrected = 0;
  uint32_t remapped_corrected = 0;
  uint32_t remapped_uncorrected = 0;
  bool remap_pending = false;
  bool remap_failed = false;
  bool mig = false;
  uint32_t temperature_c = 0;
  uint32_t power_mw = 0;
  uint32_t sm_mhz = 0;
  uint32_t memory_mhz = 0;
  uint64_t throttle_bits = 0;
  std::vector<std::string> not_told;
};

/// By the driver's UUID ("GPU-…"), by PCI bus ID ("0000:18:00.0"), or by a number ("0"), which
/// counts in PCI order as NVML does and not always as CUDA. Starts no context. `unsupported`
/// without NVML, `not_found` for a device that is not there.
result<device_health> read_device_health(
  const std::string& device, const std::vector<std::string>& library_folders = {});

} // namespace gristmill
