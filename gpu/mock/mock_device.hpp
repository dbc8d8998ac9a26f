#pragma once

#include "gpu/device.hpp"
#include "gpu/mock/clock.hpp"
#include "gpu/mock/profile.hpp"

#include <cstdint>
#include <memory>

namespace gristmill {

struct mock_device_config {
  gpu_profile profile;
  /// Warp instructions of one launch outside of timing; more is a timeout of the kernel.
  uint64_t instruction_limit = 4'000'000'000;
  sampling clock;
};

/// A GPU that interprets PTX on the CPU. Numbers are computed for real; times are modelled.
///
/// Memory is host memory that costs nothing until it is touched. Device addresses come from a fixed
/// arena, in order of allocation and apart from the host's, so that the modelled caches and with
/// them the times are the same in every run. What is loaded is PTX text.
std::unique_ptr<device> make_mock_device(mock_device_config config);

} // namespace gristmill
