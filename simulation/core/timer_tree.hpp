#pragma once

#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gristmill {

/// One timer for each of a fixed number of entities, and which is due first. A tournament: each
/// inner node is the earlier one of its two children, so setting a timer plays at most log2(n)
/// matches and allocates nothing. Of two timers at one instant that of the smaller entity is first.
class timer_tree {
public:
  static constexpr std::chrono::nanoseconds never = std::chrono::nanoseconds::max();

  struct timer {
    std::chrono::nanoseconds at = never;
    uint32_t entity = 0;
  };

  explicit timer_tree(uint32_t entities)
    : leaves_(std::bit_ceil(entities > 0 ? entities : 1)), nodes_(2 * size_t{leaves_}) {
    for (uint32_t e = 0; e < leaves_; ++e)
      nodes_[leaves_ + e].entity = e;
    for (uint32_t n = leaves_ - 1; n > 0; --n)
      nodes_[n] = nodes_[2 * size_t{n}];
  }

  /// `never`: no timer.
  void set(uint32_t entity, std::chrono::nanoseconds at) {
    size_t n = size_t{leaves_} + entity;
    nodes_[n].at = at;
    for (n /= 2; n > 0; n /= 2) {
      const timer& left = nodes_[2 * n];
      const timer& right = nodes_[2 * n + 1];
      const timer& first = left.at <= right.at ? left : right;
      if (nodes_[n].at == first.at && nodes_[n].entity == first.entity)
        return; // Nothing changes further up.
      nodes_[n] = first;
    }
  }

  const timer& first() const { return nodes_[1]; }

private:
  uint32_t leaves_;
  /// From 1: the winner of all; the leaves stand at the end.
  std::vector<timer> nodes_;
};

} // namespace gristmill
