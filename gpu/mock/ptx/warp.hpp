#pragma once

#include "gpu/mock/ptx/cache.hpp"
#include "gpu/mock/ptx/kernel.hpp"
#include "gpu/mock/ptx/operation.hpp"
#include "gpu/mock/ptx/tensor_memory.hpp"
#include "gpu/mock/ptx/timing.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

/// The state of a block while it runs, and what the handlers have in common.
namespace gristmill::ptx {

/// Thrown by handlers; the executor adds where it happened. Never leaves `run`.
struct fault_signal {
  fault_kind kind = fault_kind::trap;
  std::string what;
  /// The lane that is to blame, or the first active one.
  uint32_t lane = 0;
};

/// Counts of one operation, by the memory that it went to: a generic access may go to each.
struct operation_counts {
  /// All executions, wherever they went.
  uint64_t instructions = 0;
  uint64_t lanes = 0;
  struct {
    uint64_t sectors = 0;
    uint64_t bytes = 0;
    uint64_t wavefronts = 0;
  } memory[3];
  /// Executions of generic accesses that went to shared (0) or local (1) memory.
  struct {
    uint64_t instructions = 0;
    uint64_t lanes = 0;
  } moved[2];
  /// The region that it hit last.
  const region* recent = nullptr;
};

/// How often runs of straight operations were entered (at their first one), and left (minus one
/// behind their last one), and with how many lanes.
struct straight_counts {
  uint64_t instructions = 0;
  uint64_t lanes = 0;
};

/// An mbarrier object in shared memory. Its contents live here, not in the 8 bytes.
struct mbarrier {
  int64_t expected = 0;
  int64_t pending = 0;
  int64_t pending_bytes = 0;
  uint64_t phase = 0;
  /// Its number with the watcher.
  uint32_t watched = 0;
  /// Of `tcgen05.commit`, until somebody has waited for them.
  std::vector<tensor_commit> commits{};
  /// There was one.
  bool has_commits = false;
};

/// One of the numbered barriers of a block.
struct block_barrier {
  /// Threads of the warps that have arrived; 0 expected = all that are alive.
  uint32_t arrived = 0;
  uint32_t expected = 0;
  /// `barrier.red`: predicates that were true, all of them, any of them.
  uint32_t trues = 0;
  bool all = true;
  bool any = false;
};
constexpr size_t block_barriers = 16;

/// Updates by atomics of a piece of global memory (`counts::atomic_updates`).
struct atomic_traffic {
  uint64_t updates = 0;
  uint64_t float_conflicts = 0;
};
/// By address / 512.
using atomic_traffic_map = std::unordered_map<uint64_t, atomic_traffic>;

struct block_state;
struct block_shadow;
class watcher;
class printed_text;

/// What the blocks of a cluster have in common; a block without one is a cluster of its own.
struct cluster_state {
  /// By their rank.
  std::vector<block_state*> blocks;
  std::array<uint32_t, 3> extent{1, 1, 1};
  /// Completed phases of its barrier; whether anybody has arrived in the current one.
  uint64_t phase = 0;
  bool arrivals = false;
  /// When the last phase was complete (timing).
  uint32_t ready = 0;
  tensor_orders tensor;
  /// In shuffled orders bytes of copies arrive later than they are copied, and not in order: a wait
  /// that is right by luck shows. Until then they are here.
  bool arrives_late = false;
  std::vector<std::pair<mbarrier*, int64_t>> late;
};

struct block_state {
  const kernel* code = nullptr;
  const launch* what = nullptr;
  counts* done = nullptr;
  std::set<std::string>* warnings = nullptr;
  std::vector<operation_counts>* operations = nullptr;
  /// One more than operations.
  std::vector<straight_counts>* straight = nullptr;
  /// Sorted by device address.
  const std::vector<region>* memory = nullptr;
  uint8_t* shared = nullptr;
  uint64_t shared_bytes = 0;
  /// Of all threads, one after the other.
  uint8_t* local = nullptr;
  uint64_t local_bytes = 0;
  /// By `operation::access`; null where each access has to be looked at.
  access_memo* accesses = nullptr;
  sector_cache* l1 = nullptr;
  sector_cache* l2 = nullptr;
  sector_cache* own = nullptr;
  sector_cache* crowded = nullptr;
  /// With caches.
  atomic_traffic_map* atomics = nullptr;
  std::array<block_barrier, block_barriers> barriers;
  std::map<uint64_t, mbarrier> mbarriers;
  /// Groups of `wgmma` that each warp has committed.
  std::array<uint32_t, 32> wgmma_groups{};
  /// Made by the first `tcgen05.alloc`.
  std::shared_ptr<tensor_memory> tensor;
  /// Branches of loops that the assembler unrolls (timing).
  const std::vector<bool>* smoothed = nullptr;
  /// When the last bulk copy arrives (timing).
  uint32_t bulk_ready = 0;
  uint64_t printf_calls = 0;
  /// Null unless they are wanted: the checks, printed text, how often each branch parted lanes.
  watcher* watch = nullptr;
  block_shadow* shadow = nullptr;
  printed_text* printed = nullptr;
  std::vector<uint64_t>* diverged = nullptr;
  /// Where it is in the grid, and its linear number there.
  std::array<uint32_t, 3> index{};
  uint64_t number = 0;
  cluster_state* cluster = nullptr;
  /// In its cluster.
  uint32_t rank = 0;
  uint32_t warps_left = 0;
  /// Of the whole run: grows whenever memory or a barrier changes. While it stands still, a warp
  /// that comes back to a state in which it was before is stuck.
  uint64_t* changes = nullptr;
};

enum class warp_status : uint8_t { running, at_barrier, done };

struct warp : lane_state {
  /// Lanes that wait while others run, at `pc`; parked ones for lanes to arrive.
  struct group {
    uint32_t pc = 0;
    uint32_t mask = 0;
    bool parked = false;
  };

  block_state* block = nullptr;
  uint32_t id = 0;
  uint32_t pc = 0;
  /// Lanes that run now.
  uint32_t running = 0;
  /// Lanes that exist, and those of them that have not exited.
  uint32_t full = 0;
  uint32_t live = 0;
  std::vector<group> groups;
  /// Lowest pc of the groups that are not parked.
  uint32_t lowest = UINT32_MAX;
  warp_status status = warp_status::running;
  uint32_t barrier = 0;
  /// For `barrier.red`: the operation that waits.
  const operation* barrier_reduction = nullptr;
  bool yields = false;
  /// The lanes that ran last have had their turn: others come first, whatever their pc.
  bool turn_over = false;
  /// The operation is not through: it is executed again in the next turn.
  bool again = false;
  /// Looks at memory since `changes` was as in `polled_changes`, and where they are counted.
  uint32_t polls = 0;
  uint32_t poll_pc = UINT32_MAX;
  uint64_t polled_changes = UINT64_MAX;
  /// Waits without a change of memory: how many, and a fingerprint of the warp at one of them.
  uint64_t waits = 0;
  uint64_t waited_changes = UINT64_MAX;
  uint64_t fingerprint = 0;
  /// Cannot go on while `changes` is this.
  uint64_t stuck_changes = UINT64_MAX;
  /// Lanes that have arrived at the barrier of the cluster and not waited yet, and the parity of
  /// the phase in which each did.
  uint32_t cluster_arrived = 0;
  uint32_t cluster_parity = 0;
  /// It has waited for an mbarrier at which tensor cores arrive, and passed no
  /// `tcgen05.fence::after_thread_sync` since.
  bool tensor_unfenced = false;
  uint64_t steps = 0;
  uint64_t clock_reads = 0;
  /// The farthest memory that the current operation reached: 0 L1, 1 L2, 2 DRAM.
  uint32_t memory_level = 0;
  warp_timing timing;
};

template <class T>
T* lane_values(lane_state& s, uint32_t offset) {
  return reinterpret_cast<T*>(s.registers + offset);
}

/// What a register of 4 or of 8 bytes holds, which addresses may be in.
inline uint64_t register_value(lane_state& s, uint32_t reg, uint8_t bytes, uint32_t lane) {
  return bytes == 8 ? lane_values<uint64_t>(s, reg)[lane] : lane_values<uint32_t>(s, reg)[lane];
}

inline warp& as_warp(lane_state& s) {
  return static_cast<warp&>(s);
}

inline bool is_active(const lane_state& s, uint32_t lane) {
  return (s.active >> lane & 1) != 0;
}

inline operation_counts& counts_of(warp& w, const operation& o) {
  return (*w.block->operations)[static_cast<size_t>(&o - w.block->code->operations.data())];
}

/// Index in `operation_counts::memory`.
enum counted_memory : uint8_t {
  /// What the category of the operation says.
  as_counted,
  generic_to_shared,
  generic_to_local
};

/// Without a processor instruction that not every x86-64 has.
inline uint32_t lanes_in(uint32_t mask) {
  if (mask == all_lanes)
    return warp_lanes;
  mask -= mask >> 1 & 0x55555555;
  mask = (mask & 0x33333333) + (mask >> 2 & 0x33333333);
  return ((mask + (mask >> 4)) & 0x0f0f0f0f) * 0x01010101 >> 24;
}

inline uint32_t first_lane(uint32_t mask) {
  return static_cast<uint32_t>(std::countr_zero(mask));
}

[[noreturn]] inline void raise(fault_kind kind, std::string what, uint32_t lane) {
  throw fault_signal{kind, std::move(what), lane};
}

inline void set_lanes(uint32_t& predicate, uint32_t active, uint32_t value) {
  predicate = (predicate & ~active) | (value & active);
}

// simple_ops.cpp
void set_predicate(lane_state& s, const operation& o);
void predicate_logic(lane_state& s, const operation& o);
void read_clock(lane_state& s, const operation& o);
void pack(lane_state& s, const operation& o);
void unpack(lane_state& s, const operation& o);
void to_generic(lane_state& s, const operation& o);
void from_generic(lane_state& s, const operation& o);
void is_in_space(lane_state& s, const operation& o);
void no_operation(lane_state& s, const operation& o);
/// Like `no_operation`, but for the watcher.
void memory_fence(lane_state& s, const operation& o);
void proxy_fence(lane_state& s, const operation& o);
void yield_warp(lane_state& s, const operation& o);
void trap(lane_state& s, const operation& o);
void assert_failed(lane_state& s, const operation& o);
void print_call(lane_state& s, const operation& o);

// cluster_ops.cpp
void map_to_rank(lane_state& s, const operation& o);
void rank_of_address(lane_state& s, const operation& o);
void cluster_arrive(lane_state& s, const operation& o);
void cluster_wait(lane_state& s, const operation& o);
void predicate_of_special(lane_state& s, const operation& o);
void count_async_bytes(lane_state& s, const operation& o);

// collective_ops.cpp
void shuffle(lane_state& s, const operation& o);
void vote(lane_state& s, const operation& o);
void reduce_lanes(lane_state& s, const operation& o);
void match_any(lane_state& s, const operation& o);
void match_all(lane_state& s, const operation& o);
void active_mask(lane_state& s, const operation& o);
void elect(lane_state& s, const operation& o);

// matrix_ops.cpp
void mma_f16(lane_state& s, const operation& o);
void mma_bf16(lane_state& s, const operation& o);
void mma_f16_to_f16(lane_state& s, const operation& o);
void load_matrix(lane_state& s, const operation& o);
void store_matrix(lane_state& s, const operation& o);

// async_ops.cpp
/// The mbarrier at a shared address, in the own block or in that which the address names.
mbarrier& find_mbarrier(warp& w, uint64_t address, uint32_t lane);
/// Bytes have been copied, for this mbarrier.
void complete_bytes(warp& w, mbarrier& m, int64_t bytes);
/// They have arrived. Completes the phase if nothing is pending.
void arrive_bytes(const block_state& block, mbarrier& m, int64_t bytes);
/// One arrival of this lane, which tensor cores make for it.
void arrive_once(warp& w, mbarrier& m, uint32_t lane);
/// Raises a fault unless the mbarrier of `what` is in the same block of the cluster as the target.
void need_same_block(
  warp& w, uint64_t target, uint64_t mbarrier_at, uint32_t lane, const char* what);
void copy_async(lane_state& s, const operation& o);
/// `cp.async.commit_group` and `wait_group`: only the timing model tells them apart from nothing.
void copy_commit(lane_state& s, const operation& o);
void copy_wait(lane_state& s, const operation& o);
void mbarrier_init(lane_state& s, const operation& o);
void mbarrier_inval(lane_state& s, const operation& o);
void mbarrier_arrive(lane_state& s, const operation& o);
void mbarrier_expect(lane_state& s, const operation& o);
void mbarrier_test(lane_state& s, const operation& o);

} // namespace gristmill::ptx
