#pragma once

#include "gpu/mock/ptx/resident.hpp"

#include <cstdint>
#include <span>
#include <string>

/// Tells a warp that waits from one that works, without knowing what its code is for: while no
/// memory and no barrier changes, a warp that is again in a state in which it was before will be in
/// it for ever.
namespace gristmill::ptx {

/// After a turn that ended because the warp waits.
void note_wait(warp& w);
/// After a turn that the warp used up without changing anything: does it go round and round? May
/// run it on for some operations.
void look_for_spin(warp& w);
/// It has been shown that it cannot go on unless somebody else changes something.
inline bool is_stuck(const warp& w) {
  return w.stuck_changes == *w.block->changes;
}

/// Of a warp that is stuck: only its own block or cluster could free it. False where that is not
/// plain from the code.
bool waits_inside(const warp& w);

struct deadlock {
  /// The warp to name first. Its `pc` is that of the operation at which it waits.
  warp* first = nullptr;
  std::string what;
};

/// Words for a state in which no resident block can go on: what each waits for. `not_started`:
/// blocks that nobody has room for.
deadlock describe_deadlock(std::span<resident_cluster* const> waiting, uint64_t not_started);

/// In a deadlock: a warp that waits for a phase of an mbarrier in which nobody has arrived, while
/// the phase before is complete. Most likely its parity is the wrong one.
struct wrong_phase {
  const warp* where = nullptr;
  /// The operation that waits.
  uint32_t operation = 0;
  std::string what;
  uint32_t lane = 0;
};
wrong_phase find_wrong_phase(std::span<resident_cluster* const> waiting);

} // namespace gristmill::ptx
