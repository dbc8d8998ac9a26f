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
// The carve-out of shared memory leaves L1 this much at least.
constexpr uint64_t least_l1_bytes = 16 << 10;

uint64_t rounded_up(uint64_t value, uint64_t step) {
  return (value + step - 1) / step * step;
}

// The soft maximum: units of a GPU overlap, but the more of them are nearly full, the less.
// Newton's iteration instead of std::pow, whose last bit is the library's own; the scale keeps the
// powers far from the ends of a double.
double four_norm(const std::vector<double>& values) {
  const double largest = *std::max_element(values.begin(), values.end());
  if (largest <= 0)
    return 0;
  double sum = 0;
  for (const double value : values) {
    const double x = value / largest;
    sum += x * x * x * x;
  }
  // sum lies in [1, n]: from above, the iteration falls monotonically to the root.
  double root = sum;
  for (int i = 0; i < 64; ++i) {
    const double cube = root * root * root;
    const double next = root - (root * cube - sum) / (4 * cube);
    if (next >= root)
      break;
    root = next;
  }
  return root * largest;
}

double to_two_and_a_half(double x) {
  return x * x * std::sqrt(x);
}

// Between DRAM and latency the maximum is softer than among units: queues form before DRAM is full.
// What few streams of loads have under way arrives in bursts, which take their part of the time of
// DRAM on top of the latency. Exponent and part are fitted on the probe `launching: read4`.
constexpr double burst_part = 0.6;

double waiting_ns(double dram, double latency, double streams) {
  const double path = latency + burst_part * dram / streams;
  const double largest = std::max(dram, path);
  if (dram <= 0 || latency <= 0)
    return std::max(dram, latency);
  const double sum = to_two_and_a_half(dram / largest) + to_two_and_a_half(path / largest);
  // As above; the square root is exact to the last bit everywhere.
  double root = sum;
  for (int i = 0; i < 64; ++i) {
    const double next = root - (to_two_and_a_half(root) - sum) / (2.5 * root * std::sqrt(root));
    if (next >= root)
      break;
    root = next;
  }
  return root * largest;
}

uint64_t to_ns(double ns) {
  return static_cast<uint64_t>(std::llround(ns));
}

/// `streams`: blocks of a multiprocessor that load beside each other.
void finish(launch_time& time, const gpu_profile& gpu, double streams) {
  std::vector<double> values;
  double largest = -1, dram = 0, latency = 0;
  for (const time_term& term : time.terms) {
    if (term.name == "dram")
      dram = term.ns;
    else if (term.name == "latency")
      latency = term.ns;
    else
      values.push_back(term.ns);
    if (term.ns > largest) {
      largest = term.ns;
      time.bound = term.name;
    }
  }
  values.push_back(waiting_ns(dram, latency, streams));
  time.ns = gpu.launch_ns + to_ns(four_norm(values));
  // A kernel that does next to nothing is all launch cost.
  if (largest < static_cast<double>(gpu.launch_ns))
    time.bound = "launch";
  time.terms.push_back({"launch", static_cast<double>(gpu.launch_ns)});
}

double number(uint64_t count) {
  return static_cast<double>(count);
}

/// Sectors that requests to L2 read.
double read_sectors(const ptx::counts& done) {
  return number(done.l2_sectors - done.l2_write_sectors - done[category::atomic_global].sectors);
}

/// Of the sample. Reads and writes go through wires of their own.
double l2_ns(const gpu_profile& gpu, const sample& of) {
  const ptx::counts& done = of.counts;
  // TB/s are kB/ns.
  const double sector_ns = sector_bytes / (gpu.l2_tb_per_s * 1e3);
  const double past_l1 = read_sectors(done);
  const double asked = number(done.l1_hits) + past_l1;
  // One block at a time found less in L1 than all of a multiprocessor find together.
  const double left =
    of.l1_share > 0 && past_l1 > 0 ? std::min(1.0, (1 - of.l1_share) * asked / past_l1) : 1;
  const double read = left
    * std::max(past_l1 * sector_ns, number(done.l2_read_requests) / gpu.l2_read_requests_per_ns);
  const double written = std::max(number(done.l2_write_sectors) * sector_ns,
    number(done.l2_write_requests) / gpu.l2_write_requests_per_ns);
  return std::max(read, written);
}

/// Of reading and writing so many sectors.
double dram_ns(
  const gpu_profile& gpu, double read_sectors, double written_sectors, double mix_cost) {
  const double read = read_sectors * sector_bytes / (gpu.dram_tb_per_s * 1e3);
  const double written = written_sectors * sector_bytes / (gpu.dram_write_tb_per_s * 1e3);
  if (read + written <= 0)
    return 0;
  const double part = read / (read + written);
  return (read + written) * (1 + mix_cost * 4 * part * (1 - part));
}

/// Of the whole grid.
double dram_ns(const gpu_profile& gpu, const sample& of, double whole, double mix_cost) {
  const ptx::counts& done = of.counts;
  double read = of.unshared_reads_left
    ? number(done.unshared_read_sectors) * *of.unshared_reads_left
    : number(done.dram_read_sectors);
  // What a block reads again and has no room for, where nobody else keeps it in L2.
  if (!reads_are_shared(of))
    read += number(
      done.crowded_read_sectors - std::min(done.crowded_read_sectors, done.unshared_read_sectors));
  read *= whole;
  // A sample much smaller than a wave sees little of what blocks share through L2.
  if (of.footprint_bytes > 0 && of.footprint_bytes <= gpu.l2_bytes / 2)
    read = std::min(read, number(of.footprint_bytes) / sector_bytes);
  const double lone = done.dram_read_sectors == 0
    ? 0
    : number(done.dram_lone_sectors) / number(done.dram_read_sectors);
  read *= 1 + lone * (gpu.dram_lone_cost - 1);
  return dram_ns(gpu, read, number(done.dram_write_sectors) * whole, mix_cost);
}

/// Of the sample: the busiest piece of memory takes one update after the other.
double atomics_ns(const gpu_profile& gpu, const ptx::counts& done) {
  return std::max(number(done.hottest_updates) * gpu.atomic_ns
      + number(done.hottest_float_conflicts) * gpu.atomic_float_ns,
    number(done.atomic_updates) / gpu.atomics_per_ns);
}

double mma_cycles(const gpu_profile& gpu, const ptx::counts& done) {
  return number(done.mma_flops - done.wgmma_flops)
    / (gpu.tensor_flop_per_cycle * gpu.mma_efficiency);
}

double wgmma_cycles(const gpu_profile& gpu, const ptx::counts& done) {
  return number(done.wgmma_flops) / (gpu.tensor_flop_per_cycle * gpu.wgmma_efficiency);
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
  uint32_t most = 255;
  if (entry.registers_max > 0)
    most = std::min(most, entry.registers_max);
  // The assembler spills rather than break a promise of the launch bounds.
  if (entry.blocks_per_sm_min > 0 && entry.max_threads > 0)
    most = static_cast<uint32_t>(std::min<uint64_t>(most,
      gpu.registers_per_sm / (entry.blocks_per_sm_min * rounded_up(entry.max_threads, 32)) / 8
        * 8));
  const uint64_t per_thread = std::clamp<uint32_t>(std::min(entry.registers, most), 16, 255);
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

bool reads_are_shared(const sample& of) {
  if (of.grid_blocks <= 1 || of.footprint_bytes == 0 || of.counts.blocks_run == 0)
    return of.footprint_bytes == 0;
  // Blocks read the same data when, one by one, they read clearly more than the buffers hold.
  return number(of.counts.unshared_read_sectors) * sector_bytes * number(of.grid_blocks)
    > 1.1 * number(of.footprint_bytes) * number(of.counts.blocks_run);
}

uint64_t l1_beside(const gpu_profile& gpu, uint64_t shared_per_block, uint32_t resident) {
  const uint64_t shared =
    shared_per_block == 0 ? 0 : rounded_up(shared_per_block + 1024, 128) * resident;
  // There is always some.
  const uint64_t left = gpu.l1_and_shared_bytes - std::min(gpu.l1_and_shared_bytes, shared);
  return std::max<uint64_t>(left, least_l1_bytes);
}

ptx::hardware hardware_of(const gpu_profile& gpu, uint64_t shared_per_block, uint32_t resident) {
  ptx::hardware hw;
  hw.l2_bytes = gpu.l2_bytes;
  hw.l1_bytes = l1_beside(gpu, shared_per_block, resident) / std::max(resident, 1U);
  hw.sms = gpu.sm_count;
  hw.alu_latency = gpu.alu_latency;
  hw.half_latency = gpu.half_latency;
  hw.sfu_latency = gpu.sfu_latency;
  hw.convert_latency = gpu.convert_latency;
  hw.shared_latency = gpu.shared_latency;
  hw.l1_latency = gpu.l1_latency;
  hw.l2_latency = gpu.l2_latency;
  hw.dram_latency = gpu.dram_latency;
  hw.mma_latency = gpu.mma_latency;
  hw.barrier_latency = gpu.barrier_latency;
  hw.barrier_warp_latency = gpu.barrier_warp_latency;
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

  // In eighths of an instruction.
  const ptx::machine_counts& machine = of.counts.machine;
  const double total = number(machine.issue) / 8;
  const double arithmetic =
    std::max({number(machine.fma) / gpu.fp32_rate, number(machine.heavy) / gpu.integer_rate,
      number(machine.alu) / gpu.integer_rate, number(machine.xu) / gpu.sfu_rate,
      number(machine.fp64) / gpu.fp64_rate})
    / 8;
  const double shared = waves(category::load_shared) + waves(category::store_shared)
    + waves(category::atomic_shared) + warps(category::shuffle);
  // What atomics cost beside their request stands in a term of its own.
  const double global = waves(category::load_global) + waves(category::store_global)
    + warps(category::atomic_global) + waves(category::load_local) + waves(category::store_local)
    + waves(category::async);

  // A warp that issues mma.sync waits for the loads of its fragments, and has the registers for few
  // of them: the two do not overlap. wgmma reads shared memory itself.
  const double mma = mma_cycles(gpu, of.counts);

  const double path = static_cast<double>(of.counts.block_critical_cycles) / sampled * of.imbalance;
  const double rounds = std::max(1.0, blocks_on_sm / static_cast<double>(time.resident_blocks));

  // Blocks that start together walk over DRAM together; those that follow them do not.
  const double mix_cost = gpu.dram_mix_cost + (gpu.dram_walk_mix_cost - gpu.dram_mix_cost) / rounds;

  time.terms = {
    {"issue", total / gpu.issue_rate * share * cycle},
    {"arithmetic", arithmetic * share * cycle},
    {mma > 0              ? "mma"
        : shared > global ? "shared"
                          : "load_store",
      ((shared + global) / gpu.lsu_rate + mma) * share * cycle},
    {"tensor", wgmma_cycles(gpu, of.counts) * share * cycle},
    {"l2", l2_ns(gpu, of) * whole},
    {"dram", dram_ns(gpu, of, whole, mix_cost)},
    {"atomics", atomics_ns(gpu, of.counts) * whole},
    {"latency", rounds * (path + gpu.block_turnover_cycles) * cycle},
    {"blocks", static_cast<double>(of.grid_blocks) * gpu.block_start_ns},
  };
  finish(time, gpu,
    std::clamp(
      number(of.grid_blocks) / gpu.sm_count, 1.0, static_cast<double>(time.resident_blocks)));
  return time;
}

launch_time model_transfer(const gpu_profile& gpu, uint64_t read_bytes, uint64_t written_bytes) {
  launch_time time;
  time.terms = {{"dram",
    dram_ns(gpu, number(read_bytes) / sector_bytes, number(written_bytes) / sector_bytes,
      gpu.dram_mix_cost)}};
  finish(time, gpu, 1);
  return time;
}

call_time sum_of(const gpu_profile& gpu, const std::vector<launch_time>& steps) {
  call_time sum;
  if (steps.empty())
    return sum;
  sum.ns = gpu.event_ns;
  sum.terms.push_back({"events", static_cast<double>(gpu.event_ns)});
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
