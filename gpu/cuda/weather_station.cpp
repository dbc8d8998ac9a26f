#include "gpu/cuda/weather_station.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>

namespace gristmill::cuda {

namespace {

constexpr auto period = std::chrono::milliseconds{66};

/// 0 means "not told", so it is no minimum.
void widen(uint32_t value, uint32_t& least, uint32_t& most) {
  if (value == 0)
    return;
  least = least == 0 ? value : std::min(least, value);
  most = std::max(most, value);
}

} // namespace

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
  ++all_.readings;
  widen(reading.sm_mhz, all_.sm_mhz_min, all_.sm_mhz_max);
  widen(reading.memory_mhz, all_.memory_mhz_min, all_.memory_mhz_max);
  all_.power_mw_max = std::max(all_.power_mw_max, reading.power_mw);
  all_.temperature_c_max = std::max(all_.temperature_c_max, reading.temperature_c);
  all_.throttle_bits |= reading.throttle_bits;
  if (reading.processes)
    all_.foreign_processes = std::max(all_.foreign_processes, foreign_in(*reading.processes));
}

result<std::unique_ptr<weather_station>> weather_station::make(
  const std::vector<std::string>& folders, const std::string& uuid, const std::string& pci,
  uint32_t our_number) {
  auto api = nvml::load(folders);
  if (!api)
    return pass(api);
  auto device = api->find(uuid);
  if (!device)
    device = api->find(pci);
  if (!device)
    return pass(device);
  std::unique_ptr<weather_station> out(new weather_station(*api, *device, our_number));
  if (auto processes = out->api_.processes(*device))
    out->before_context_ = std::move(*processes);
  return out;
}

weather_station::~weather_station() {
  (void)end();
}

void weather_station::has_context() {
  if (auto processes = api_.processes(device_))
    own_ = own_process(before_context_, *processes, our_number_);
}

weather_reading weather_station::read() const {
  weather_reading out;
  const auto& t = *api_;
  (void)t.clock(device_, nvml_clock_sm, &out.sm_mhz);
  (void)t.clock(device_, nvml_clock_memory, &out.memory_mhz);
  if (t.power != nullptr)
    (void)t.power(device_, &out.power_mw);
  if (t.temperature != nullptr)
    (void)t.temperature(device_, nvml_sensor_gpu, &out.temperature_c);
  unsigned long long bits = 0;
  if (t.throttle != nullptr && t.throttle(device_, &bits) == 0)
    out.throttle_bits = bits;
  out.processes = api_.processes(device_);
  return out;
}

void weather_station::watch() {
  std::unique_lock held(lock_);
  // One reading at least, however short the measurement.
  do {
    held.unlock();
    const auto reading = read();
    held.lock();
    log_->add(reading);
    wake_.wait_for(held, period, [&] { return over_; });
  } while (!over_);
}

void weather_station::begin() {
  (void)end();
  log_.emplace(own_);
  over_ = false;
  thread_ = std::thread([this] { watch(); });
}

device_weather weather_station::end() {
  if (!thread_.joinable())
    return {};
  {
    const std::lock_guard held(lock_);
    over_ = true;
  }
  wake_.notify_all();
  thread_.join();
  return log_->summary();
}

} // namespace gristmill::cuda
