#include "gpu/cuda/nvml_table.hpp"

#include "gpu/cuda/function_loader.hpp"
#include "gpu/cuda/library_search.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

namespace gristmill::cuda {

result<nvml> nvml::load(const std::vector<std::string>& folders) {
  auto library = find_library({"libnvidia-ml.so.1"}, folders);
  if (!library)
    return fail(errc::not_found, "no NVML: " + library.error().what);
  nvml out;
  auto& t = out.table_;
  function_loader from(*library);
  from.take(t.init, "nvmlInit_v2")
    .take(t.error_text, "nvmlErrorString")
    .take(t.by_uuid, "nvmlDeviceGetHandleByUUID")
    .take(t.by_pci, "nvmlDeviceGetHandleByPciBusId_v2")
    .take(t.by_index, "nvmlDeviceGetHandleByIndex_v2")
    .take(t.uuid, "nvmlDeviceGetUUID")
    .take(t.memory, "nvmlDeviceGetMemoryInfo")
    .take(t.processes, "nvmlDeviceGetComputeRunningProcesses_v3")
    .take(t.clock, "nvmlDeviceGetClockInfo");
  if (from.missing())
    return fail(errc::unsupported, "NVML lacks a function: " + from.missing()->what);
  from.try_take(t.driver_version, "nvmlSystemGetDriverVersion")
    .try_take(t.name, "nvmlDeviceGetName")
    .try_take(t.pci, "nvmlDeviceGetPciInfo_v3")
    .try_take(t.power, "nvmlDeviceGetPowerUsage")
    .try_take(t.temperature, "nvmlDeviceGetTemperature")
    .try_take(t.throttle, "nvmlDeviceGetCurrentClocksThrottleReasons")
    .try_take(t.ecc, "nvmlDeviceGetTotalEccErrors")
    .try_take(t.remapped, "nvmlDeviceGetRemappedRows")
    .try_take(t.mig, "nvmlDeviceGetMigMode");
  if (auto bad = t.init(); bad != 0)
    return fail(errc::unsupported, "NVML does not start: " + out.describe(bad));
  return out;
}

std::string nvml::describe(nvml_status bad) const {
  const char* text = table_.error_text(bad);
  return text == nullptr ? fmt::format("NVML error {}", bad) : fmt::format("{} ({})", text, bad);
}

result<nvml_device> nvml::find(const std::string& device) const {
  nvml_device out = nullptr;
  nvml_status bad = 0;
  unsigned number = 0;
  const auto* end = device.data() + device.size();
  if (auto read = std::from_chars(device.data(), end, number);
      read.ec == std::errc{} && read.ptr == end)
    bad = table_.by_index(number, &out);
  else if (device.find(':') != std::string::npos)
    bad = table_.by_pci(device.c_str(), &out);
  else
    bad = table_.by_uuid(device.c_str(), &out);
  if (bad != 0)
    return fail(
      errc::not_found, fmt::format("NVML knows no device `{}`: {}", device, describe(bad)));
  return out;
}

std::optional<std::vector<uint32_t>> nvml::processes(nvml_device device) const {
  // Room for more than there are, because they may become more between two calls.
  std::vector<nvml_process> all(64);
  auto count = static_cast<unsigned>(all.size());
  auto bad = table_.processes(device, &count, all.data());
  if (bad == nvml_insufficient_size && count < 100'000) {
    all.resize(count + 64);
    count = static_cast<unsigned>(all.size());
    bad = table_.processes(device, &count, all.data());
  }
  if (bad != 0)
    return std::nullopt;
  std::vector<uint32_t> out;
  for (unsigned i = 0; i < std::min<size_t>(count, all.size()); ++i)
    out.push_back(all[i].pid);
  std::sort(out.begin(), out.end());
  return out;
}

} // namespace gristmill::cuda
