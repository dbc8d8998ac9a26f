#include "gpu/cuda/device_properties.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>
#include <string>
#include <string_view>

namespace gristmill::cuda {

namespace {

/// "NVIDIA H200" -> "h200".
std::string model_of(std::string_view title) {
  std::string out;
  for (char c : title.substr(title.rfind(' ') == title.npos ? 0 : title.rfind(' ') + 1))
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

} // namespace

result<int> count_devices(const driver& api) {
  int count = 0;
  if (auto bad = api->device_count(&count); bad != success)
    return fail(errc::unsupported, "the driver counts no devices: " + api.describe(bad));
  return count;
}

result<device_identity> find_device(const driver& api, int ordinal) {
  auto count = count_devices(api);
  if (!count)
    return pass(count);
  if (ordinal < 0 || ordinal >= *count)
    return fail(errc::not_found,
      fmt::format("there is no device cuda:{}; this machine has {}", ordinal, *count));
  auto refuse = [&](const char* what, status bad) {
    return fail(errc::io_failed, fmt::format("cuda:{}: {}: {}", ordinal, what, api.describe(bad)));
  };
  device_identity out;
  if (auto bad = api->device_get(&out.id, ordinal); bad != success)
    return refuse("no device", bad);
  uint8_t uuid[16] = {};
  if (auto bad = api->device_uuid(&uuid, out.id); bad != success)
    return refuse("no UUID", bad);
  out.uuid = uuid_text(uuid);
  std::array<char, 32> pci{};
  if (auto bad = api->device_pci(pci.data(), static_cast<int>(pci.size()), out.id); bad != success)
    return refuse("no PCI number", bad);
  out.pci = pci.data();
  return out;
}

device_properties read_device_properties(const driver& api, device_id device) {
  const auto& t = *api;
  auto attribute = [&](int which) {
    int value = 0;
    if (t.device_attribute(&value, which, device) != success)
      value = 0;
    return static_cast<uint32_t>(std::max(value, 0));
  };
  device_properties p;
  std::array<char, 256> title{};
  if (t.device_name(title.data(), title.size() - 1, device) == success)
    p.title = title.data();
  p.model = model_of(p.title);
  auto major = attribute(compute_capability_major);
  p.arch =
    fmt::format("sm_{}{}{}", major, attribute(compute_capability_minor), major >= 9 ? "a" : "");
  p.sm_count = attribute(multiprocessor_count);
  p.shared_per_block = attribute(max_shared_per_block_optin);
  p.shared_per_sm = attribute(max_shared_per_multiprocessor);
  p.l2_bytes = attribute(l2_cache_size);
  size_t bytes = 0;
  if (t.device_memory(&bytes, device) == success)
    p.memory_bytes = bytes;
  p.threads_per_block = attribute(max_threads_per_block);
  p.origin = time_origin::measured;
  p.time_label = fmt::format("measured on {}, driver {}", p.title, api.version_text());
  return p;
}

} // namespace gristmill::cuda
