#pragma once

#include "gpu/mock/ptx/operation.hpp"

#include <cstdint>

/// What `ld` and `st` of the lane library share with the rest of the interpreter. Plain data only:
/// see loops.hpp.
namespace gristmill::ptx {

/// Where the lanes' bytes are on the host.
struct host_access {
  enum layout : uint8_t {
    /// `lanes[l]` for each active lane.
    scattered,
    /// Lane l at `lanes[0] + l * bytes`; all lanes are active.
    sequential,
    /// All at `lanes[0]`; all lanes are active.
    uniform
  };
  layout shape = scattered;
  uint8_t* lanes[warp_lanes];
};

/// The last access of an operation by a full warp that went to one place in memory. The next one
/// mostly has the same distances between lanes; then bounds are checked by one comparison, and the
/// passes, sectors and lines are those of this one. Counts are added up here until the end of the
/// run.
struct access_memo {
  bool known = false;
  host_access::layout shape = host_access::scattered;
  /// In the shared memory of whichever block, in the local memory of whichever warp, else at
  /// `base`.
  bool in_shared = false;
  bool in_local = false;
  /// A row of global memory: sectors and lines follow from its place.
  bool is_row = false;
  /// Index in `operation_counts::memory`; 1 + index in `moved` where it went there by a generic
  /// address, else 0.
  uint8_t memory = 0;
  uint8_t moved = 0;
  /// Addresses of lane 0 for which it holds: `room` from `first` on, with these low bits.
  uint64_t first = 0;
  uint64_t room = 0;
  uint64_t low_bits_mask = 0;
  uint64_t low_bits = 0;
  /// Of the address `origin`.
  uint8_t* base = nullptr;
  uint64_t origin = 0;
  /// Of local memory: bytes from one lane to the next.
  uint64_t lane_stride = 0;
  /// Bytes from the first lane to the last one, and one lane's.
  uint64_t length = 0;
  uint32_t bytes = 0;
  /// Of one access.
  uint64_t sectors = 0;
  uint64_t wavefronts = 0;
  /// Accesses like it since it was remembered, and what rows among them have touched.
  uint64_t hits = 0;
  uint64_t row_sectors = 0;
  uint64_t row_lines = 0;
  /// Accesses that are not worth remembering: so many more, and how many the next time.
  uint32_t pause = 0;
  uint32_t next_pause = 0;
  /// From lane 0; those of 32-bit addresses side by side in the first half.
  alignas(64) uint64_t distance[warp_lanes] = {};
};

/// Finds and counts an access of the active lanes of `bytes` each, with all checks, and remembers
/// it where that may help. Raises faults.
void look_at_access(
  lane_state& s, const operation& o, uint32_t bytes, bool write, host_access& out);

} // namespace gristmill::ptx
