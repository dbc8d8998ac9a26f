#pragma once

#include "actors/event_port.hpp"
#include "actors/executor_port.hpp"
#include "actors/interfaces.hpp"
#include "gpu/lease/admission.hpp"
#include "gpu/lease/ladder.hpp"
#include "gpu/probe.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gristmill {

/// One command of a probe as a child.
struct probe_child {
  child_request request;
  /// Its private folder goes with this.
  std::shared_ptr<void> folder;
};

/// What a measurement is made of, apart from the actor: plain functions, `runner_steps` in
/// production.
struct measure_steps {
  /// Makes the job and its folder. The child must end by itself within the deadline.
  std::function<result<child_request>(const measure_request&, std::chrono::nanoseconds deadline)>
    begin;
  /// Reads what the child has left behind. Every end of a child gives a measurement; the folder
  /// stays only as long as outputs in it are to be judged.
  std::function<measurement(const measure_request&, const child_request&, const child_result&)> end;
  /// Makes a child of a probe's command. Empty: a probe that has commands cannot be made here.
  std::function<result<probe_child>(
    const std::vector<std::string>& command, std::chrono::nanoseconds deadline)>
    command;
};

struct gpu_executor_config {
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
  /// How the device is looked at after a lease, and when the broker orders it. Null: only whether
  /// anything is left on it.
  std::shared_ptr<gpu_probe> probe;
  /// A lease that is kept for another part is given back when none has come for this long.
  std::chrono::nanoseconds idle_limit = std::chrono::seconds{5};
  /// Of the broker: renewed at a third of it, given up at four fifths without an answer.
  std::chrono::nanoseconds ttl = std::chrono::seconds{30};
  /// Against a child that does not end, from the end of its term.
  ladder_times ladder;
  /// What whoever waits for a measurement is told when the executor itself is ended. `node_lost`
  /// for a device of another machine: nobody's fault, to be measured elsewhere.
  errc when_ended = errc::shutting_down;
};

/// Executor of one mock GPU: one runner child a part of a lease, and most leases have one part.
///
/// Reports `up` only when no child of an earlier executor works on the device any more. Only a
/// token newer than every one that was seen or revoked may start anything. While the child runs the
/// lease is renewed. When the child is gone, with its whole process group, the lease is given back
/// and the device reported as verified; the asker is answered after the broker has taken both, so
/// that it finds the GPU free when it asks again. A part that is not the last is answered after the
/// broker has renewed the lease, which says that it held until then; between two parts the device
/// is idle and nobody else's.
///
/// A device whose probe has commands for the occasion is looked at between the release and
/// `verified`. When the probe fails, what was measured in the last part does not count; earlier
/// parts of the same lease have been answered by then.
///
/// A child that outlives its term, and one whose lease was taken back, is ended by the ladder of
/// gpu/lease/ladder.hpp (a revocation enters it at SIGTERM). What SIGKILL does not end takes the
/// device down until it is gone.
class gpu_executor final : public gpu_actor::base {
public:
  gpu_executor(caf::actor_config& config, gpu_executor_config settings);

  const char* name() const override { return "gpu-executor"; }
  behavior_type make_behavior() override;
  void on_exit() override;

private:
  using promise = caf::typed_response_promise<measurement>;
  using instant = caf::actor_clock::time_point;

  struct session {
    /// Of the newest part.
    measure_request request;
    child_request child;
    /// Empty between two parts.
    promise reply;
    /// Start of what the next answer says was held: of the lease, or the answer before.
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
    /// Since when no part of it runs.
    std::optional<instant> idle_since;

    uint64_t token() const { return request.under.token; }
  };

  /// One look at the device.
  struct look {
    /// Generation of the tick that ends its patience.
    uint64_t tick = 0;
    instant deadline;
    std::deque<std::vector<std::string>> commands;
    std::vector<probe_answer> answers;
    /// Child of the command that runs; 0: none.
    uint64_t child = 0;
    std::function<void(probe_report)> then;
  };

  void come_up();
  /// For the rule of admission.
  executor_state state() const;
  caf::result<measurement> on_measure(const measure_request& what);
  caf::result<measurement> on_next_part(const measure_request& what);
  caf::result<measurement> start_part(session next);
  void on_revoke(const lease_revoke& what);
  void take_back(std::string reason);
  void keep_for_next_part(session over, measurement measured);
  void end_kept(const std::string& reason, lease_outcome outcome, std::string why);
  void on_child(uint64_t token, child_result ended);
  void on_child_lost(uint64_t token, const caf::error& why);
  void finish(session over, measurement measured, const std::string& reason, lease_outcome outcome);
  void answer(
    const session& over, measurement measured, bool still_valid, const probe_report& found);
  void note_measured(const session& over, measurement& measured);

  void on_timer();
  void on_idle_timer();
  void renew();
  void climb();
  void give_up();
  void arm();

  void on_probe(const probe_order& order);
  std::vector<std::vector<std::string>> probe_commands(probe_occasion why) const;
  void start_look(std::vector<std::vector<std::string>> commands, std::chrono::nanoseconds limit,
    std::function<void(probe_report)> then);
  void next_command(uint64_t tick_of);
  void end_look(uint64_t tick_of, probe_report found);

  gpu_executor_config settings_;
  executor_port broker_;
  /// Highest token seen in a request or a revocation.
  uint64_t fence_ = 0;
  std::optional<session> running_;
  /// Released, and waiting for the broker to say so.
  std::map<uint64_t, promise> finishing_;
  uint64_t generation_ = 0;
  /// Generation of the tick that wakes the session.
  uint64_t session_tick_ = 0;
  /// Generation of the tick that asks anew whether the device is quiet; 0 before the first.
  uint64_t come_up_tick_ = 0;
  std::optional<look> look_;
};

} // namespace gristmill
