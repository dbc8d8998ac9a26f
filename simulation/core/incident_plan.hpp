#pragma once

#include "messages/result.hpp"
#include "simulation/model/scenario.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace gristmill {

/// A GPU goes or comes back.
struct gpu_edge {
  std::chrono::nanoseconds at{0};
  uint32_t gpu = 0;
  bool up = false;
};

/// The model's calls make progress at this pace from then on.
struct pace_edge {
  std::chrono::nanoseconds at{0};
  double pace = 1;
};

/// All incidents of a run, known before it starts: none depends on what happens in it.
struct incident_plan {
  /// By time, then GPU. A GPU goes and comes in turn; it comes back when the last of the incidents
  /// that overlap is over.
  std::vector<gpu_edge> gpus;
  /// By time; the slowest of those that overlap counts. Before the first the pace is 1.
  std::vector<pace_edge> paces;

  /// When a call that needs `work` of its own time and starts at `now` is over.
  std::chrono::nanoseconds end_of_call(
    std::chrono::nanoseconds now, std::chrono::nanoseconds work) const;
};

/// Draws what comes by chance. Errors: `invalid_input` when that is more than a million incidents.
result<incident_plan> plan_incidents(const scenario& what, uint64_t seed);

} // namespace gristmill
