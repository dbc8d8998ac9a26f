#pragma once

#include "messages/event.hpp"
#include "messages/lease.hpp"
#include "messages/result.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gristmill {

/// Order statistics of times, each one of those that were seen.
struct time_spread {
  uint64_t count = 0;
  std::chrono::nanoseconds p50{0};
  std::chrono::nanoseconds p95{0};
  std::chrono::nanoseconds max{0};
};

/// What the events of a run say about its leases, up to some instant.
struct lease_log {
  struct waiting : waiter_snapshot {
    std::chrono::nanoseconds since{0};
  };

  struct gpu_row : gpu_snapshot {
    /// Its executor was sent home because the run was over; `phase` is then `absent`.
    bool ended = false;
  };

  /// True when the log has its last event: nothing goes on any more.
  bool ended = false;
  /// Time since the start of the run that ages count to.
  std::chrono::nanoseconds as_of{0};
  std::string policy;
  uint64_t epoch = 0;
  /// In order of their names' first appearance.
  std::vector<gpu_row> gpus;
  /// In order of arrival; `ahead` and the estimate follow that order and the median of the holds,
  /// not the policy, which the log does not show.
  std::vector<waiter_snapshot> queue;
  std::vector<flow_usage> usage;
  /// Those that stand.
  std::vector<broker_alarm> alarms;
  /// How often: "grants", "releases", "expiries", "revocations" (expiries included),
  /// "withdrawals", "tainted", "waits_in_vain", "adoptions", "probes_passed", "probes_failed",
  /// "probes_without_answer", "candidates_failed", "candidates_refused", "reruns", "gpus_lost",
  /// "quarantines", "alarms", "policy_failures". All are there, also with 0.
  std::map<std::string, uint64_t> counts;
  /// From the request to the grant, and from the grant to the proof that nothing runs.
  time_spread wait;
  time_spread hold;
};

/// Reads the whole log. `now` is the time since the start of the run; an earlier one than that of
/// the last event is not taken. Errors: `invalid_input` for a lease event whose data is broken,
/// with its sequence number.
result<lease_log> read_lease_log(std::span<const event> events, std::chrono::nanoseconds now);

std::string to_text(const lease_log& log);
std::string to_json(const lease_log& log);

} // namespace gristmill
