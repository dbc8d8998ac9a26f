#pragma once

#include "messages/attempt.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gristmill {

struct propose_request {
  assignment work;
};

enum class proposal_kind : uint8_t {
  candidate = 0,
  /// There is nothing (more) for this problem.
  exhausted,
  /// No template or other source fits the problem at all.
  no_candidate,
  /// None this time: a model refused, wrote no candidate, or could not be reached. The next attempt
  /// may fare better.
  failed,
};

struct proposal {
  proposal_kind kind = proposal_kind::no_candidate;
  candidate_ref candidate;
  attempt_effort effort = attempt_effort::full;
  /// For a probe: uuids of the workloads to measure. Empty for all.
  std::vector<std::string> workloads;
  /// Why there is none, or why the search ends.
  std::string reason;
};

} // namespace gristmill
