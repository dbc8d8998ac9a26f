#pragma once

#include "messages/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// When a run must end. What is absent does not limit.
struct budget {
  std::optional<uint64_t> wall_ns;
  std::optional<uint64_t> attempts;
  /// Nanoseconds under lease, summed over all devices.
  std::optional<uint64_t> gpu_ns;
  /// Money for models, in 10^-9 USD.
  std::optional<uint64_t> nano_usd;
  /// Tokens of models, read and written.
  std::optional<uint64_t> tokens;
  /// Calls of models, retries counted.
  std::optional<uint64_t> calls;

  friend bool operator==(const budget&, const budget&) = default;
};

/// "10m", "90s", "1.5h" (wall time), "500attempts", "600gpu-s" (also gpu-m, gpu-h), "5usd",
/// "0.5usd", "2000000tokens", "1000calls". Each kind at most once; zero is refused. `invalid_input`
/// names `flag` and the nearest unit.
result<budget> parse_budget(
  const std::vector<std::string>& texts, std::string_view flag = "--budget");

/// The same for each problem or each agent (--problem-budget, --agent-budget): these have no wall
/// time, which is refused.
result<budget> parse_share_budget(const std::vector<std::string>& texts, std::string_view flag);

} // namespace gristmill
