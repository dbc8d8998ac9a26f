#pragma once

#include "messages/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// Some equal devices, as one entry of `--gpus` names them.
struct device_group {
  enum class kind : uint8_t {
    /// Interprets kernels and models their time.
    mock,
    /// Runs no kernel and holds a lease for a while: for rehearsals of scale.
    sleep,
    /// A real one.
    cuda,
  };

  kind what = kind::mock;
  /// "h200"; empty for sleep.
  std::string model;
  uint32_t count = 1;
  /// Of sleep.
  uint64_t sleep_ns = 0;

  friend bool operator==(const device_group&, const device_group&) = default;
};

/// "mock:h200", "mock:h200:2", "sleep:100ms:27", or several with commas between. An unknown model
/// names the nearest of `known_models`; `cuda:…` is `unsupported` in this build. At most 4,096
/// devices in all.
result<std::vector<device_group>> parse_devices(
  std::string_view text, const std::vector<std::string>& known_models);

} // namespace gristmill
