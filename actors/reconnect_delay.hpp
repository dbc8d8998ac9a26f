#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace gristmill {

/// How long a node waits before it tries its coordinator again: twice as long each time, up to a
/// cap, and of that a part by chance, so that a thousand nodes do not come back at one instant.
class reconnect_delay {
public:
  static constexpr std::chrono::milliseconds first{200};
  static constexpr std::chrono::milliseconds longest{5000};

  /// `chance`: any number; the wait is between half of the delay and all of it.
  std::chrono::milliseconds next(uint64_t chance) {
    auto whole = delay_;
    delay_ = std::min(2 * delay_, longest);
    const auto half = whole.count() / 2;
    return std::chrono::milliseconds{
      half + static_cast<int64_t>(chance % static_cast<uint64_t>(whole.count() - half + 1))};
  }
  /// It was there.
  void reset() { delay_ = first; }

private:
  std::chrono::milliseconds delay_ = first;
};

} // namespace gristmill
