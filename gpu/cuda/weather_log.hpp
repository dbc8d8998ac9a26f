#pragma once

#include "messages/measure.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace gristmill::cuda {

/// One reading of a device; 0 = not told.
struct weather_reading {
  uint32_t sm_mhz = 0;
  uint32_t memory_mhz = 0;
  uint32_t power_mw = 0;
  uint32_t temperature_c = 0;
  uint64_t throttle_bits = 0;
  /// Compute processes, sorted; nothing where NVML does not tell.
  std::optional<std::vector<uint32_t>> processes;
};

/// Which of the device's processes we are: our number where it is listed; else, in a container that
/// numbers processes differently, the only one that came when our context was made. Nothing when
/// that cannot be said.
std::optional<uint32_t> own_process(const std::vector<uint32_t>& before_context,
  const std::vector<uint32_t>& after_context, uint32_t our_number);

/// Adds what was seen at another time: the widest range and the highest figure of both.
void add_weather(device_weather& to, const device_weather& more);

/// Puts readings together. Pure; one for each measurement.
class weather_log {
public:
  explicit weather_log(std::optional<uint32_t> own) : own_(own) {}
  void add(const weather_reading& reading);
  const device_weather& summary() const { return all_; }

private:
  /// Where we do not know which one we are, one of them is.
  uint32_t foreign_in(const std::vector<uint32_t>& processes) const;

  std::optional<uint32_t> own_;
  device_weather all_;
};

} // namespace gristmill::cuda
