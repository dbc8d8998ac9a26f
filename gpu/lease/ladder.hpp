#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace gristmill {

/// When each step against a kernel that does not end is due, from the deadline of its class.
struct ladder_times {
  std::chrono::nanoseconds terminate = std::chrono::seconds{2};
  std::chrono::nanoseconds kill = std::chrono::seconds{5};
  std::chrono::nanoseconds quarantine = std::chrono::seconds{30};
  /// How long a reset may take (seconds, against minutes for a restart of the node).
  std::chrono::nanoseconds reset = std::chrono::seconds{30};
};

enum class ladder_step : uint8_t {
  /// Nothing to do before `due`.
  wait = 0,
  /// Mark the work as hung, tell the holder, stop renewing.
  mark,
  /// SIGTERM to the process group.
  terminate,
  /// SIGKILL to the process group: freeing the context is the only cure for a sticky device error.
  kill,
  /// A process or its memory is still there: nobody gets this GPU until a person has looked.
  quarantine,
  /// Reset the GPU (only where nobody else uses it).
  reset,
  /// The reset failed or is not possible: drain the node and report the GPU as lost.
  lost,
  /// Nothing is left: report `verified`.
  done,
};

std::string to_string(ladder_step step);

/// What the one who climbs sees right now. It must look without waiting for the GPU.
struct ladder_view {
  bool process_left = false;
  bool memory_left = false;
  /// Nobody else uses the GPU and the driver offers it.
  bool can_reset = false;
  /// The reset that was asked for has come back without success.
  bool reset_failed = false;
};

/// The ladder for a hung kernel. Pure: it is told the time since the deadline and what is left, and
/// says what to do, each step once and in order. A step that comes late (the supervisor itself was
/// held up) moves the later ones, so that a process always has the full time between SIGTERM and
/// SIGKILL and the driver the full time to clean up.
class ladder {
public:
  explicit ladder(ladder_times times = {}) : times_(times) {}

  /// The next step, for which the caller then calls again until it is told `wait`, `done` or
  /// `lost`. `elapsed` counts from the deadline of the class and is not negative.
  ladder_step next(std::chrono::nanoseconds elapsed, const ladder_view& view);

  /// When `next` has something new to say at the latest, from the deadline.
  std::chrono::nanoseconds due() const;

  /// The last step that was given; `wait` before the first.
  ladder_step reached() const { return reached_; }

private:
  ladder_times times_;
  ladder_step reached_ = ladder_step::wait;
  std::chrono::nanoseconds at_{0};
};

} // namespace gristmill
