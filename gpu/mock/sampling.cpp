#include "gpu/mock/clock.hpp"

#include <algorithm>
#include <utility>

namespace gristmill {

namespace {

// Where in the grid single blocks are looked at, in eighths.
constexpr uint64_t probes[] = {1, 3, 5, 7};
constexpr uint64_t least_l2_share_bytes = 16 << 10;

/// Blocks take turns, as on a GPU: how much of what each of them reads is in L2 because of others.
/// Only for launches whose blocks read the same data; the others would pay for nothing. The sample
/// ends in the middle of the blocks, so it says only how they share.
void interleave(ptx::instance& state, ptx::launch what, sample& taken, const sampling& how) {
  if (taken.footprint_bytes == 0 || !reads_are_shared(taken))
    return;
  what.interleaved = true;
  what.timing = false;
  what.block_count = taken.grid_blocks;
  what.instruction_target = how.interleaved_instructions;
  const ptx::outcome run = ptx::run(state, what);
  // Counters and flags hold what the sample left there: what goes wrong now says nothing.
  if (run.failed || run.done.unshared_read_sectors == 0)
    return;
  taken.unshared_reads_left = static_cast<double>(run.done.dram_read_sectors)
    / static_cast<double>(run.done.unshared_read_sectors);
  const uint64_t written =
    run.done.l2_write_sectors + run.done[ptx::category::atomic_global].sectors;
  const double hits = static_cast<double>(run.done.l1_hits);
  taken.l1_share = hits / (hits + static_cast<double>(run.done.l2_sectors - written));
}

double work_of(const ptx::counts& done) {
  return static_cast<double>(done.warp_instructions) / static_cast<double>(done.blocks_run);
}

} // namespace

sample_outcome take_sample(const gpu_profile& gpu, ptx::instance& state,
  const ptx::entry_info& entry, ptx::launch what, uint64_t footprint_bytes, const sampling& how) {
  sample_outcome out;
  sample& taken = out.taken;
  taken.footprint_bytes = footprint_bytes;
  taken.grid_blocks = uint64_t{what.grid[0]} * what.grid[1] * what.grid[2];
  taken.threads = what.block[0] * what.block[1] * what.block[2];
  taken.dynamic_shared = what.dynamic_shared;
  const uint32_t resident = resident_blocks(gpu, entry, taken.threads, taken.dynamic_shared);
  const uint64_t wanted = uint64_t{std::max(resident, 1U)} * gpu.sm_count * std::max(how.waves, 1U);

  what.first_block = 0;
  what.block_count = std::min(taken.grid_blocks, wanted);
  what.instruction_target = how.instructions;
  what.instruction_limit = how.instruction_limit;
  what.caches = true;
  what.timing = true;
  what.hw = hardware_of(gpu, uint64_t{entry.static_shared} + what.dynamic_shared, resident);
  const uint64_t together = std::min(taken.grid_blocks, wanted / std::max(how.waves, 1U));
  what.hw.l2_share_bytes = std::max<uint64_t>(gpu.l2_bytes / together, least_l2_share_bytes);
  ptx::outcome run = ptx::run(state, what);
  taken.counts = std::move(run.done);
  out.failed = std::move(run.failed);
  if (out.failed || taken.counts.blocks_run == 0)
    return out;
  // A launch that was executed in full has left its results, which nothing may change again.
  if (taken.counts.blocks_run == taken.grid_blocks)
    return out;
  ptx::launch wave = what;
  wave.hw.l1_bytes = l1_beside(gpu, uint64_t{entry.static_shared} + what.dynamic_shared, resident);
  interleave(state, std::move(wave), taken, how);

  // The sample starts at block 0, so that what later blocks wait for has been done. Where the work
  // of a block depends on its place (a causal mask), that would be a biased start.
  what.caches = false;
  what.timing = false;
  what.block_count = 1;
  what.instruction_limit = std::max<uint64_t>(how.instructions, 1'000'000);
  const uint64_t sampled = taken.counts.blocks_run;
  const uint64_t rest = taken.grid_blocks - sampled;
  double seen = 0;
  int blocks = 0;
  for (const uint64_t eighths : probes) {
    what.first_block = sampled + (rest - 1) / 8 * eighths + (rest - 1) % 8 * eighths / 8;
    const ptx::outcome probe = ptx::run(state, what);
    // One that waits for its neighbours, or that stands on what was never computed, says nothing.
    if (probe.failed || probe.done.blocks_run != 1)
      continue;
    seen += work_of(probe.done);
    ++blocks;
  }
  if (blocks == 0)
    return out;
  const double work = work_of(taken.counts);
  const double elsewhere = seen / blocks;
  const double share = static_cast<double>(rest) / static_cast<double>(taken.grid_blocks);
  const double mean = work * (1 - share) + elsewhere * share;
  // Small differences are noise of the data, or the last block's ragged edge.
  const double imbalance = work > 0 ? mean / work : 1;
  if (imbalance > 1.05 || imbalance < 0.95)
    taken.imbalance = imbalance;
  return out;
}

} // namespace gristmill
