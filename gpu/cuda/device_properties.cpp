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
  p.time_label = fmt::format(
    "measured on {}, driver {}.{}", p.title, api.version() / 1000, api.version() % 1000 / 10);
  return p;
}

} // namespace gristmill::cuda
