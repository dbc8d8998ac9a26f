#pragma once

#include "messages/runtime.hpp"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

namespace gristmill {

/// How the run ended, from the supervisor's thread to the main one.
class run_end {
public:
  void set(const run_ended& how) {
    std::lock_guard lock(mutex_);
    how_ = how;
  }
  std::optional<run_ended> get() {
    std::lock_guard lock(mutex_);
    return how_;
  }

private:
  std::mutex mutex_;
  std::optional<run_ended> how_;
};

/// Leaves the process when the actor system does not come to an end, which would be a mistake of
/// ours.
class watchdog {
public:
  watchdog();
  ~watchdog();

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;
};

} // namespace gristmill
