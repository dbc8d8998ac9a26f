#pragma once

#include "actors/event_port.hpp"
#include "actors/executor_port.hpp"
#include "actors/interfaces.hpp"
#include "gpu/lease/ladder.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace gristmill {

/// What a measurement is made of, apart from the actor: plain functions, `runner_steps` in
/// production.
struct measure_steps {
  /// Makes the job and its folder. The child must end by itself within the deadline.
  std::function<result<child_request>(const measure_request&, std::chrono::nanoseconds deadline)>
    begin;
  /// Reads what the child has left behind. Every end of a child gives a measurement; the folder
  /// stays only as long as outputs in it are to be judged.
  std::function<measurement(const measure_request&, const child_request&, const child_result&)> end;
  /// Makes the canary: a child of the same sort with nothing to measure. Empty: there is none, and
  /// a probe only looks whether anything is left on the device.
  std::function<result<child_request>(std::chrono::nanoseconds deadline)> canary;
  /// Reads how the canary ended.
  std::function<probe_report(const child_request&, const child_result&)> canary_end;
};

struct gpu_mock_config {
  uint32_t gpu = 0;
  /// In events, such as "mock:h200#0"; also the device name of its children.
  std::string name;
  std::string model;
  /// Identity of this start; another one after each restart.
  std::string boot;
  gpu_lease_actor broker;
  child_front_actor child_front;
  event_port events;
  measure_steps steps;
  /// Of the broker: renewed at a third of it, given up at four fifths without an answer.
  std::chrono::nanoseconds ttl = std::chrono::seconds{30};
  /// Against a child that does not end, from the end of its term.
  ladder_times ladder;
};

/// Executor of one mock GPU: one runner child a lease.
///
/// Reports `up` only when no child of an earlier executor works on the device any more. Only a
/// token newer than every one that was seen or revoked may start anything. While the child runs the
/// lease is renewed. When the child is gone, with its whole process group, the lease is given back
/// and the device reported as verified; the asker is answered after the broker has taken both, so
/// that it finds the GPU free when it asks again.
///
/// A child that outlives its term, and one whose lease was taken back, is ended by the ladder of
/// gpu/lease/ladder.hpp (a revocation enters it at SIGTERM). What SIGKILL does not end takes the
/// device down until it is gone.
class gpu_mock final : public gpu_actor::base {
public:
  gpu_mock(caf::actor_config& config, gpu_mock_config settings);

  const char* name() const override { return "gpu-mock"; }
  behavior_type make_behavior() override;
  void on_exit() override;

private:
  using promise = caf::typed_response_promise<measurement>;
  using instant = caf::actor_clock::time_point;

  struct session {
    measure_request request;
    child_request child;
    promise reply;
    instant began;
    instant renewed;
    instant renew_due;
    ladder climb;
    /// What the ladder counts from: the end of the term, or the revocation.
    instant climb_from;
    /// The term is over and the child was still there.
    bool hung = false;
    /// Why the lease was taken back; empty while it holds.
    std::string revoked;
    /// The asker has been given up on; only the end of the child is waited for.
    bool stuck = false;

    uint64_t token() const { return request.under.token; }
  };

  caf::result<measurement> on_measure(const measure_request& what);
  void on_revoke(const lease_revoke& what);
  void take_back(std::string reason);
  void on_child(uint64_t token, child_result ended);
  void on_child_lost(uint64_t token, const caf::error& why);
  void finish(session over, measurement measured, const std::string& reason, lease_outcome outcome);
  void answer(const session& over, measurement measured, bool still_valid);

  void on_timer();
  void renew();
  void climb();
  void give_up();
  void arm();

  void on_probe(const probe_order& order);
  void run_canary(uint64_t probe, std::chrono::nanoseconds limit);
  void probed(uint64_t probe, probe_report found);

  gpu_mock_config settings_;
  executor_port broker_;
  /// Highest token seen in a request or a revocation.
  uint64_t fence_ = 0;
  std::optional<session> running_;
  /// Released, and waiting for the broker to say so.
  std::map<uint64_t, promise> finishing_;
  uint64_t generation_ = 0;
  /// Generation of the tick that wakes the session, and of the one that ends a probe's patience.
  uint64_t session_tick_ = 0;
  uint64_t probe_tick_ = 0;
  /// Child of the canary; 0: none.
  uint64_t canary_child_ = 0;
};

} // namespace gristmill
