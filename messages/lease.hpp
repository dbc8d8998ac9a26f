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

/// How a lease ended, as far as blame goes. Only what the executor saw decides, never the holder.
enum class lease_outcome : uint8_t {
  /// The work ran to its end, whatever its result.
  fine = 0,
  /// Illegal access, crash, or another fault of what was run.
  fault,
  /// It did not end by itself.
  hang,
  /// The house failed (no child, no disk): nobody is blamed.
  infrastructure,
};

std::string to_string(lease_outcome outcome);

struct lease_request {
  /// Chosen by the asker, unique per asker: the grant names it, so a stale grant is told apart.
  uint64_t request = 0;
  lease_class what = lease_class::timing;
  lease_flow flow;
  uint32_t weight = 1;
  /// What the GPU must have: a device model such as "h200", or constraints with commas, such as
  /// "arch=sm_90a,memory>=80GiB,node=a" (gpu/lease/need.hpp). Empty: any GPU.
  std::string need;
  std::chrono::nanoseconds estimated_hold{0};
  /// Give up waiting after this long; measured from arrival, apart from the execution clock.
  std::chrono::nanoseconds patience{0};
  /// Attempt the lease is for; only for the log.
  std::string attempt;
  /// SHA-256 of what will run, for blame: one that failed on two GPUs is refused. Empty: nobody is
  /// blamed.
  std::string candidate;
  /// Longest term wanted; 0 is the cap of the class, and more than that is refused.
  std::chrono::nanoseconds term{0};
};

/// Answer to a request: you stand in line.
struct lease_ticket {
  uint64_t request = 0;
  uint64_t ticket = 0;
  /// How many the policy would serve first, as things stand.
  uint32_t ahead = 0;
  /// How long the wait will be, as things stand. An estimate, never a promise.
  std::chrono::nanoseconds estimated_wait{0};
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
  /// For release.
  lease_outcome outcome = lease_outcome::fine;
  /// For renew: how long no GPU work has been going on.
  std::chrono::nanoseconds idle{0};
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

/// Pushed to the executor of a GPU: stop what runs under this token or any older one, by the ladder
/// of gpu/lease/ladder.hpp, then report `verified`.
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
  /// Nothing of `token` runs any more: the process group is gone, and `probe` tells how the device
  /// is.
  verified,
  /// The device must not be used.
  down,
  /// The work of `token` is over or being ended; a `verified` follows.
  ended,
  /// After a restart of the broker: the executor still runs `token`, granted by an earlier
  /// incarnation, for `adopted`.
  holding,
  /// Answer to a `probe_order`, outside any lease.
  probed,
};

/// What a health probe found. "Could not probe" never counts as "faulty".
enum class probe_outcome : uint8_t { passed = 0, failed, could_not };

std::string to_string(probe_outcome outcome);

struct probe_report {
  probe_outcome outcome = probe_outcome::passed;
  /// "foreign process 4711", "canary 7.2 % slow"; empty when passed.
  std::string detail;
};

/// What an executor knows of a lease that it still runs, for a broker that has started anew.
struct adopted_lease {
  lease_request request;
  /// Time since the grant, by the executor's own monotonic clock.
  std::chrono::nanoseconds held{0};
};

struct device_report {
  uint32_t gpu = 0;
  device_state state = device_state::up;
  uint64_t token = 0;
  std::string model;
  std::string reason;
  /// Identity of this start of the executor's node: a device that was lost comes back only under
  /// another one.
  std::string boot;
  /// For `verified` and `probed`.
  probe_report probe;
  /// For `holding`.
  adopted_lease adopted;
};

/// Pushed to the executor of an idle GPU under suspicion: look again, report `probed`.
struct probe_order {
  uint32_t gpu = 0;
  /// The answer must come within this time; later it counts as `could_not`.
  std::chrono::nanoseconds limit{0};
};

/// Life of a GPU in the broker: absent until its executor reports; free → granted → active →
/// releasing (being ended) → verifying (ended, probed) → free. Aside from it: suspect (probed again
/// before anybody gets it), quarantined (a person must clear it), draining (nothing new is
/// granted), lost (executor or node gone).
enum class gpu_phase : uint8_t {
  absent = 0,
  free,
  granted,
  active,
  releasing,
  verifying,
  suspect,
  quarantined,
  draining,
  lost,
};

std::string to_string(gpu_phase phase);

/// One GPU as `gristmill leases` and `gristmill broker status` show it.
struct gpu_snapshot {
  uint32_t gpu = 0;
  std::string model;
  gpu_phase phase = gpu_phase::absent;
  uint64_t token = 0;
  std::string attempt;
  std::string name;
  /// Why suspect, quarantined, draining or lost.
  std::string reason;
  /// While leased.
  lease_class what = lease_class::timing;
  lease_flow flow;
  std::chrono::nanoseconds held{0};
  std::chrono::nanoseconds term{0};
  /// Time in this phase.
  std::chrono::nanoseconds age{0};
};

/// One request that waits.
struct waiter_snapshot {
  uint64_t ticket = 0;
  lease_class what = lease_class::timing;
  lease_flow flow;
  std::string need;
  std::string attempt;
  std::chrono::nanoseconds waited{0};
  uint32_t ahead = 0;
  std::chrono::nanoseconds estimated_wait{0};
};

/// Something that a person should look at.
struct broker_alarm {
  /// "idle_while_leased", "starvation", "head_of_line", "no_probe", "gpu_suspect", …
  std::string kind;
  std::string gpu;
  uint64_t ticket = 0;
  std::string detail;
};

/// What a flow has had, in nanoseconds on a GPU (clean-up included).
struct flow_usage {
  lease_flow flow;
  uint32_t weight = 1;
  uint64_t held_ns = 0;
  uint64_t leases = 0;
};

struct broker_query {
  /// Also list the waiters (at most this many, in order of service).
  uint32_t waiters_max = 0;
};

struct broker_snapshot {
  std::vector<gpu_snapshot> gpus;
  uint32_t waiting = 0;
  uint64_t granted_total = 0;
  std::vector<waiter_snapshot> waiters;
  std::vector<broker_alarm> alarms;
  std::vector<flow_usage> usage;
  std::string policy;
  uint64_t epoch = 0;
};

enum class broker_verb : uint8_t {
  /// Nothing new is granted on `gpu` (or on all); what runs goes on to its end.
  drain = 0,
  /// Takes a drain back; a quarantined GPU becomes suspect and is probed.
  undrain,
};

/// From a person. An empty `gpu` means all of them; else a name as in the snapshot.
struct broker_command {
  broker_verb verb = broker_verb::drain;
  std::string gpu;
  std::string reason;
};

} // namespace gristmill
