#pragma once

#include "gpu/mock/ptx/warp.hpp"
#include "gpu/mock/ptx/watch/knowledge.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

/// What the watcher remembers beside memory and registers. Kept only while something is watched.
namespace gristmill::ptx {

/// The last access of its kind to four bytes of memory.
struct remembered {
  actor who = 0;
  uint32_t time = 0;
  /// Number of the operation << 13 | lane << 8 | bytes << 4 | strong.
  uint32_t what = 0;

  uint32_t operation() const { return what >> 13; }
  uint32_t lane() const { return what >> 8 & 31; }
  uint32_t bytes() const { return what >> 4 & 15; }
  bool strong() const { return (what & 1) != 0; }
  bool is_copy() const { return (who & 1) != 0; }
};

/// Four bytes of memory: the last write, and the last reads of two different actors since. Where
/// more have read, the oldest is forgotten: a race with it is missed, never invented.
struct cell {
  remembered write;
  remembered read[2];
};

/// Cells of global memory, made where it is touched, at most so many that the memory of the host
/// suffices.
class cell_pages {
public:
  static constexpr uint64_t bytes_max = 768ULL << 20;

  /// Of the four bytes at that address; nullptr when there are too many already.
  cell* at(uint64_t address);

private:
  static constexpr uint64_t page_words = 1024;
  std::unordered_map<uint64_t, std::unique_ptr<cell[]>> pages_;
  uint64_t recent_number_ = UINT64_MAX;
  cell* recent_ = nullptr;
};

/// Both kinds of order that can be known: that something happened before, and that a proxy fence
/// lies between, so that copies see it too.
struct both_orders {
  knowledge happened;
  knowledge fenced;

  void join(const both_orders& other) {
    happened.join(other.happened);
    fenced.join(other.fenced);
  }
};

/// Copies of a warp that it waits for by groups.
struct copy_groups {
  /// The time of the last copy in each group.
  std::vector<uint32_t> committed;
  /// Since the last group.
  uint32_t current = 0;
};

struct warp_shadow {
  both_orders known;
  /// What a strong write makes known, since the last fence: to the block, and to everybody.
  both_orders released_to_block;
  both_orders released;
  /// On its own clock, which goes on whenever something is made known.
  uint32_t time = 1;
  uint32_t copy_time = 0;
  copy_groups copies;
  copy_groups bulk_copies;
  /// Of wgmma; none is taken out, for the other warps of the warpgroup look here, too.
  copy_groups products;

  /// Lanes in which each register, each predicate holds a value that nobody gave, and the operation
  /// that read it first.
  std::vector<uint32_t> undefined;
  std::vector<uint32_t> origin;
  std::vector<uint32_t> undefined_predicates;
  std::vector<uint32_t> predicate_origin;

  /// wgmma: the group in which each register is in use, fences passed when it was written last plus
  /// 1, and how many groups and fences there were.
  std::vector<uint32_t> in_group;
  std::vector<uint32_t> written_at;
  std::vector<uint32_t> used_by;
  /// tcgen05.ld: what `load_waits` was when it was to fill the register; it is filled once that has
  /// gone on.
  std::vector<uint32_t> loading;
  uint32_t load_waits = 1;
  uint32_t committed = 0;
  uint32_t completed = 0;
  uint32_t fences = 0;
};

/// What those who have arrived at a barrier know, and what they have put before a fence: a thread
/// may publish what others of its block have fenced.
struct barrier_shadow {
  both_orders known;
  both_orders released;
};

struct block_shadow {
  std::vector<cell> shared;
  /// A byte for each byte: 1 while nobody has written it.
  std::vector<uint8_t> shared_undefined;
  std::vector<uint8_t> local_undefined;
  std::vector<warp_shadow> warps;
  std::array<barrier_shadow, block_barriers> barriers;
  /// What strong writes to shared memory made known, by address.
  std::unordered_map<uint64_t, both_orders> published;
};

/// What arrivals at an mbarrier make known.
struct mbarrier_shadow {
  both_orders arriving;
  both_orders complete;
  /// Of each warp: the phase that it has waited for last, and which lanes have.
  std::unordered_map<actor, std::pair<uint64_t, uint32_t>> waited;
};

} // namespace gristmill::ptx
