#pragma once

#include "gpu/device.hpp"
#include "gpu/mock/clock.hpp"
#include "gpu/mock/profile.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace gristmill {

struct mock_device_config {
  gpu_profile profile;
  /// Warp instructions of one launch outside of timing; more is a timeout of the kernel.
  uint64_t instruction_limit = 4'000'000'000;
  sampling clock;

  // For those who look on. They change no number and, while nothing is timed, apply to each launch.

  /// With checks of values, allocated memory counts as not written until something is copied to it.
  ptx::check_set checks = 0;
  std::optional<uint64_t> order_seed = std::nullopt;
  bool per_line = false;
  /// Of each launch.
  uint64_t printed_bytes_max = 0;
  /// Names of buffers that hold results.
  std::set<std::string> outputs = {};
  /// What allocated memory is filled with; nothing in particular without it.
  std::optional<uint8_t> fresh_byte = std::nullopt;
  /// Called after each launch that was executed in full, or until its fault.
  std::function<void(const ptx::entry_info&, const ptx::launch&, const ptx::outcome&)> executed =
    {};
  /// Called for each launch that was timed, with what the time rests on.
  std::function<void(const ptx::entry_info&, const sample&, const launch_time&)> timed = {};
};

/// A GPU that interprets PTX on the CPU. Numbers are computed for real; times are modelled.
///
/// Memory is host memory that costs nothing until it is touched. Device addresses come from a fixed
/// arena, in order of allocation and apart from the host's, so that the modelled caches and with
/// them the times are the same in every run. What is loaded is PTX text.
std::unique_ptr<device> make_mock_device(mock_device_config config);

} // namespace gristmill
