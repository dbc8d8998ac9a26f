#pragma once

#include <cstdint>

namespace gristmill {

/// How many calls may be under way at once: halved when the server is throttled or overloaded, one
/// more after as many successes as the window is wide. One trouble halves once: answers to calls
/// that were sent before the last halving say nothing new.
class aimd_window {
public:
  explicit aimd_window(uint32_t most);

  uint32_t size() const { return size_; }
  /// The number of a call that is sent now.
  uint64_t sent() { return next_++; }
  void success();
  void trouble(uint64_t sent_as);

private:
  uint32_t most_;
  uint32_t size_;
  uint32_t successes_ = 0;
  uint64_t next_ = 1;
  uint64_t halved_before_ = 0;
};

} // namespace gristmill
