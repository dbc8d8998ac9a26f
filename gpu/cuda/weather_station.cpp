#include "gpu/cuda/weather_station.hpp"

#include <chrono>
#include <memory>

namespace gristmill::cuda {

namespace {

constexpr auto period = std::chrono::milliseconds{66};

} // namespace

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
