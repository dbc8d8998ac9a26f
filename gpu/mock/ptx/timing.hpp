#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gristmill::ptx {

struct warp;
struct operation;
struct kernel;

/// How far the assembler moves arithmetic: an instruction does not start before the one that stands
/// so many machine instructions before it has its result. Loads start as early as their addresses
/// are known.
constexpr size_t reorder_window = 64;

/// The critical path of one warp without contention, in cycles. Inside a stretch of straight code
/// an instruction starts when what it reads is ready and `reorder_window` lets it, for the
/// assembler reorders there; a branch or barrier ends the stretch (of an unrolled loop every fourth
/// turn; a branch over a few straight instructions becomes predicates and ends none): the next one
/// starts after the last start, and not before one cycle an instruction has passed.
struct warp_timing {
  /// When each register and each predicate is ready.
  std::vector<uint32_t> registers;
  std::vector<uint32_t> predicates;
  uint32_t now = 0;
  uint32_t latest_start = 0;
  uint32_t instructions = 0;
  /// Turns of an unrolled loop in this stretch.
  uint32_t turns = 0;
  /// `cp.async`: when the current group arrives, and the groups that were committed.
  uint32_t copy_group = 0;
  std::vector<uint32_t> copy_groups;
  /// When the last machine instructions of arithmetic have their results, round and round.
  std::array<uint32_t, reorder_window> results{};
  size_t next_result = 0;

  void prepare(const kernel& code);
  void start_block();
  void end_stretch();
};

/// By operation: branches that the assembler makes go away. Those back of small loops of straight
/// code without stores are unrolled, so that what their turns load is under way at once; those over
/// a few straight instructions become predicates.
std::vector<bool> find_smoothed(const kernel& code);

/// Accounts for an operation that `w` has just executed.
void account(warp& w, const operation& o);

} // namespace gristmill::ptx
