#include "gpu/cuda/device_health.hpp"

#include "gpu/cuda/nvml_table.hpp"

#include <array>

namespace gristmill {

namespace {

/// Asks one thing after the other and notes what is not told.
class questions {
public:
  explicit questions(device_health& about) : about_(about) {}

  /// `function` may be null.
  template <class Function, class... Arguments>
  bool ask(const char* what, Function function, Arguments... arguments) {
    if (function != nullptr && function(arguments...) == 0)
      return true;
    about_.not_told.emplace_back(what);
    return false;
  }

private:
  device_health& about_;
};

} // namespace

result<device_health> read_device_health(
  const std::string& device, const std::vector<std::string>& library_folders) {
  auto api = cuda::nvml::load(library_folders);
  if (!api)
    return fail(errc::unsupported, api.error().what);
  auto handle = api->find(device);
  if (!handle)
    return pass(handle);
  const auto& t = **api;
  const auto d = *handle;
  device_health out;
  questions all(out);
  std::array<char, 96> text{};
  constexpr auto text_bytes = static_cast<unsigned>(text.size() - 1);
  if (all.ask("uuid", t.uuid, d, text.data(), text_bytes))
    out.uuid = text.data();
  if (all.ask("name", t.name, d, text.data(), text_bytes))
    out.name = text.data();
  if (all.ask("driver", t.driver_version, text.data(), text_bytes))
    out.driver = text.data();
  cuda::nvml_pci pci;
  if (all.ask("pci", t.pci, d, &pci))
    out.pci = pci.text.data();
  cuda::nvml_memory memory;
  if (all.ask("memory", t.memory, d, &memory)) {
    out.memory_used = memory.used;
    out.memory_total = memory.total;
  }
  if (auto processes = api->processes(d))
    out.processes = std::move(*processes);
  else
    out.not_told.emplace_back("processes");
  auto count = [&](const char* what, int kind, uint64_t& to) {
    unsigned long long errors = 0;
    if (all.ask(what, t.ecc, d, kind, cuda::nvml_ecc_volatile, &errors))
      to = errors;
  };
  count("ecc_corrected", cuda::nvml_ecc_corrected, out.ecc_corrected);
  count("ecc_uncorrected", cuda::nvml_ecc_uncorrected, out.ecc_uncorrected);
  unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
  if (all.ask("remapped_rows", t.remapped, d, &corrected, &uncorrected, &pending, &failed)) {
    out.remapped_corrected = corrected;
    out.remapped_uncorrected = uncorrected;
    out.remap_pending = pending != 0;
    out.remap_failed = failed != 0;
  }
  unsigned current = 0, next = 0;
  if (all.ask("mig", t.mig, d, &current, &next))
    out.mig = current != 0;
  (void)all.ask("temperature", t.temperature, d, cuda::nvml_sensor_gpu, &out.temperature_c);
  (void)all.ask("power", t.power, d, &out.power_mw);
  (void)all.ask("sm_clock", t.clock, d, cuda::nvml_clock_sm, &out.sm_mhz);
  (void)all.ask("memory_clock", t.clock, d, cuda::nvml_clock_memory, &out.memory_mhz);
  unsigned long long bits = 0;
  if (all.ask("throttle_reasons", t.throttle, d, &bits))
    out.throttle_bits = bits;
  return out;
}

} // namespace gristmill
