#include "gpu/mock/clock.hpp"

#include <algorithm>
#include <utility>

namespace gristmill {

namespace {

// Where in the grid single blocks are looked at, in eighths.
constexpr uint64_t probes[] = {1, 3, 5, 7};

double work_of(const ptx::counts& done) {
  return static_cast<double>(done.warp_instructions) / static_cast<double>(done.blocks_run);
}

} // namespace

sample_outcome take_sample(const gpu_profile& gpu, ptx::instance& state,
  const ptx::entry_info& entry, ptx::launch what, const sampling& how) {
  sample_outcome out;
  sample& taken = out.taken;
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
  ptx::outcome run = ptx::run(state, what);
  taken.counts = std::move(run.done);
  out.failed = std::move(run.failed);
  if (out.failed || taken.counts.blocks_run == 0 || taken.counts.blocks_run == taken.grid_blocks)
    return out;

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
