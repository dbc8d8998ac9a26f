#pragma once

#include "gpu/mock/ptx/warp.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

/// The state of the blocks that run at once.
namespace gristmill::ptx {

/// 64-byte aligned bytes.
class aligned_bytes {
public:
  explicit aligned_bytes(size_t size) : storage_(size + 64) {}
  uint8_t* data() {
    const auto address = reinterpret_cast<uintptr_t>(storage_.data());
    return storage_.data() + ((address + 63) / 64 * 64 - address);
  }

private:
  std::vector<uint8_t> storage_;
};

/// Of one block.
uint32_t warp_count(const launch& what);
/// Bytes of shared memory of one block.
size_t shared_size(const launch& what, const kernel& code);
/// Bytes that a block takes while it is resident.
uint64_t resident_bytes(const launch& what, const kernel& code);
/// How many blocks there are in a cluster, in each dimension.
std::array<uint32_t, 3> cluster_extent(const launch& what, const kernel& code);

/// Registers, shared and local memory of one block. Made once, used for one block after the other.
class resident_block {
public:
  /// `common` names what all blocks of the run share.
  resident_block(const block_state& common, cluster_state& cluster, uint32_t rank);
  resident_block(const resident_block&) = delete;
  resident_block& operator=(const resident_block&) = delete;

  void start(uint64_t number, const std::array<uint32_t, 3>& index);

  block_state state;
  std::vector<warp> warps;

private:
  void fill(warp& w, const kernel::register_slot& slot, uint64_t value);
  void prepare_registers(warp& w);
  void set_special(warp& w, const kernel::special_slot& slot);
  uint64_t special_value(const warp& w, special which, uint32_t lane) const;

  const launch& what_;
  const kernel& code_;
  aligned_bytes registers_;
  std::vector<uint32_t> predicates_;
  aligned_bytes shared_;
  aligned_bytes local_;
};

/// Blocks that run together: those of a cluster, or a single one.
class resident_cluster {
public:
  resident_cluster(const block_state& common, const std::array<uint32_t, 3>& extent);
  resident_cluster(const resident_cluster&) = delete;
  resident_cluster& operator=(const resident_cluster&) = delete;

  /// The cluster of this number, in the order of the grid.
  void start(uint64_t number);

  cluster_state state;
  std::vector<std::unique_ptr<resident_block>> blocks;
  /// Of all blocks, in the order of their turns.
  std::vector<warp*> warps;
  /// Each of its warps has been shown to wait for a change while `block_state::changes` is this.
  uint64_t stuck_changes = UINT64_MAX;

private:
  const launch& what_;
};

} // namespace gristmill::ptx
