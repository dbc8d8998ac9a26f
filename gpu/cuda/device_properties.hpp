#pragma once

#include "gpu/cuda/driver_table.hpp"
#include "gpu/device.hpp"

namespace gristmill::cuda {

/// What the driver tells of a device, without a context; 0 or empty for what it does not.
device_properties read_device_properties(const driver& api, device_id device);

} // namespace gristmill::cuda
