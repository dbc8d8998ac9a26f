#pragma once

#include "gpu/lease/table.hpp"
#include "messages/lease.hpp"
#include "messages/result.hpp"
#include "planning/allocation/allocation.hpp"
#include "simulation/core/lab_result.hpp"
#include "simulation/model/scenario.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace gristmill {

/// One lease of somebody whose doings were recorded (a journal, a trace).
struct recorded_lease {
  /// Between the end of the lease before (or the start of the run) and this request; with
  /// `absolute` the time of the request itself, or as soon as the lease before is over.
  std::chrono::nanoseconds gap{0};
  bool absolute = false;
  std::chrono::nanoseconds hold{0};
  std::chrono::nanoseconds estimate{0};
  lease_class what = lease_class::timing;
  std::string problem;
  std::string need;
  /// For the journal.
  std::string attempt;
  lease_outcome outcome = lease_outcome::fine;
  /// The request was taken back after this long without a GPU; 0 when it was not.
  std::chrono::nanoseconds gave_up_after{0};
  /// The lease's term; 0 for the cap of the class.
  std::chrono::nanoseconds term{0};
  /// From the end of the hold (the release) to the GPU that is proven free, in place of
  /// `hold_law`'s `verify_s`; the next gap counts from then.
  std::chrono::nanoseconds clean_up{0};
};

/// Somebody who does what was recorded, then is gone.
struct recorded_agent {
  std::string name;
  uint32_t weight = 1;
  std::vector<recorded_lease> leases;
};

/// Makes the planner. `truth` is the live state of all problems, for a planner that cheats (the
/// hindsight oracle); it outlives the planner. Its law is the scenario's.
using planner_factory = std::function<std::unique_ptr<allocation>(
  const scenario& of, const std::vector<problem_curve>& truth)>;

/// Who has timers: agents first (all jobs from outside are one more agent), then GPUs, then one for
/// all incidents. Numbers are dense. Of timers at one instant the smallest entity's is first, and
/// what the lease table itself has to do comes after all of them.
using lab_entity = uint32_t;

/// What a world demands of the engine that it runs in. Called from within the world's calls; the
/// engine does it after the call has returned, in order.
class world_port {
public:
  virtual ~world_port() = default;

  /// Calls `on_timer(entity)` at `at`, in place of the timer that the entity had; the largest time
  /// means never.
  virtual void set_timer(lab_entity entity, std::chrono::nanoseconds at) = 0;
  /// From an agent to the lease broker. `what` stays as it is until the request is granted, ended
  /// or refused, or cancelled.
  virtual void request(uint32_t agent, const lease_request& what) = 0;
  virtual void cancel(uint32_t agent, uint64_t request) = 0;
  /// From the executor of a GPU to the lease broker; a `device_report` each, but for the release.
  virtual void up(uint32_t gpu, const std::string& boot) = 0;
  virtual void down(uint32_t gpu, const std::string& reason) = 0;
  virtual void activated(uint32_t gpu, uint64_t token) = 0;
  virtual void verified(uint32_t gpu, uint64_t token) = 0;
  virtual void probed(uint32_t gpu, const probe_report& what) = 0;
  virtual void release(
    uint32_t gpu, uint64_t token, const std::string& reason, lease_outcome outcome) = 0;
};

struct world_options {
  uint64_t seed = 1;
  /// In place of the scenario's planner.
  planner_factory planner;
  /// In place of the scenario's agents and arrivals.
  std::vector<recorded_agent> recorded;
  /// Called for every lease of a problem that ended with its GPU proven free: problem, agent, log
  /// gain (below 0 for a first kernel that is slower than the baseline).
  std::function<void(
    uint32_t problem, uint32_t agent, double log_gain, std::chrono::nanoseconds now)>
    on_attempt;
  /// Called with each measured wait, for those who need more than a histogram.
  std::function<void(std::chrono::nanoseconds wait)> on_wait;
};

/// The agents, the GPUs and the problems of a scenario, without a clock and without a broker: who
/// thinks how long, asks for a GPU when, holds it how long, and what comes of it. The same object
/// runs in the event heap of `core` and behind the actors of `actors`.
///
/// No two entities ever act at the same instant: every time that is drawn is a whole number of
/// quanta of 2^14 ns plus the entity's own number, so the order of events is the order of times and
/// both engines must agree. (An incident acts at an instant of its GPU.) With recorded agents all
/// times are what they are instead, and there is neither thinking, compiling, launching nor
/// learning: a recorded hold is from the grant to the end of the work.
///
/// A GPU executor reports its start of work in the instant of the grant, ends the work itself at
/// the end of the lease's term at the latest, releases, and reports `verified` when the GPU is
/// proven free; then its agent has the result and thinks on, as in production.
class world {
public:
  /// Errors: `invalid_input` for more than 16,384 entities, or a scenario that the table cannot
  /// serve.
  static result<std::unique_ptr<world>> make(const scenario& what, world_options options);
  virtual ~world() = default;

  virtual uint32_t agent_count() const = 0;
  virtual uint32_t gpu_count() const = 0;
  /// Name, model and node of a GPU, for `lease_table::add_gpu`.
  virtual gpu_entry gpu(uint32_t gpu) const = 0;
  /// Agents come first: entity == agent. GPU `g` is entity `agent_count() + g`.
  virtual lab_entity entity_count() const = 0;

  virtual void start(world_port& port) = 0;
  virtual void on_timer(lab_entity entity, std::chrono::nanoseconds now, world_port& port) = 0;
  /// What the broker pushes.
  virtual void on_granted(
    uint32_t agent, const lease_granted& what, std::chrono::nanoseconds now, world_port& port) = 0;
  virtual void on_ended(
    uint32_t agent, const lease_ended& what, std::chrono::nanoseconds now, world_port& port) = 0;
  virtual void on_revoke(
    const lease_revoke& what, std::chrono::nanoseconds now, world_port& port) = 0;
  virtual void on_probe(
    const probe_order& what, std::chrono::nanoseconds now, world_port& port) = 0;
  /// The broker refused a request.
  virtual void on_refused(
    uint32_t agent, uint64_t request, std::chrono::nanoseconds now, world_port& port) = 0;

  /// Ends the books at the end of the run.
  virtual lab_result finish(std::chrono::nanoseconds now) = 0;
  /// Something that makes the run meaningless (an open queue that grows without limit); empty while
  /// all is well.
  virtual const std::string& broken() const = 0;
};

/// The table's settings for a scenario, in whole quanta; events and estimates off.
lease_table_config table_config_for(const scenario& what);

} // namespace gristmill
