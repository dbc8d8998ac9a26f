#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace gristmill {

/// Calls once when what is going on takes longer than it may, in a thread of its own: a call into a
/// driver that waits for an endless kernel does not return.
class watchdog {
public:
  /// The first step may take `time`. `late` must be callable from another thread.
  watchdog(std::chrono::nanoseconds time, std::function<void()> late);
  watchdog(const watchdog&) = delete;
  watchdog& operator=(const watchdog&) = delete;
  /// Ends the thread; `late` is not called any more.
  ~watchdog();

  /// From now on, so much time until the next call of this.
  void allow(std::chrono::nanoseconds time);

private:
  void watch();

  std::function<void()> late_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::chrono::steady_clock::time_point due_;
  bool ended_ = false;
  std::thread thread_;
};

} // namespace gristmill
