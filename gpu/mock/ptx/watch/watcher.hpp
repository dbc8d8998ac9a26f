#pragma once

#include "gpu/mock/ptx/watch/shadow.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace gristmill::ptx {

/// The checks of `checks.hpp`: looks on while a launch runs, changes nothing that it computes, and
/// keeps what it found. Three parts: the order of accesses (races.cpp), values that nobody has
/// given (values.cpp), and registers that a wgmma has in use (products.cpp).
class watcher {
public:
  watcher(const launch& what, const kernel& code);
  watcher(const watcher&) = delete;
  watcher& operator=(const watcher&) = delete;

  void block_starts(block_state& block);

  /// Executes an operation that has a handler, with what has to be looked at before and after.
  void run(warp& w, const operation& o);
  /// An operation with a guard, or a branch by an index, is reached.
  void decides(warp& w, const operation& o);

  // Called by the handlers, after bounds and alignment have been checked.

  /// An access of `bytes` of each active lane; `host` is where they are.
  void lanes_access(warp& w, const operation& o, const uint64_t* addresses, uint32_t bytes,
    bool write, const uint8_t* const* host);
  void global_range(warp& w, const operation& o, const region& r, uint64_t address, uint64_t bytes,
    bool write, uint32_t lane);
  /// `address` is the one in the owner's shared memory.
  void shared_range(
    warp& w, block_state& owner, uint64_t address, uint64_t bytes, bool write, uint32_t lane);
  void mbarrier_begins(mbarrier& m);
  void arrives(warp& w, const operation& o, mbarrier& m);
  void bytes_arrive(warp& w, mbarrier& m);
  void phase_complete(mbarrier& m);
  /// A wait of that lane has come to its end.
  void waited(warp& w, const operation& o, mbarrier& m, uint32_t lane);

  /// Of `tcgen05.ld`: lanes of its register `i` whose tensor memory nobody has written.
  void tensor_unwritten(uint32_t i, uint32_t lanes);
  /// Tensor memory is touched that the operation `written_by` wrote; it is complete, and the warp
  /// has passed no fence since that became known.
  void tensor_fence_missing(warp& w, uint32_t written_by, uint32_t lane);

  // Called by the executor.
  void arrives_at_barrier(warp& w, size_t number);
  void leaves_barrier(warp& w, size_t number);
  void barrier_over(block_state& block, size_t number);

  std::vector<fault> take_findings();
  uint64_t findings_left_out() const { return left_out_; }
  uint64_t unwatched() const { return unwatched_; }

private:
  /// What one access of the current operation touched, lane by lane.
  struct lane_places {
    uint32_t bytes = 0;
    uint32_t active = 0;
    /// Where it says which bytes nobody has written; null where all are.
    uint8_t* undefined[warp_lanes];
    uint32_t outputs = 0;
  };
  /// A range of shared memory that the current operation touched.
  struct shared_part {
    uint8_t* undefined = nullptr;
    uint64_t bytes = 0;
    uint32_t lane = 0;
  };
  /// Two writes of one place without an order: a race if they differ.
  struct candidate {
    remembered before;
    /// By another lane of the same execution of the instruction.
    bool at_once = false;
    uint32_t lane = 0;
    bool is_shared = false;
    const uint8_t* host = nullptr;
    uint32_t bytes = 0;
    uint8_t old[32];
  };
  enum class doing : uint8_t { nothing, copy, bulk, product };

  bool on(check one) const { return has(what_.checks, one); }
  size_t index_of(const operation& o) const {
    return static_cast<size_t>(&o - code_.operations.data());
  }
  actor actor_of(const warp& w) const;
  warp_shadow& shadow_of(const warp& w) { return w.block->shadow->warps[w.id]; }
  const region* region_at(const block_state& block, uint64_t address);
  uint8_t* undefined_at(const region* r, uint64_t address) const;

  // races.cpp
  void touch(warp& w, cell& c, uint32_t mask, bool write, bool strong, uint32_t lane,
    bool is_shared, const candidate* values);
  void touch_range(warp& w, block_state* owner, uint64_t address, uint64_t bytes, bool write,
    bool strong, uint32_t lane, const candidate* values);
  bool ordered(const warp& w, const remembered& r, uint32_t lane);
  void report_race(
    warp& w, const remembered& before, bool wrote, bool write, uint32_t lane, bool is_shared);
  void settle_candidates(warp& w, const operation& o);
  void exchange(warp& w, const operation& o, block_state* owner, uint64_t address);
  both_orders with_own(const warp& w);
  void after_order(warp& w, const operation& o);
  void wait_for(warp& w, copy_groups& groups, int64_t left);
  void wait_for_products(warp& w, int64_t left);

  // values.cpp
  void before_values(warp& w, const operation& o);
  void after_values(warp& w, const operation& o);
  void set_register(warp_shadow& s, uint32_t reg, uint32_t active, uint32_t lanes, uint32_t origin);
  void set_predicate(
    warp_shadow& s, uint32_t predicate, uint32_t active, uint32_t lanes, uint32_t origin);
  void loaded(warp& w, const operation& o);
  void stored(warp& w, const operation& o);
  void updated(warp& w);
  void moved_fragment(warp& w, const operation& o, bool store);
  void moved_matrices(warp& w, const operation& o, bool store);
  void multiplied(warp& w, const operation& o);
  void multiplied_group(warp& w, const operation& o);
  void loaded_tensor(warp& w, const operation& o);
  void note_shuffle(warp& w, const operation& o);
  void shuffled(warp& w, const operation& o);
  void selected(warp& w, const operation& o);
  void combined(warp& w, const operation& o);
  void store_value(warp& w, const lane_places& places, uint32_t lane, uint32_t offset,
    uint32_t bytes, bool is_undefined, uint32_t origin);
  void report_undefined(warp& w, size_t at, uint32_t lane, uint32_t origin, const char* what);
  uint32_t number_of(uint32_t offset, size_t at, bool written) const;

  // products.cpp
  void watch_products(warp& w, const operation& o);

  /// Whether that pair of instructions is new; then the caller adds the finding.
  bool is_new(fault_kind kind, size_t at, size_t other);
  void add(warp& w, size_t at, fault_kind kind, uint32_t lane, const std::string& what,
    const executed_place* other);
  executed_place place_of_access(const remembered& r) const;

  const launch& what_;
  const kernel& code_;
  uint32_t warps_ = 0;
  /// Order of accesses is followed at all; products are there to be followed.
  bool orders_ = false;
  bool values_ = false;
  bool products_ = false;
  /// What each operation starts.
  std::vector<doing> doing_;
  std::unordered_set<handler> comparisons_;
  /// Register that holds the address of each operation; UINT32_MAX for none.
  std::vector<uint32_t> address_registers_;
  std::unordered_map<const block_state*, std::unique_ptr<block_shadow>> blocks_;
  std::unordered_map<const cluster_state*, both_orders> clusters_;
  std::vector<mbarrier_shadow> mbarriers_;
  cell_pages global_;
  std::unordered_map<uint64_t, both_orders> published_;
  const region* recent_ = nullptr;

  // Of the current operation.
  size_t at_ = 0;
  std::vector<lane_places> places_;
  std::vector<shared_part> ranges_;
  std::vector<candidate> candidates_;
  std::vector<const cell*> written_;
  bool released_ = false;
  /// Predicates q and r, and whether anybody had given them, as they were before.
  uint32_t q_before_ = 0;
  uint32_t r_before_ = 0;
  uint32_t q_undefined_ = 0;
  uint32_t r_undefined_ = 0;
  uint32_t logic_origin_ = UINT32_MAX;
  /// Of `tcgen05.ld`: lanes by register; empty when all of it was written.
  std::vector<uint32_t> tensor_unwritten_;
  /// Of a shuffle: lanes whose source held an undefined value.
  uint32_t shuffled_from_ = 0;

  std::vector<fault> findings_;
  std::map<std::tuple<fault_kind, int, int>, size_t> seen_;
  uint64_t left_out_ = 0;
  uint64_t unwatched_ = 0;
};

} // namespace gristmill::ptx
