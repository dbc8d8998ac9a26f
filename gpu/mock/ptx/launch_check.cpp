#include "gpu/mock/ptx/launch_check.hpp"

#include "gpu/mock/ptx/limits.hpp"
#include "gpu/mock/ptx/resident.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gristmill::ptx {
namespace {

/// What a GPU holds on one SM.
constexpr uint64_t blocks_per_sm_max = 32;

std::string check_clusters(const launch& what, const kernel& code) {
  const entry_info& info = code.info;
  const std::array<uint32_t, 3> none{1, 1, 1};
  if (info.cluster[0] != 0 && what.cluster != none && what.cluster != info.cluster)
    return fmt::format("the launch has clusters of {} blocks; the entry wants {}",
      fmt::join(what.cluster, " x "), fmt::join(info.cluster, " x "));
  const std::array<uint32_t, 3> cluster = cluster_extent(what, code);
  uint64_t blocks = 1;
  for (size_t i = 0; i < 3; ++i) {
    blocks *= std::min(cluster[i], cluster_blocks_max + 1);
    if (cluster[i] == 0 || blocks > cluster_blocks_max)
      return fmt::format("a cluster of {} blocks; 1 to {} are possible", fmt::join(cluster, " x "),
        cluster_blocks_max);
    if (what.grid[i] % cluster[i] != 0)
      return fmt::format(
        "the grid has {} blocks in dimension {}, which is not a multiple of {}, the "
        "blocks of a cluster",
        what.grid[i], i, cluster[i]);
  }
  if (blocks > resident_limit(what))
    return fmt::format(
      "a cluster of {} blocks; the device holds {} at once", blocks, resident_limit(what));
  return {};
}

} // namespace

uint64_t resident_limit(const launch& what) {
  return what.resident_blocks != 0 ? what.resident_blocks : what.hw.sms * blocks_per_sm_max;
}

std::string check_launch(const launch& what, const kernel& code) {
  const entry_info& info = code.info;
  constexpr std::array<uint32_t, 3> grid_max{INT32_MAX, 65535, 65535};
  constexpr std::array<uint32_t, 3> block_max{1024, 1024, 64};
  for (size_t i = 0; i < 3; ++i) {
    if (what.grid[i] == 0 || what.grid[i] > grid_max[i])
      return fmt::format("the grid has {} blocks in dimension {}; 1 to {} are possible",
        what.grid[i], i, grid_max[i]);
    if (what.block[i] == 0 || what.block[i] > block_max[i])
      return fmt::format("the block has {} threads in dimension {}; 1 to {} are possible",
        what.block[i], i, block_max[i]);
  }
  const uint64_t threads = uint64_t{what.block[0]} * what.block[1] * what.block[2];
  const uint32_t threads_max = info.max_threads != 0 ? std::min(info.max_threads, 1024U) : 1024;
  if (threads > threads_max)
    return fmt::format("the block has {} threads; at most {} are possible", threads, threads_max);
  if (info.required_block[0] != 0 && what.block != info.required_block)
    return fmt::format("the block has {} threads; the entry wants {} (.reqntid)",
      fmt::join(what.block, " x "), fmt::join(info.required_block, " x "));
  if (what.parameters.size() < code.parameter_bytes)
    return fmt::format("{} bytes of parameters were given; {} are needed", what.parameters.size(),
      code.parameter_bytes);
  if (what.parameters.size() > 64U << 10)
    return fmt::format("{} bytes of parameters were given", what.parameters.size());
  if (uint64_t{code.dynamic_shared_offset()} + what.dynamic_shared
    > what.hw.shared_bytes_per_block_max)
    return fmt::format("{} bytes of shared memory are needed; a block has {}",
      uint64_t{code.dynamic_shared_offset()} + what.dynamic_shared,
      what.hw.shared_bytes_per_block_max);
  if (what.first_block >= uint64_t{what.grid[0]} * what.grid[1] * what.grid[2])
    return fmt::format("block {} is past the end of the grid", what.first_block);
  if (what.hw.sms == 0)
    return "the modelled GPU has no SM";
  if (std::string why = check_clusters(what, code); !why.empty())
    return why;
  const uint64_t blocks = uint64_t{what.grid[0]} * what.grid[1] * what.grid[2];
  if (what.cooperative && blocks > resident_limit(what))
    return fmt::format(
      "a cooperative grid of {} blocks; the device holds {} at once", blocks, resident_limit(what));
  std::vector<const region*> sorted;
  for (const region& r : what.memory) {
    if (r.device % 256 != 0)
      return fmt::format("region '{}' does not begin at a multiple of 256", r.name);
    if (r.device == 0 || r.device >= device_address_end || r.bytes > device_address_end - r.device)
      return fmt::format("region '{}' is outside the device addresses", r.name);
    if (r.bytes > 0)
      sorted.push_back(&r);
  }
  std::sort(sorted.begin(), sorted.end(),
    [](const region* a, const region* b) { return a->device < b->device; });
  for (size_t i = 1; i < sorted.size(); ++i)
    if (sorted[i - 1]->device + sorted[i - 1]->bytes > sorted[i]->device)
      return fmt::format("regions '{}' and '{}' overlap", sorted[i - 1]->name, sorted[i]->name);
  return {};
}

} // namespace gristmill::ptx
