#include "cli/run_end.hpp"

#include "cli/commands.hpp"

#include <chrono>
#include <cstdio>
#include <unistd.h>

namespace gristmill {

watchdog::watchdog()
  : thread_([this] {
      std::unique_lock lock(mutex_);
      if (!changed_.wait_for(lock, std::chrono::seconds{10}, [this] { return done_; })) {
        std::fputs("gristmill: actors are left that nobody ended; leaving all the same\n", stderr);
        _exit(static_cast<int>(exit_code::failure));
      }
    }) {}

watchdog::~watchdog() {
  {
    std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

} // namespace gristmill
