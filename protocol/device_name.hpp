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
  /// "h200"; empty for sleep, and for a real device until it has been asked.
  std::string model;
  uint32_t count = 1;
  /// Of sleep.
  uint64_t sleep_ns = 0;
  /// Of a real one, what stands behind "cuda:": "0", "all" or "GPU-…", the beginning of a UUID.
  std::string which;
  /// Not here: whatever nodes bring of this kind and model. Then `count` is 0.
  bool from_nodes = false;

  friend bool operator==(const device_group&, const device_group&) = default;
};

/// "mock:h200", "mock:h200:2", "sleep:100ms:27", "cuda:0", "cuda:all", "cuda:GPU-2ad4…", or several
/// with commas between. An unknown model names the nearest of `known_models`. Which real devices
/// there are is not known here: one entry counts as one device. At most 4,096 devices in all.
result<std::vector<device_group>> parse_devices(
  std::string_view text, const std::vector<std::string>& known_models);

/// The same for a run, which may also have "nodes:mock:h200", "nodes:cuda:h200" or
/// "nodes:sleep:100ms", and nothing beside it: no device of its own.
result<std::vector<device_group>> parse_run_devices(
  std::string_view text, const std::vector<std::string>& known_models);

} // namespace gristmill
