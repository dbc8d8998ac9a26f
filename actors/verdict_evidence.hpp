#pragma once

#include "actors/run_context.hpp"
#include "messages/evidence.hpp"
#include "messages/measure.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gristmill {

/// Everything a verdict rests on. `yardsticks` is what the scorer holds the workloads against now,
/// `attempts` and `retrials` as in `evidence`.
evidence evidence_of(const run_context& context, const judge_request& request,
  const evaluation& judged, std::vector<workload_yardstick> yardsticks, uint32_t attempts,
  uint32_t retrials);

/// Puts it into the blob store. What cannot be stored is told in the program's own log, and the
/// verdict then names no evidence.
blob_ref store_evidence(const run_context& context, const evidence& what);

/// The time below which a time of this workload is none; 0 where nothing is known of the device.
uint64_t physical_floor_of(
  const run_context& context, const std::string& problem_name, const std::string& uuid);

} // namespace gristmill
