#pragma once

#include "gpu/cuda/nvml_table.hpp"
#include "gpu/cuda/weather_log.hpp"
#include "messages/measure.hpp"
#include "messages/result.hpp"

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace gristmill::cuda {

/// Reads the weather from a thread of its own, about fifteen times a second, between `begin` and
/// `end`.
class weather_station {
public:
  /// Looks the device up by its UUID, then by its PCI number: NVML and CUDA count differently.
  /// To be made before the context, so that our own process can be told from others.
  static result<std::unique_ptr<weather_station>> make(const std::vector<std::string>& folders,
    const std::string& uuid, const std::string& pci, uint32_t our_number);
  ~weather_station();
  weather_station(const weather_station&) = delete;
  weather_station& operator=(const weather_station&) = delete;

  /// Our context is there now.
  void has_context();
  void begin();
  device_weather end();

private:
  weather_station(nvml api, nvml_device device, uint32_t our_number)
    : api_(api), device_(device), our_number_(our_number) {}
  weather_reading read() const;
  void watch();

  nvml api_;
  nvml_device device_;
  uint32_t our_number_;
  std::vector<uint32_t> before_context_;
  std::optional<uint32_t> own_;
  std::mutex lock_;
  std::condition_variable wake_;
  bool over_ = false;
  std::optional<weather_log> log_;
  std::thread thread_;
};

} // namespace gristmill::cuda
