#pragma once

#include "messages/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gristmill {

/// When a run must end. What is absent does not limit.
struct budget {
  std::optional<uint64_t> wall_ns;
  std::optional<uint64_t> attempts;
  /// Nanoseconds under lease, summed over all devices.
  std::optional<uint64_t> gpu_ns;

  friend bool operator==(const budget&, const budget&) = default;
};

/// "10m", "90s", "1.5h" (wall time), "500attempts", "600gpu-s" (also gpu-m, gpu-h). Each kind at
/// most once; zero is refused.
result<budget> parse_budget(const std::vector<std::string>& texts);

} // namespace gristmill
