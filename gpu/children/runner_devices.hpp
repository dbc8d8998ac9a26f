#pragma once

#include "gpu/children/runner_pass.hpp"
#include "gpu/device.hpp"
#include "messages/result.hpp"
#include "protocol/device_description.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace gristmill {

/// A device that was opened by its name, "mock:h200" or "cuda:0".
struct opened_device {
  std::unique_ptr<device> owner;
  runner_device use;
};

struct opening {
  /// Warp instructions of one launch; of a mock.
  uint64_t instruction_limit = 1'000'000;
  /// Trace activities; of a real device.
  bool trace = false;
  /// Watch clocks and others on the device, with whatever library there is; of a real device.
  bool measure = false;
  /// Under compute-sanitizer, which wants to see plain allocations and nobody else who traces; of a
  /// real device, and without the two above.
  bool sanitized = false;
};

/// `invalid_input` for a name that is none, `unsupported` without a driver, `not_found` for a
/// device that is not there. At most one real device a process, and before any thread but those of
/// this program: it sets the driver's environment.
result<opened_device> open_device(const std::string& name, const opening& how);

/// What is known of a device without running anything on it. `name` may be "cuda:all".
result<std::vector<device_description>> describe_devices(const std::string& name);

/// A real device from outside, without a context. `unsupported` for a mock and without NVML.
result<health_report> look_at_device(const std::string& name);

/// N of "cuda:N"; nothing for another name.
std::optional<int> cuda_ordinal(std::string_view name);

} // namespace gristmill
