#pragma once

#include "messages/event.hpp"
#include "messages/result.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gristmill {

/// After one attempt: how far the run had come, and what it had cost. Seconds.
struct progress_point {
  double run_seconds = 0;
  /// Under lease, over all GPUs, up to here.
  double gpu_seconds = 0;
  /// Geometric mean over the problems that ever get a T_b of T_b / best. Before its T_b is known,
  /// and while nothing faster has passed, a problem counts 1.
  double geomean = 1;
};

/// What a GPU does, as its executor and the broker see it.
enum class gpu_activity : uint8_t {
  /// Lent, and the holder has not begun.
  granted = 0,
  /// A measurement runs.
  working,
  /// The lease is over and nobody has proved yet that nothing runs.
  verifying,
  /// Suspect, in quarantine or drained: nobody gets it.
  out_of_service,
};

/// "lent", "measuring", "verifying", "out of service"
std::string_view to_string(gpu_activity activity);

struct gpu_span {
  size_t gpu = 0;
  gpu_activity activity = gpu_activity::working;
  double from = 0;
  double to = 0;
  /// The attempt, or why it is out of service.
  std::string what;
};

/// A run over time, from its log alone. Seconds since the start of the run.
struct run_timeline {
  std::vector<progress_point> progress;
  /// In order of their names' first appearance.
  std::vector<std::string> gpus;
  /// In order of their beginnings. What had not ended yet ends with the log.
  std::vector<gpu_span> spans;
  /// From each request to its grant.
  std::vector<double> waits;
  double end_seconds = 0;
};

/// Errors: `invalid_input` for an event whose data is not what its kind promises, with its number.
result<run_timeline> read_timeline(std::span<const event> events);

} // namespace gristmill
