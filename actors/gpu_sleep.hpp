#pragma once

#include "actors/event_port.hpp"
#include "actors/executor_port.hpp"
#include "actors/interfaces.hpp"
#include "gpu/lease/admission.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace gristmill {

struct gpu_sleep_config {
  uint32_t gpu = 0;
  /// In events, such as "sleep:100ms#0".
  std::string name;
  std::string model;
  /// Identity of this start; another one after each restart.
  std::string boot;
  gpu_lease_actor broker;
  event_port events;
  /// How long each part of a lease takes.
  std::chrono::nanoseconds duration = std::chrono::milliseconds{100};
  /// A lease that is kept for another part is given back when none has come for this long.
  std::chrono::nanoseconds idle_limit = std::chrono::seconds{5};
  /// Of the broker: renewed at a third of it, given up at four fifths without an answer.
  std::chrono::nanoseconds ttl = std::chrono::seconds{30};
};

/// Executor that runs no kernel and starts no child: holds each lease for `duration`, once for each
/// of its parts. Same rules of tokens and parts as any executor. For rehearsing scale; its
/// measurements have no workloads and say `not_a_measurement`.
class gpu_sleep final : public gpu_actor::base {
public:
  gpu_sleep(caf::actor_config& config, gpu_sleep_config settings);

  const char* name() const override { return "gpu-sleep"; }
  behavior_type make_behavior() override;
  void on_exit() override;

private:
  using promise = caf::typed_response_promise<measurement>;

  struct session {
    /// Of the newest part.
    measure_request request;
    /// Empty between two parts.
    promise reply;
    /// Start of what the next answer says was held: of the lease, or the answer before.
    caf::actor_clock::time_point began;
    caf::actor_clock::time_point term_ends;
    /// Of the part, or of the patience for the next one.
    caf::actor_clock::time_point ends;
    caf::actor_clock::time_point renewed;
    caf::actor_clock::time_point renew_due;
    /// Since when no part of it sleeps.
    std::optional<caf::actor_clock::time_point> idle_since;

    uint64_t token() const { return request.under.token; }
  };

  /// For the rule of admission.
  executor_state state() const;
  caf::result<measurement> on_measure(const measure_request& what);
  caf::result<measurement> on_next_part(const measure_request& what);
  void on_revoke(const lease_revoke& what);
  void finish(const std::string& reason, lease_outcome outcome = lease_outcome::fine);
  void on_part_end();
  void on_timer();
  void renew();
  measurement note_slept(const session& over);
  void arm();

  gpu_sleep_config settings_;
  executor_port broker_;
  /// Highest token seen in a request or a revocation.
  uint64_t fence_ = 0;
  std::optional<session> running_;
  /// Released, and waiting for the broker to say so.
  std::map<uint64_t, promise> finishing_;
  uint64_t generation_ = 0;
};

} // namespace gristmill
