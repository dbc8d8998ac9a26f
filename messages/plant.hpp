#pragma once

#include "messages/attempt.hpp"

#include <cstdint>
#include <string>

namespace gristmill {

/// A candidate from outside the run, such as a coding agent's: try it as every other one is tried.
struct plant_request {
  std::string problem;
  /// Known by `key`, or by `hash` where that is empty.
  candidate_ref candidate;
};

enum class plant_kind : uint8_t {
  /// Its attempt is over; a failure of ours has been repeated before.
  over = 0,
  /// It was tried before, whoever proposed it.
  known,
  /// It was not tried, and will not be.
  refused,
};

std::string to_string(plant_kind kind);

struct plant_reply {
  plant_kind kind = plant_kind::refused;
  /// Of `over`.
  attempt_summary summary;
  /// Of `known`: what came of it then.
  trial earlier;
  /// Of `refused`: why. One line.
  std::string reason;
};

/// Nobody waits for this candidate any more: its request is refused, and it is not tried unless its
/// attempt has begun, which goes on to its end.
struct plant_withdrawal {
  std::string problem;
  /// `candidate_ref::hash`.
  std::string candidate;
  std::string reason;
};

/// Nobody will plant again: the run ends when what it has is tried.
struct plant_close {
  std::string reason;
};

} // namespace gristmill
