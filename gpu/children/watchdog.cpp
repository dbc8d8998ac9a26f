#include "gpu/children/watchdog.hpp"

#include <utility>

namespace gristmill {

using clock = std::chrono::steady_clock;

watchdog::watchdog(std::chrono::nanoseconds time, std::function<void()> late)
  : late_(std::move(late)), due_(clock::now() + time), thread_([this] { watch(); }) {}

watchdog::~watchdog() {
  {
    std::lock_guard guard(mutex_);
    ended_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void watchdog::watch() {
  std::unique_lock guard(mutex_);
  while (!ended_ && clock::now() < due_) {
    const auto due = due_;
    wake_.wait_until(guard, due);
  }
  if (ended_)
    return;
  guard.unlock();
  late_();
}

void watchdog::allow(std::chrono::nanoseconds time) {
  {
    std::lock_guard guard(mutex_);
    due_ = clock::now() + time;
  }
  // It may have to wake earlier than it thought.
  wake_.notify_all();
}

} // namespace gristmill
