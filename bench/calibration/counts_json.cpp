#include "bench/calibration/counts_json.hpp"

#include <nlohmann/json.hpp>

namespace gristmill::calibration {

std::string counts_json(const gpu_profile& gpu, const ptx::entry_info& entry, const sample& taken,
  const launch_time& time) {
  using json = nlohmann::ordered_json;
  const ptx::counts& c = taken.counts;
  json out{{"entry", entry.name}, {"grid", taken.grid_blocks}, {"threads", taken.threads},
    {"dynamic_shared", taken.dynamic_shared}, {"static_shared", entry.static_shared},
    {"registers", entry.registers}, {"resident", time.resident_blocks},
    {"limiter", occupancy_of(gpu, entry, taken.threads, taken.dynamic_shared).limiter},
    {"imbalance", taken.imbalance}, {"footprint_bytes", taken.footprint_bytes},
    {"unshared_reads_left",
      taken.unshared_reads_left ? json(*taken.unshared_reads_left) : json(nullptr)},
    {"blocks_run", c.blocks_run}, {"warp_instructions", c.warp_instructions},
    {"machine_instructions", c.machine.issue / 8}, {"l1_hits", c.l1_hits},
    {"l2_sectors", c.l2_sectors}, {"l2_write_sectors", c.l2_write_sectors},
    {"l2_read_requests", c.l2_read_requests}, {"l2_write_requests", c.l2_write_requests},
    {"dram_read_sectors", c.dram_read_sectors}, {"dram_write_sectors", c.dram_write_sectors},
    {"dram_lone_sectors", c.dram_lone_sectors}, {"l1_share", taken.l1_share},
    {"wgmma_flops", c.wgmma_flops}, {"unshared_read_sectors", c.unshared_read_sectors},
    {"crowded_read_sectors", c.crowded_read_sectors}, {"atomic_updates", c.atomic_updates},
    {"atomic_float_conflicts", c.atomic_float_conflicts}, {"hottest_updates", c.hottest_updates},
    {"hottest_float_conflicts", c.hottest_float_conflicts}, {"mma_flops", c.mma_flops},
    {"block_critical_cycles", c.block_critical_cycles}};
  for (size_t i = 0; i < c.by_category.size(); ++i) {
    const ptx::category_counts& n = c.by_category[i];
    out[to_string(static_cast<ptx::category>(i))] = {{"instructions", n.warp_instructions},
      {"sectors", n.sectors}, {"bytes", n.bytes}, {"wavefronts", n.wavefronts}};
  }
  json terms = json::object();
  for (const time_term& term : time.terms)
    terms[term.name] = static_cast<double>(term.ns);
  out["terms"] = terms;
  out["ns"] = time.ns;
  return out.dump();
}

} // namespace gristmill::calibration
