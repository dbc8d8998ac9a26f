#pragma once

#include "gpu/cuda/driver_table.hpp"
#include "gpu/device.hpp"
#include "messages/result.hpp"

#include <string>

namespace gristmill::cuda {

/// How many devices the driver shows to this process; `unsupported` where it does not count them.
result<int> count_devices(const driver& api);

/// A device as the driver, NVML and a person name it.
struct device_identity {
  device_id id = 0;
  /// "GPU-…"
  std::string uuid;
  /// "0000:18:00.0"
  std::string pci;
};

/// The device of that number, without a context. `not_found` for a number beyond the last.
result<device_identity> find_device(const driver& api, int ordinal);

/// What the driver tells of a device, without a context; 0 or empty for what it does not.
device_properties read_device_properties(const driver& api, device_id device);

} // namespace gristmill::cuda
