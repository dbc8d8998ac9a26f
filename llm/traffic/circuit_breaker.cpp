#include "llm/traffic/circuit_breaker.hpp"

#include <algorithm>

namespace gristmill {

bool circuit_breaker::sent() {
  if (!open_)
    return false;
  looking_ = true;
  return true;
}

void circuit_breaker::look_lost() {
  looking_ = false;
}

void circuit_breaker::success() {
  failures_ = 0;
  open_ = false;
  looking_ = false;
  wait_ = settings_.first_wait;
}

bool circuit_breaker::failure(bool was_look, std::chrono::nanoseconds now) {
  if (open_ && !was_look)
    return false;
  if (was_look) {
    looking_ = false;
    wait_ = std::min(wait_ * 2, settings_.longest_wait);
    until_ = now + wait_;
    return false;
  }
  if (++failures_ < settings_.failures_max)
    return false;
  open_ = true;
  until_ = now + wait_;
  return true;
}

} // namespace gristmill
