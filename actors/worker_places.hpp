#pragma once

#include <atomic>
#include <cstdint>

namespace gristmill {

/// How many workers of the coordinator could live on nodes: the hub says it, and a worker that is
/// between two attempts takes one and ends, to be placed there. A number that is out of date costs
/// a worker one start, never an attempt.
class worker_places {
public:
  void set(uint32_t free) { free_.store(free, std::memory_order_relaxed); }

  /// Takes one of them; false when there is none.
  bool take() {
    auto free = free_.load(std::memory_order_relaxed);
    while (free != 0)
      if (free_.compare_exchange_weak(free, free - 1, std::memory_order_relaxed))
        return true;
    return false;
  }

private:
  std::atomic<uint32_t> free_{0};
};

} // namespace gristmill
