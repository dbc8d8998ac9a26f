#pragma once

#include "gpu/cuda/measured_call.hpp"
#include "messages/result.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace gristmill::cuda {

/// How the steps of a call are put on streams, so that what does not wait runs at the same time.
/// Stream 0 is the one on which the call begins and ends.
struct stream_plan {
  struct placed_step {
    uint32_t stream = 0;
    /// Begins a branch: waits for the event that the call begins with.
    bool forks = false;
    /// Steps on other streams whose event it waits for.
    std::vector<uint32_t> waits;
    /// Others wait for it, so an event follows it.
    bool records = false;
  };

  /// One for each step of the call.
  std::vector<placed_step> steps;
  uint32_t streams = 1;
  /// Last steps of the other streams: stream 0 waits for their events at the end.
  std::vector<uint32_t> joins;
};

/// At most so many at a time; further branches are put behind others, which is right but slower.
constexpr uint32_t streams_max = 16;

/// `invalid_input` for a step that waits for itself or a later one, and for a dependent launch that
/// is the first launch or does not follow a launch directly.
result<stream_plan> plan_streams(std::span<const call_step> steps);

} // namespace gristmill::cuda
