#pragma once

#include "messages/attempt.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gristmill {

/// A worker has nothing to do.
struct work_request {
  std::string worker;
};

enum class work_kind : uint8_t { assigned = 0, stop };

/// Answered when there is work, or when there never will be.
struct work_reply {
  work_kind kind = work_kind::stop;
  assignment work;
  std::string reason;
};

/// May I try this key? Asked before anything is spent on it.
struct claim_request {
  attempt_id attempt;
  std::string key;
};

struct claim_reply {
  bool granted = false;
  /// When refused: all keys that are known or in flight.
  std::vector<std::string> taken;
};

/// Give out nothing more; answered when all attempts in flight have ended.
struct drain_request {
  std::string reason;
};

/// From the broker, through the supervisor: the failure of this candidate was its GPU's, which is
/// in quarantine now. Tried again at most once, if the run still gives out anything.
struct rerun_request {
  std::string problem;
  /// The attempt in which it failed, as `to_string(attempt_id)` writes it.
  std::string attempt;
  /// `candidate_ref::hash`.
  std::string candidate;
};

struct planner_query {};

/// What the progress line shows.
struct planner_snapshot {
  uint32_t problems_total = 0;
  uint32_t problems_finished = 0;
  uint32_t problems_passed = 0;
  uint64_t attempts_finished = 0;
  uint32_t attempts_in_flight = 0;
  uint64_t gpu_ns = 0;
  /// Geometric mean over the problems with an incumbent of T_b / best; 0 before the first.
  f64 geomean;
  bool finished = false;
  std::string stop_reason;
};

} // namespace gristmill
