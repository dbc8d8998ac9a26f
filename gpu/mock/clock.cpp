#include "gpu/mock/clock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace gristmill {

namespace {

using ptx::category;

// A sector is what the memory system moves at least.
constexpr double sector_bytes = 32;

uint64_t rounded_up(uint64_t value, uint64_t step) {
  return (value + step - 1) / step * step;
}

// The exponent of the soft maximum. Newton's iteration instead of std::pow, whose last bit is the
// library's own; the scale keeps the powers far from the ends of a double.
double five_norm(const std::vector<double>& values) {
  const double largest = *std::max_element(values.begin(), values.end());
  if (largest <= 0)
    return 0;
  double sum = 0;
  for (const double value : values) {
    const double x = value / largest;
    sum += x * x * x * x * x;
  }
  // sum lies in [1, n]: from above, the iteration falls monotonically to the root.
  double root = sum;
  for (int i = 0; i < 64; ++i) {
    const double p = root * root * root * root;
    const double next = root - (root * p - sum) / (5 * p);
    if (next >= root)
      break;
    root = next;
  }
  return root * largest;
}

uint64_t to_ns(double ns) {
  return static_cast<uint64_t>(std::llround(ns));
}

void finish(launch_time& time, const gpu_profile& gpu) {
  std::vector<double> values;
  double largest = -1;
  for (const time_term& term : time.terms) {
    values.push_back(term.ns);
    if (term.ns > largest) {
      largest = term.ns;
      time.bound = term.name;
    }
  }
  time.ns = gpu.launch_ns + to_ns(five_norm(values));
  // A kernel that does next to nothing is all launch cost.
  if (largest < static_cast<double>(gpu.launch_ns))
    time.bound = "launch";
  time.terms.push_back({"launch", static_cast<double>(gpu.launch_ns)});
}

} // namespace

occupancy occupancy_of(
  const gpu_profile& gpu, const ptx::entry_info& entry, uint32_t threads, uint32_t dynamic_shared) {
  const uint32_t warps = (threads + 31) / 32;
  if (warps == 0 || warps > gpu.warps_per_sm)
    return {0, "threads"};
  uint64_t blocks = gpu.blocks_per_sm;
  occupancy found{0, "block slots"};
  const auto limit = [&](uint64_t most, const char* by) {
    if (most >= blocks)
      return;
    blocks = most;
    found.limiter = by;
  };
  limit(gpu.warps_per_sm / warps, "threads");
  // Registers are given to warps in units of 256; no thread has fewer than 16 or more than 255.
  const uint64_t per_thread = std::clamp<uint32_t>(entry.registers, 16, 255);
  limit(gpu.registers_per_sm / rounded_up(per_thread * 32, 256) / warps, "registers");
  const uint64_t shared = uint64_t{entry.static_shared} + dynamic_shared;
  if (shared > gpu.shared_per_block)
    return {0, "shared memory"};
  // The system keeps 1 KiB of shared memory for each block.
  if (shared > 0)
    limit(gpu.shared_per_sm / rounded_up(shared + 1024, 128), "shared memory");
  found.blocks = static_cast<uint32_t>(blocks);
  return found;
}

uint32_t resident_blocks(
  const gpu_profile& gpu, const ptx::entry_info& entry, uint32_t threads, uint32_t dynamic_shared) {
  return occupancy_of(gpu, entry, threads, dynamic_shared).blocks;
}

ptx::hardware hardware_of(const gpu_profile& gpu, uint64_t shared_per_block, uint32_t resident) {
  ptx::hardware hw;
  hw.l2_bytes = gpu.l2_bytes;
  const uint64_t shared =
    shared_per_block == 0 ? 0 : rounded_up(shared_per_block + 1024, 128) * resident;
  // One block at a time is interpreted, where the real L1 serves several at once: half of it is a
  // fair share. There is always some.
  const uint64_t left = gpu.l1_and_shared_bytes - std::min(gpu.l1_and_shared_bytes, shared);
  hw.l1_bytes = std::clamp<uint64_t>(left, 16 << 10, gpu.l1_and_shared_bytes / 2);
  hw.sms = gpu.sm_count;
  hw.alu_latency = gpu.alu_latency;
  hw.sfu_latency = gpu.sfu_latency;
  hw.convert_latency = gpu.convert_latency;
  hw.shared_latency = gpu.shared_latency;
  hw.l1_latency = gpu.l1_latency;
  hw.l2_latency = gpu.l2_latency;
  hw.dram_latency = gpu.dram_latency;
  hw.mma_latency = gpu.mma_latency;
  hw.barrier_latency = gpu.barrier_latency;
  return hw;
}

result<launch_time> model_launch(
  const gpu_profile& gpu, const ptx::entry_info& entry, const sample& of) {
  launch_time time;
  time.resident_blocks = resident_blocks(gpu, entry, of.threads, of.dynamic_shared);
  time.blocks_sampled = of.counts.blocks_run;
  if (time.resident_blocks == 0)
    return fail(errc::refused,
      fmt::format("no block of {} fits on an SM of {}: {} threads, {} registers each, {} bytes of "
                  "shared memory",
        entry.name, gpu.name, of.threads, entry.registers,
        uint64_t{entry.static_shared} + of.dynamic_shared));
  if (of.counts.blocks_run == 0 || of.grid_blocks == 0)
    return fail(errc::invalid_input, fmt::format("no block of {} was sampled", entry.name));

  const auto warps = [&](
                       category c) { return static_cast<double>(of.counts[c].warp_instructions); };
  const auto waves = [&](category c) { return static_cast<double>(of.counts[c].wavefronts); };

  // The busiest SM has this many blocks; `share` takes counts of the sample to it.
  const double blocks_on_sm =
    static_cast<double>((of.grid_blocks + gpu.sm_count - 1) / gpu.sm_count);
  const double sampled = static_cast<double>(of.counts.blocks_run);
  const double share = blocks_on_sm / sampled * of.imbalance;
  const double whole = static_cast<double>(of.grid_blocks) / sampled * of.imbalance;
  const double cycle = 1.0 / gpu.clock_ghz; // ns

  // Of the integer instructions of PTX about a quarter folds into addresses and never issues.
  const double integer = warps(category::integer) * 0.75;
  const double fp32 = warps(category::fp32) + warps(category::fp16);
  const double total = static_cast<double>(of.counts.warp_instructions)
    - warps(category::integer) * 0.25 - warps(category::other);
  const double arithmetic =
    std::max({fp32 / gpu.fp32_rate, integer / gpu.integer_rate, warps(category::sfu) / gpu.sfu_rate,
      warps(category::fp64) / gpu.fp64_rate, warps(category::convert) / gpu.convert_rate});
  const double shared = waves(category::load_shared) + waves(category::store_shared)
    + waves(category::atomic_shared) + warps(category::shuffle);
  const double global = waves(category::load_global) + waves(category::store_global)
    + waves(category::atomic_global) + waves(category::load_local) + waves(category::store_local)
    + waves(category::async);
  const double flops = static_cast<double>(of.counts.mma_flops);

  double dram_sectors = static_cast<double>(of.counts.dram_read_sectors) * whole;
  // A sample much smaller than a wave sees little of what blocks share through L2.
  if (of.footprint_bytes > 0 && of.footprint_bytes <= gpu.l2_bytes / 2)
    dram_sectors = std::min(dram_sectors, static_cast<double>(of.footprint_bytes) / sector_bytes);
  dram_sectors += static_cast<double>(of.counts.dram_write_sectors) * whole;

  const double path = static_cast<double>(of.counts.block_critical_cycles) / sampled * of.imbalance;
  const double rounds = std::max(1.0, blocks_on_sm / static_cast<double>(time.resident_blocks));

  time.terms = {
    {"issue", total / gpu.issue_rate * share * cycle},
    {"arithmetic", arithmetic * share * cycle},
    {shared > global ? "shared" : "load_store", (shared + global) / gpu.lsu_rate * share * cycle},
    {"tensor", flops / (gpu.tensor_flop_per_cycle * gpu.mma_efficiency) * share * cycle},
    // TB/s are kB/ns.
    {"l2",
      static_cast<double>(of.counts.l2_sectors) * sector_bytes * whole / (gpu.l2_tb_per_s * 1e3)},
    {"dram", dram_sectors * sector_bytes / (gpu.dram_tb_per_s * 1e3)},
    {"latency", rounds * path * cycle},
  };
  finish(time, gpu);
  return time;
}

launch_time model_transfer(const gpu_profile& gpu, uint64_t read_bytes, uint64_t written_bytes) {
  launch_time time;
  const double bytes = static_cast<double>(read_bytes) + static_cast<double>(written_bytes);
  time.terms = {{"dram", bytes / (gpu.dram_tb_per_s * 1e3)}};
  finish(time, gpu);
  return time;
}

call_time sum_of(const std::vector<launch_time>& steps) {
  call_time sum;
  for (const launch_time& step : steps) {
    sum.ns += step.ns;
    for (const time_term& term : step.terms) {
      const auto same = [&](const time_term& x) { return x.name == term.name; };
      const auto found = std::find_if(sum.terms.begin(), sum.terms.end(), same);
      if (found == sum.terms.end())
        sum.terms.push_back(term);
      else
        found->ns = found->ns + term.ns;
    }
  }
  double largest = -1;
  for (const time_term& term : sum.terms)
    if (term.ns > largest) {
      largest = term.ns;
      sum.bound = term.name;
    }
  return sum;
}

} // namespace gristmill
