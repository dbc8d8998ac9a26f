#pragma once

#include "gpu/device.hpp"
#include "messages/result.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// The numbers of one GPU that the clock is made of. Every number comes from a data file and says
/// there where it is from: "datasheet", "measured" or "assumed".
struct gpu_profile {
  std::string name;
  std::string title;
  std::string arch;

  uint32_t sm_count = 0;
  /// Under load.
  double clock_ghz = 0;
  /// What kernels reach, not what the datasheet promises.
  double dram_tb_per_s = 0;
  double l2_tb_per_s = 0;
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
  double convert_rate = 0;
  double fp64_rate = 0;
  /// Wavefronts of the load/store unit per cycle and SM.
  double lsu_rate = 0;
  /// Dense bf16 operations per cycle and SM, and the share of them that mma.sync reaches.
  double tensor_flop_per_cycle = 0;
  double mma_efficiency = 0;

  /// Cycles.
  uint32_t alu_latency = 0;
  uint32_t sfu_latency = 0;
  uint32_t convert_latency = 0;
  uint32_t shared_latency = 0;
  uint32_t l1_latency = 0;
  uint32_t l2_latency = 0;
  uint32_t dram_latency = 0;
  uint32_t mma_latency = 0;
  uint32_t barrier_latency = 0;
  /// Cost of a launch (or memset, or copy) of its own.
  uint64_t launch_ns = 0;

  /// Field of the data file -> "datasheet", "measured" or "assumed".
  std::map<std::string, std::string> sources;
};

/// Names of the profiles, sorted.
std::vector<std::string> known_profiles();

/// Fails with `not_found`, naming the nearest known profile.
result<gpu_profile> profile(std::string_view name);

/// Reads one data file. Fails with `invalid_input` naming the field: unknown, missing, out of range
/// or without a source.
result<gpu_profile> parse_profile(std::string_view json, std::string_view file_name);

/// Version of the time model; part of every modelled time.
constexpr std::string_view clock_version = "mock-clock/1 uncalibrated";

/// The profile as a device shows it.
device_properties properties_of(const gpu_profile& gpu);

} // namespace gristmill
