#pragma once

#include <cstdint>

namespace gristmill {

/// Keeps an outage from multiplying the load: one retry for every `calls_per_retry` calls, and some
/// at the beginning. What is saved up has a limit, so that a good day does not pay for a storm.
class retry_budget {
public:
  retry_budget(uint32_t calls_per_retry, uint32_t at_start)
    : per_(calls_per_retry), most_(uint64_t{at_start} * calls_per_retry), credit_(most_) {}

  void first_try() {
    if (credit_ < most_)
      ++credit_;
  }
  /// False: no retry may be made now.
  bool take() {
    if (credit_ < per_)
      return false;
    credit_ -= per_;
    return true;
  }

private:
  uint64_t per_;
  uint64_t most_;
  uint64_t credit_;
};

} // namespace gristmill
