#pragma once

#include "actors/event_port.hpp"
#include "actors/interfaces.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace gristmill {

/// Who is there. Filled in the order of the start; a factory may use what stands above its own
/// entry.
struct run_peers {
  supervisor_actor supervisor;
  caf::actor_clock::time_point run_start{};
  journal_actor journal;
  /// To be copied: every actor writes through a port of its own.
  event_port events;
  child_front_actor child_front;
  /// Null in a run without language models.
  llm_gateway_actor models;
  gpu_lease_actor lease;
  /// Null in a run of one process.
  cluster_hub_actor cluster;
  compiler_actor compiler;
  oracle_actor oracle;
  /// Null in a rehearsal.
  judge_actor judge;
  scorer_actor scorer;
  planner_actor planner;
  std::vector<proposer_actor> proposers;
};

/// How each role is made: `cli` gives the real ones, tests and the rehearsal give theirs. An empty
/// `child_front` means that the run has no children.
struct run_factories {
  std::function<journal_actor(caf::actor_system&, const run_peers&)> journal;
  std::function<child_front_actor(caf::actor_system&, const run_peers&)> child_front;
  /// Empty in a run without language models.
  std::function<llm_gateway_actor(caf::actor_system&, const run_peers&)> models;
  std::function<gpu_lease_actor(caf::actor_system&, const run_peers&)> lease;
  /// Empty in a run of one process. Else the hub stands for compiler, oracle and judge, which are
  /// left empty then, and says where workers live.
  std::function<cluster_hub_actor(caf::actor_system&, const run_peers&)> cluster;
  std::function<compiler_actor(caf::actor_system&, const run_peers&)> compiler;
  std::function<oracle_actor(caf::actor_system&, const run_peers&)> oracle;
  /// Empty in a rehearsal, which compares nothing.
  std::function<judge_actor(caf::actor_system&, const run_peers&)> judge;
  std::function<scorer_actor(caf::actor_system&, const run_peers&)> scorer;
  std::function<planner_actor(caf::actor_system&, const run_peers&)> planner;
  std::function<gpu_actor(caf::actor_system&, const run_peers&, uint32_t index)> gpu;
  std::function<proposer_actor(caf::actor_system&, const run_peers&, uint32_t index)> proposer;
  std::function<worker_actor(caf::actor_system&, const run_peers&, uint32_t index)> worker;
};

struct supervisor_config {
  run_factories make;
  uint32_t gpus = 1;
  uint32_t workers = 1;
  /// First line of the log: what the run was asked to do. None where its kind is empty.
  event run_started;
  /// Of a run that goes on: how long it has been going already.
  std::chrono::nanoseconds time_used{0};
  /// Called once, when every actor has ended, or when the supervisor itself was killed (not clean).
  std::function<void(const run_ended&)> on_end;
  /// A role that dies more often than this ends the run.
  uint32_t restarts_max = 5;
  std::chrono::nanoseconds back_off_first = std::chrono::milliseconds{100};
  std::chrono::nanoseconds back_off_max = std::chrono::seconds{5};
  /// After the first Ctrl-C: attempts in flight may end; after this they are killed.
  std::chrono::nanoseconds drain_grace = std::chrono::minutes{2};
  /// How long one stage of the shutdown may take before the next begins all the same.
  std::chrono::nanoseconds stage_grace = std::chrono::seconds{2};
};

/// Owns every actor of a run. Worker, gpu, compiler, oracle and proposer are restarted with
/// back-off and a cap; when any other dies (planner, gpu_lease, journal, scorer, judge,
/// cluster_hub, child_front, llm_gateway), the run ends, says so, and what is in the log stays
/// good. A worker that is lost with its machine is placed anew, which counts as no death. The end
/// is a protocol in stages: who asks before who answers, and the journal last.
class supervisor final : public supervisor_actor::base {
public:
  supervisor(caf::actor_config& actor, supervisor_config config);

  const char* name() const override { return "supervisor"; }
  void on_exit() override;

protected:
  behavior_type make_behavior() override;

private:
  struct member {
    role which;
    uint32_t index = 0;
    friend auto operator<=>(const member&, const member&) = default;
  };
  struct planned_restart {
    member who;
    caf::actor_clock::time_point due;
  };

  void begin();
  void start(member who);
  /// A worker with its proposer: where the hub says, else here.
  void start_worker(uint32_t index);
  void start_worker_here(uint32_t index);
  void worker_came(uint32_t index, const caf::strong_actor_ptr& worker);
  void watch(member who, const caf::strong_actor_ptr& handle);
  void on_down(member who, const caf::error& reason);
  void restart_due();
  void announce(member who, const caf::strong_actor_ptr& handle);
  void end_run(run_ended how);
  /// Ends the members of these roles; false when there are none.
  bool send_home(const std::vector<role>& roles);
  void end_stage();
  void member_gone(member who);
  void finish();
  void wake_at(caf::actor_clock::time_point due);

  supervisor_config config_;
  run_peers peers_;
  seam::monitors monitors_;
  std::map<member, caf::strong_actor_ptr> alive_;
  std::map<member, uint32_t> deaths_;
  /// Workers that live on nodes.
  std::set<uint32_t> elsewhere_;
  std::vector<planned_restart> restarts_;
  std::vector<std::vector<role>> stages_;
  size_t stage_ = 0;
  caf::actor_clock::time_point stage_due_{};
  caf::actor_clock::time_point drain_due_{};
  bool draining_ = false;
  bool ending_ = false;
  /// The last event is on the disk.
  bool end_is_kept_ = false;
  run_ended how_;
};

} // namespace gristmill
