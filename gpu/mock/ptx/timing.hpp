#pragma once

#include <cstdint>
#include <vector>

namespace gristmill::ptx {

struct warp;
struct operation;
struct kernel;

/// The critical path of one warp without contention, in cycles. Inside a stretch of straight code
/// an instruction starts when what it reads is ready, for the assembler may reorder there; a branch
/// or barrier ends the stretch (of an unrolled loop every fourth turn): the next one starts after
/// the last start, and not before one cycle an instruction has passed.
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

  void prepare(const kernel& code);
  void start_block();
  void end_stretch();
};

/// By operation: branches back of small loops of straight code without stores. The assembler
/// unrolls these, so that what their turns load is under way at once.
std::vector<bool> find_unrolled(const kernel& code);

/// Accounts for an operation that `w` has just executed.
void account(warp& w, const operation& o);

} // namespace gristmill::ptx
