#pragma once

#include "messages/result.hpp"

#include <filesystem>

namespace gristmill {

/// One process works on a run at a time. The lock goes with the process, however it ends.
class run_lock {
public:
  /// Takes the lock of a run directory (the file `lock` in it). Errors: `refused` when another
  /// process has it, `io_failed`.
  static result<run_lock> take(const std::filesystem::path& run);

  run_lock(run_lock&& other) noexcept;
  run_lock& operator=(run_lock&& other) noexcept;
  ~run_lock();

private:
  explicit run_lock(int descriptor) : descriptor_(descriptor) {}

  int descriptor_ = -1;
};

} // namespace gristmill
