#pragma once

#include "messages/result.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// The few declarations that we need of NVML, which comes with the driver.

namespace gristmill::cuda {

/// nvmlReturn_t: 0 is success.
using nvml_status = int;
constexpr nvml_status nvml_not_found = 6, nvml_insufficient_size = 7;
using nvml_device = struct nvml_device_tag*;

/// nvmlMemory_t
struct nvml_memory {
  unsigned long long total = 0, free = 0, used = 0;
};

/// nvmlProcessInfo_v2_t, which the third version of the function fills.
struct nvml_process {
  unsigned pid = 0;
  unsigned long long memory = 0;
  unsigned gpu_instance = 0;
  unsigned compute_instance = 0;
};

/// nvmlPciInfo_t
struct nvml_pci {
  std::array<char, 16> legacy{};
  unsigned domain = 0, bus = 0, device = 0, device_id = 0, subsystem_id = 0;
  std::array<char, 32> text{};
};

constexpr int nvml_clock_sm = 1, nvml_clock_memory = 2; // nvmlClockType_t
constexpr int nvml_sensor_gpu = 0;
constexpr int nvml_ecc_corrected = 0, nvml_ecc_uncorrected = 1, nvml_ecc_volatile = 0;

/// The first block is there or the table is not made; the rest may be null.
struct nvml_table {
  nvml_status (*init)();
  const char* (*error_text)(nvml_status);
  nvml_status (*by_uuid)(const char* uuid, nvml_device*);
  nvml_status (*by_pci)(const char* pci, nvml_device*);
  nvml_status (*by_index)(unsigned index, nvml_device*);
  nvml_status (*uuid)(nvml_device, char* text, unsigned bytes);
  nvml_status (*memory)(nvml_device, nvml_memory*);
  nvml_status (*processes)(nvml_device, unsigned* count, nvml_process*);
  nvml_status (*clock)(nvml_device, int which, unsigned* mhz);

  nvml_status (*driver_version)(char* text, unsigned bytes);
  nvml_status (*name)(nvml_device, char* text, unsigned bytes);
  nvml_status (*pci)(nvml_device, nvml_pci*);
  nvml_status (*power)(nvml_device, unsigned* milliwatts);
  nvml_status (*temperature)(nvml_device, int sensor, unsigned* celsius);
  nvml_status (*throttle)(nvml_device, unsigned long long* bits);
  nvml_status (*ecc)(nvml_device, int corrected, int counter, unsigned long long* errors);
  nvml_status (*remapped)(
    nvml_device, unsigned* corrected, unsigned* uncorrected, unsigned* pending, unsigned* failed);
  nvml_status (*mig)(nvml_device, unsigned* current, unsigned* pending);
};

/// NVML, loaded and started; it stays until the process ends. May be used by several threads.
class nvml {
public:
  /// Looks for libnvidia-ml.so.1. `not_found` without it, `unsupported` where it does not start.
  static result<nvml> load(const std::vector<std::string>& folders);

  const nvml_table& operator*() const { return table_; }
  const nvml_table* operator->() const { return &table_; }
  std::string describe(nvml_status bad) const;

  /// "GPU-…", "0000:18:00.0" or "0". `not_found` when there is no such device.
  result<nvml_device> find(const std::string& device) const;
  /// Numbers of the compute processes, sorted; nothing where NVML does not tell.
  std::optional<std::vector<uint32_t>> processes(nvml_device device) const;

private:
  nvml_table table_{};
};

} // namespace gristmill::cuda
