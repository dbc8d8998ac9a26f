#pragma once

#include "gpu/device.hpp"
#include "messages/result.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// How far the model was off where it was held against a GPU: a factor exp(mean |ln(modelled /
/// measured)|) over so many kernels.
struct model_error {
  /// Class of kernels; "all" for the whole.
  std::string kind;
  double factor = 0;
  uint32_t kernels = 0;
};

/// The numbers of one GPU that the clock is made of. Every number comes from a data file and says
/// there where it is from: "datasheet", "measured" (and by which probe) or "assumed".
struct gpu_profile {
  std::string name;
  std::string title;
  std::string arch;

  uint32_t sm_count = 0;
  /// Under load.
  double clock_ghz = 0;
  /// What kernels reach that only read, or only write, not what the datasheet promises. Both
  /// together take longer by a share, the most when they are equal; reads of single pairs of
  /// sectors take this many times as long.
  double dram_tb_per_s = 0;
  double dram_write_tb_per_s = 0;
  double dram_mix_cost = 0;
  /// The share among blocks that start at once and walk over the data together.
  double dram_walk_mix_cost = 0;
  double dram_lone_cost = 0;
  double l2_tb_per_s = 0;
  /// Requests for any sectors of one line.
  double l2_read_requests_per_ns = 0;
  double l2_write_requests_per_ns = 0;
  /// An update by an atomic where all go to the same 512 bytes; of floats on one address, what each
  /// one after the first takes in addition; updates of the whole GPU.
  double atomic_ns = 0;
  double atomic_float_ns = 0;
  double atomics_per_ns = 0;
  uint64_t memory_bytes = 0;
  uint64_t l2_bytes = 0;
  /// Shared memory and L1 of an SM together.
  uint64_t l1_and_shared_bytes = 0;
  uint64_t shared_per_sm = 0;
  uint64_t shared_per_block = 0;
  uint32_t warps_per_sm = 0;
  uint32_t blocks_per_sm = 0;
  uint32_t registers_per_sm = 0;

  /// Warp instructions per cycle and SM.
  double issue_rate = 0;
  double fp32_rate = 0;
  double integer_rate = 0;
  double sfu_rate = 0;
  double fp64_rate = 0;
  /// Wavefronts of the load/store unit per cycle and SM.
  double lsu_rate = 0;
  /// Dense bf16 operations per cycle and SM, and the share of them that mma.sync and wgmma reach.
  double tensor_flop_per_cycle = 0;
  double mma_efficiency = 0;
  double wgmma_efficiency = 0;

  /// Cycles.
  uint32_t alu_latency = 0;
  /// Of half precision and of fp64.
  uint32_t half_latency = 0;
  uint32_t sfu_latency = 0;
  uint32_t convert_latency = 0;
  uint32_t shared_latency = 0;
  uint32_t l1_latency = 0;
  uint32_t l2_latency = 0;
  uint32_t dram_latency = 0;
  uint32_t mma_latency = 0;
  uint32_t barrier_latency = 0;
  /// In addition, for each warp of the block.
  uint32_t barrier_warp_latency = 0;
  /// Starting a block takes the whole GPU this long; between two blocks that follow each other on
  /// an SM lie so many cycles.
  double block_start_ns = 0;
  uint32_t block_turnover_cycles = 0;
  /// Cost of a launch (or memset, or copy) of its own, and of the two events around a call.
  uint64_t launch_ns = 0;
  uint64_t event_ns = 0;

  /// Field of the data file -> "datasheet", "measured" or "assumed".
  std::map<std::string, std::string> sources;
  /// Field -> probe that it was measured with.
  std::map<std::string, std::string> probes;
  /// Kernels that no constant was fitted to, "all" first. Empty: never held against this GPU.
  std::vector<model_error> errors;
};

/// Names of the profiles, sorted.
std::vector<std::string> known_profiles();

/// Fails with `not_found`, naming the nearest known profile.
result<gpu_profile> profile(std::string_view name);

/// Reads one data file. Fails with `invalid_input` naming the field: unknown, missing, out of range
/// or without a source.
result<gpu_profile> parse_profile(std::string_view json, std::string_view file_name);

/// Version of the time model; part of every modelled time.
constexpr std::string_view clock_version = "mock-clock/3";

/// What the model's times are worth for this GPU, to stand beside them: "off by 12 % on average (76
/// kernels)", or "uncalibrated".
std::string band_of(const gpu_profile& gpu);
/// The same with each class: "off by 12 % on average (76 kernels; streaming 5 %, …)".
std::string bands_of(const gpu_profile& gpu);

/// The profile as a device shows it.
device_properties properties_of(const gpu_profile& gpu);

} // namespace gristmill
