#include "gpu/cuda/weather_log.hpp"

#include <algorithm>
#include <iterator>

namespace gristmill::cuda {

namespace {

/// 0 means "not told", so it is no minimum.
void widen(uint32_t& least, uint32_t& most, uint32_t other_least, uint32_t other_most) {
  if (other_least != 0)
    least = least == 0 ? other_least : std::min(least, other_least);
  most = std::max(most, other_most);
}

} // namespace

void add_weather(device_weather& to, const device_weather& more) {
  to.readings += more.readings;
  widen(to.sm_mhz_min, to.sm_mhz_max, more.sm_mhz_min, more.sm_mhz_max);
  widen(to.memory_mhz_min, to.memory_mhz_max, more.memory_mhz_min, more.memory_mhz_max);
  to.power_mw_max = std::max(to.power_mw_max, more.power_mw_max);
  to.temperature_c_max = std::max(to.temperature_c_max, more.temperature_c_max);
  to.throttle_bits |= more.throttle_bits;
  to.foreign_processes = std::max(to.foreign_processes, more.foreign_processes);
}

std::optional<uint32_t> own_process(const std::vector<uint32_t>& before_context,
  const std::vector<uint32_t>& after_context, uint32_t our_number) {
  if (std::binary_search(after_context.begin(), after_context.end(), our_number))
    return our_number;
  std::vector<uint32_t> came;
  std::set_difference(after_context.begin(), after_context.end(), before_context.begin(),
    before_context.end(), std::back_inserter(came));
  if (came.size() == 1)
    return came.front();
  return std::nullopt;
}

uint32_t weather_log::foreign_in(const std::vector<uint32_t>& processes) const {
  const auto count = static_cast<uint32_t>(processes.size());
  const bool ours =
    own_ ? std::binary_search(processes.begin(), processes.end(), *own_) : !processes.empty();
  return count - (ours ? 1 : 0);
}

void weather_log::add(const weather_reading& reading) {
  add_weather(all_,
    {1, reading.sm_mhz, reading.sm_mhz, reading.memory_mhz, reading.memory_mhz, reading.power_mw,
      reading.temperature_c, reading.throttle_bits,
      reading.processes ? foreign_in(*reading.processes) : 0});
}

} // namespace gristmill::cuda
