#pragma once

#include <cstdint>
#include <string>

namespace gristmill {

/// INTERNAL wake-up of an actor by itself: its own deadlines fell due. `generation` tells a stale
/// one apart, because a delayed message cannot be taken back.
struct tick {
  uint64_t generation = 0;
};

enum class role : uint8_t {
  planner = 0,
  worker,
  gpu_lease,
  gpu,
  compiler,
  scorer,
  oracle,
  proposer,
  child_front,
  journal,
  llm_gateway,
  judge,
  cluster_hub,
};

std::string to_string(role which);

/// An actor was restarted: the handle that comes with this message replaces the old one.
struct peer_restarted {
  role which = role::compiler;
};

/// First message to an actor that starts working by itself.
struct start_working {};

/// The run is over; comes with the reason.
struct run_ended {
  std::string reason;
  /// False when something of ours died and the run can be resumed.
  bool clean = true;
};

} // namespace gristmill
