#pragma once

#include <chrono>
#include <cstdint>

namespace gristmill {

/// Stops sending to a server that fails again and again. After a while one call may look whether it
/// works again (half open); each look that fails doubles the wait.
class circuit_breaker {
public:
  struct settings {
    uint32_t failures_max = 5;
    std::chrono::nanoseconds first_wait = std::chrono::seconds{5};
    std::chrono::nanoseconds longest_wait = std::chrono::minutes{2};
  };

  circuit_breaker() : circuit_breaker(settings{}) {}
  explicit circuit_breaker(settings given) : settings_(given), wait_(given.first_wait) {}

  bool open() const { return open_; }
  /// When the next call may be sent; only meaningful while open. While a look is under way nobody
  /// else may be sent at all.
  std::chrono::nanoseconds opens_again() const { return until_; }
  bool may_send(std::chrono::nanoseconds now) const {
    return !open_ || (now >= until_ && !looking_);
  }
  bool looking() const { return looking_; }
  /// A call is sent; true when it is the look.
  bool sent();
  /// Nothing was learned: the look did not take place.
  void look_lost();
  /// The server works, whatever it said.
  void success();
  /// True when this opened it. A call that was sent before it opened changes nothing.
  bool failure(bool was_look, std::chrono::nanoseconds now);

private:
  settings settings_;
  uint32_t failures_ = 0;
  bool open_ = false;
  bool looking_ = false;
  std::chrono::nanoseconds until_{0};
  std::chrono::nanoseconds wait_;
};

} // namespace gristmill
