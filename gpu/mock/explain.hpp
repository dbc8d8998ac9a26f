#pragma once

#include "gpu/mock/clock.hpp"
#include "gpu/mock/profile.hpp"
#include "gpu/mock/ptx/ptx.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Where the time of a launch goes, for people and agents who want to make it shorter. Pure: from
/// the counts of a launch that was executed in full and the modelled time.
namespace gristmill {

/// A line that does much of the work.
struct hot_line {
  ptx::line_counts counts;
  /// Of all warp instructions of the launch.
  double share = 0;
  /// Mean of active lanes.
  double lanes = 0;
  /// Where most of its bytes go: "shared", "global", "local" or nothing.
  std::string memory;
  /// For each execution: wavefronts of shared memory, or sectors of global and local memory, and
  /// the fewest that could carry as many bytes.
  double passes = 0;
  double passes_ideal = 0;
};

struct launch_profile {
  uint32_t blocks_per_sm = 0;
  uint32_t warps_per_sm = 0;
  uint32_t warps_per_sm_max = 0;
  std::string limiter;
  uint32_t registers = 0;
  uint64_t shared_bytes = 0;
  double lanes_per_instruction = 0;
  uint64_t divergent_branches = 0;
  uint64_t global_sectors = 0;
  uint64_t global_sectors_ideal = 0;
  uint64_t shared_wavefronts = 0;
  uint64_t shared_wavefronts_ideal = 0;
  uint64_t local_bytes = 0;
  /// Warps that arrived at one.
  uint64_t barriers = 0;
  /// Most work first, at most `hot_lines_max`.
  std::vector<hot_line> lines;
  /// Sentences, most important first, at most `words_max`, each at most 300 bytes.
  std::vector<std::string> words;
};

constexpr size_t hot_lines_max = 12;
constexpr size_t words_max = 12;

/// What a launch was and did.
struct explained_launch {
  ptx::entry_info entry;
  std::array<uint32_t, 3> grid{1, 1, 1};
  std::array<uint32_t, 3> block{1, 1, 1};
  uint32_t dynamic_shared = 0;
  ptx::counts counts;
  std::vector<ptx::line_counts> lines;
  /// None where it could not be modelled.
  std::optional<launch_time> time;
};

launch_profile explain(const gpu_profile& gpu, const explained_launch& what);

} // namespace gristmill
