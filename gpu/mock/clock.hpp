#pragma once

#include "gpu/device.hpp"
#include "gpu/mock/profile.hpp"
#include "gpu/mock/ptx/ptx.hpp"
#include "messages/measure.hpp"
#include "messages/result.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gristmill {

/// A modelled time. It is never measured, and whoever shows it says so (`gpu_profile`,
/// `clock_version`).
struct launch_time {
  uint64_t ns = 0;
  /// What each resource alone would take; they overlap, so they do not add up.
  std::vector<time_term> terms;
  /// Name of the largest term.
  std::string bound;
  /// Blocks that an SM holds at once.
  uint32_t resident_blocks = 0;
  uint64_t blocks_sampled = 0;
};

/// Blocks of an entry that one SM holds at once, and what there is not enough of for one more.
struct occupancy {
  uint32_t blocks = 0;
  /// "block slots", "threads", "registers" or "shared memory".
  std::string limiter;
};
occupancy occupancy_of(
  const gpu_profile& gpu, const ptx::entry_info& entry, uint32_t threads, uint32_t dynamic_shared);

/// `occupancy_of(…).blocks`: limited by block slots, warps, registers and shared memory. 0 when not
/// even one fits.
uint32_t resident_blocks(
  const gpu_profile& gpu, const ptx::entry_info& entry, uint32_t threads, uint32_t dynamic_shared);

/// What shared memory leaves of an SM's L1 while so many blocks are resident.
uint64_t l1_beside(const gpu_profile& gpu, uint64_t shared_per_block, uint32_t resident);

/// The caches and latencies of the profile for the interpreter. All resident warps share the L1
/// of their SM, and one block at a time is interpreted, so it gets its part of that.
ptx::hardware hardware_of(const gpu_profile& gpu, uint64_t shared_per_block, uint32_t resident);

/// What was executed of a launch: the whole grid or a sample of its blocks.
struct sample {
  uint64_t grid_blocks = 0;
  uint32_t threads = 0;
  uint32_t dynamic_shared = 0;
  ptx::counts counts;
  /// Mean work of a block of the whole grid over that of a sampled one; 1 when all blocks are
  /// alike.
  double imbalance = 1;
  /// Bytes of the buffers that the launch was given; 0 when unknown. When they all fit in L2,
  /// nothing is read from DRAM twice.
  uint64_t footprint_bytes = 0;
  /// Where blocks were interleaved: sectors that came from DRAM, for each that would have come
  /// without other blocks. It says what the order of the blocks is worth.
  std::optional<double> unshared_reads_left;
  /// There, too: the share of the reads that L1 answered, all blocks of a multiprocessor together.
  double l1_share = 0;
};

/// Whether blocks read data that other blocks read as well; true, too, when nobody knows.
bool reads_are_shared(const sample& of);

/// The time model: counts of the sample, occupancy and the profile to nanoseconds.
///
/// Each resource (issue slots, arithmetic, load/store unit, tensor cores, L2, DRAM, atomics, the
/// latency of the critical path of a block, and the starting of blocks) has the time that it alone
/// would need; the launch takes a soft maximum of them (of DRAM and latency their 2.5-norm, with it
/// and the others the 4-norm), plus the cost of a launch. Uses + - * / and square roots only, so
/// that every build gives the same nanoseconds. Fails with `refused` when no block fits on an SM.
result<launch_time> model_launch(
  const gpu_profile& gpu, const ptx::entry_info& entry, const sample& of);

/// A memset (reads nothing) or a copy of that many bytes.
launch_time model_transfer(const gpu_profile& gpu, uint64_t read_bytes, uint64_t written_bytes);

/// One call made of several steps, run one after the other, between two events.
call_time sum_of(const gpu_profile& gpu, const std::vector<launch_time>& steps);

/// How much of a launch is executed for the clock.
struct sampling {
  /// No further block is started once so many warp instructions have been executed.
  uint64_t instructions = 6'000'000;
  /// A launch whose sample needs more than this has no modelled time.
  uint64_t instruction_limit = 1'000'000'000;
  /// Waves: blocks that the whole GPU holds at once.
  uint32_t waves = 2;
  /// The same for the blocks that take turns (`sample::unshared_reads_left`).
  uint64_t interleaved_instructions = 3'000'000;
  /// And where a launch is looked at for what it makes of results that were not computed.
  uint64_t dependence_instructions = 300'000;
};

/// The sample of a launch, or the fault that it met.
struct sample_outcome {
  sample taken;
  std::optional<ptx::fault> failed;
};

/// Executes one or two waves of consecutive blocks at true size with caches and critical path on.
/// `what` says entry, shape, parameters and memory; its sampling and limit fields are set here.
/// Where the grid is larger than the sample, a few single blocks from the rest of it are executed
/// too, to see whether they do as much work (`sample::imbalance`). Where blocks read the same data,
/// a wave of them is executed once more, interleaved.
sample_outcome take_sample(const gpu_profile& gpu, ptx::instance& state,
  const ptx::entry_info& entry, ptx::launch what, uint64_t footprint_bytes, const sampling& how);

} // namespace gristmill
