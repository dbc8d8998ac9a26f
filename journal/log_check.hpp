#pragma once

#include "messages/event.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gristmill {

/// Something in a log that must not be.
struct log_fault {
  /// Sequence number of the event; 0 for the log as a whole.
  uint64_t seq = 0;
  std::string what;
};

struct log_check {
  std::vector<log_fault> faults;
  /// What a killed process left open; the next start closes it.
  uint64_t open_leases = 0;
  uint64_t open_attempts = 0;
  uint64_t events = 0;
  uint64_t verdicts = 0;
  uint64_t leases = 0;
  /// True when the last event says that the run has ended by itself.
  bool ended = false;
};

/// Holds the events of one run against what must be true of every log: numbers without holes, lines
/// in their canonical form, incarnations that never fall, tokens of each GPU that rise from lease
/// to lease, every lease closed exactly once, every attempt finished exactly once, at most one
/// verdict for a candidate of a problem under one key (more only where a re-run was planned or its
/// worker died). Open leases and attempts are faults only when the run has ended by itself.
log_check check_log(std::span<const event> events);

} // namespace gristmill
