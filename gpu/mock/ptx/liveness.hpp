#pragma once

#include "gpu/mock/ptx/kernel.hpp"

#include <cstdint>
#include <vector>

namespace gristmill::ptx {

/// Where the values of a kernel are alive, by data flow over its operations.
struct liveness {
  /// First and last operation at which each register holds a value that is needed, loops included;
  /// `first > last` for a register that is never used. Empty when the kernel is too big to tell.
  struct interval {
    uint32_t first = UINT32_MAX;
    uint32_t last = 0;
  };
  std::vector<interval> intervals;
  /// The most 32-bit words alive at once, predicates not counted.
  uint32_t words_max = 0;
};

liveness find_liveness(const kernel& code);

/// Gives each register its place in the register file of a warp and rewrites the operations from
/// register numbers to offsets. Values that are never alive at once share a place, so that the
/// registers of a warp stay in the cache. Sets `info.registers`. False when they need too much
/// memory.
bool place_registers(kernel& code);

} // namespace gristmill::ptx
