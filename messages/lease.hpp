#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace gristmill {

/// What a lease is for; fixes its cap.
enum class lease_class : uint8_t { correctness = 0, timing, profile, reference, official };

std::string to_string(lease_class what);

/// The exclusive right to one GPU for one measurement.
struct lease {
  /// Index of the GPU in the broker.
  uint32_t gpu = 0;
  /// Grows with every grant of this GPU, also across restarts. A result with an older one is
  /// refused.
  uint64_t token = 0;
  lease_class what = lease_class::timing;
  /// Counts from the grant; the executor enforces it, the broker revokes after it.
  std::chrono::nanoseconds term{0};

  friend bool operator==(const lease&, const lease&) = default;
};

/// Who asks; fairness is between flows.
struct lease_flow {
  std::string problem;
  std::string agent;

  friend auto operator<=>(const lease_flow&, const lease_flow&) = default;
};

struct lease_request {
  /// Chosen by the asker, unique per asker: the grant names it, so a stale grant is told apart.
  uint64_t request = 0;
  lease_class what = lease_class::timing;
  lease_flow flow;
  uint32_t weight = 1;
  /// Device model that is needed, such as "h200".
  std::string need;
  std::chrono::nanoseconds estimated_hold{0};
  /// Give up waiting after this long; measured from arrival, apart from the execution clock.
  std::chrono::nanoseconds patience{0};
  /// Attempt the lease is for; only for the log.
  std::string attempt;
};

/// Answer to a request: you stand in line.
struct lease_ticket {
  uint64_t request = 0;
  uint64_t ticket = 0;
  uint32_t ahead = 0;
};

enum class lease_verb : uint8_t { cancel = 0, renew, release };

struct lease_command {
  lease_verb verb = lease_verb::release;
  /// For cancel: the asker's request number.
  uint64_t request = 0;
  /// For renew and release.
  uint32_t gpu = 0;
  uint64_t token = 0;
  /// Why a release: "done", "fault", "timeout", …
  std::string reason;
};

struct lease_ack {
  /// False when the command was stale and therefore did nothing.
  bool applied = false;
  std::string note;
};

/// Pushed to the holder.
struct lease_granted {
  uint64_t request = 0;
  lease granted;
};

/// Pushed to the holder: the wait is over without a GPU, or the lease is taken back.
struct lease_ended {
  uint64_t request = 0;
  /// 0 when nothing had been granted.
  uint64_t token = 0;
  std::string reason;
};

/// Pushed to the executor of a GPU: stop what runs under this token or any older one, then report
/// `verified`.
struct lease_revoke {
  uint32_t gpu = 0;
  uint64_t token = 0;
  std::string reason;
};

enum class device_state : uint8_t {
  /// The executor is there and idle.
  up = 0,
  /// The executor has started work under `token`.
  active,
  /// Nothing of `token` runs any more: the process group is gone.
  verified,
  /// The device must not be used.
  down,
};

struct device_report {
  uint32_t gpu = 0;
  device_state state = device_state::up;
  uint64_t token = 0;
  std::string model;
  std::string reason;
};

enum class gpu_phase : uint8_t { absent = 0, free, granted, active, verifying, down };

std::string to_string(gpu_phase phase);

struct gpu_snapshot {
  uint32_t gpu = 0;
  std::string model;
  gpu_phase phase = gpu_phase::absent;
  uint64_t token = 0;
  std::string attempt;
};

struct broker_query {};

struct broker_snapshot {
  std::vector<gpu_snapshot> gpus;
  uint32_t waiting = 0;
  uint64_t granted_total = 0;
};

} // namespace gristmill
