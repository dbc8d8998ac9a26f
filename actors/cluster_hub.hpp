#pragma once

#include "actors/event_port.hpp"
#include "actors/gpu_lease.hpp"
#include "actors/interfaces.hpp"
#include "actors/remote_steps.hpp"
#include "actors/worker_places.hpp"
#include "planning/cluster/node_table.hpp"
#include "planning/cluster/prepare_fan.hpp"
#include "planning/cluster/task_table.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gristmill {

/// The hub with its other face: it is what the executors of remote devices believe to start their
/// children.
using cluster_center_actor = cluster_hub_actor::extend<sig<child_result, child_request>,
  sig<void, child_cancel>, sig<device_quiet, device_quiet_query>, sig<void, child_result>>;

/// A device of a node that gets its executor, which lives with the coordinator.
struct remote_device {
  /// "n1/cuda:0", its number in the broker, and which start of its executor this is.
  std::string name;
  uint32_t gpu = 0;
  std::string boot;
  node_device what;
  child_front_actor front;
};

/// How the hub gets those whom it owns.
struct hub_factories {
  std::function<compiler_actor(caf::actor_system&)> compiler;
  std::function<oracle_actor(caf::actor_system&)> oracle;
  /// Empty in a rehearsal.
  std::function<judge_actor(caf::actor_system&)> judge;
  std::function<blob_keeper_actor(caf::actor_system&)> keeper;
  std::function<gpu_actor(caf::actor_system&, const remote_device&)> executor;
};

struct hub_times {
  // From the arrival at the node, which ends the task itself then.
  std::chrono::nanoseconds compile = std::chrono::minutes{3};
  std::chrono::nanoseconds prepare = std::chrono::minutes{11};
  std::chrono::nanoseconds judge = std::chrono::minutes{6};
  std::chrono::nanoseconds quiet = std::chrono::minutes{2};
  std::chrono::nanoseconds end_draw = std::chrono::minutes{1};
  /// Blobs of an answer, on their way here.
  std::chrono::nanoseconds fetch = std::chrono::minutes{2};
  /// How long a node may take to start a worker, and to make itself ready.
  std::chrono::nanoseconds start_worker = std::chrono::seconds{10};
  std::chrono::nanoseconds join = std::chrono::minutes{15};
  /// What runs on a node that drains may end within this.
  std::chrono::nanoseconds drain = std::chrono::minutes{2};
  /// Where workers are to wait for nodes: how long for the first one, and how long after the newest
  /// one for the next.
  std::chrono::nanoseconds first_node = std::chrono::seconds{30};
  std::chrono::nanoseconds more_nodes = std::chrono::seconds{2};
  /// Before somebody of ours that died is started again.
  std::chrono::nanoseconds back_off = std::chrono::milliseconds{500};
  /// How often the hub looks at its deadlines.
  std::chrono::nanoseconds look = std::chrono::milliseconds{250};
  /// How long its own members may take to end.
  std::chrono::nanoseconds end = std::chrono::milliseconds{1500};
};

struct cluster_hub_config {
  /// Names the run, the same over all its starts; and which start this is.
  std::string run;
  uint64_t incarnation = 1;
  /// For `node_welcome`.
  std::string terms;
  /// What leases ask for.
  std::string device_model;
  cluster_needs needs;
  node_table_limits limits;
  /// Nodes bring devices and workers; nothing is compiled, prepared or judged there.
  bool rehearsal = false;
  /// Of the coordinator's own process.
  uint32_t devices_here = 0;
  uint32_t compile_slots_here = 2;
  /// Without a device here nothing can be measured before a node has come, so workers wait for one.
  bool workers_wait = false;
  uint32_t compiles_waiting_max = 4096;
  uint32_t draws_max = 4096;
  uint32_t restarts_max = 5;
  growing_lease_actor lease;
  event_port events;
  std::shared_ptr<remote_book> book;
  /// Where the coordinator's own workers look for room; may be null.
  std::shared_ptr<worker_places> places;
  hub_factories make;
  /// Whether whoever connects speaks our protocol.
  std::function<cluster_greeting(const cluster_hello&)> greet;
  /// Whether the process of this agent may call itself so; empty: everybody may. `refused` is for
  /// good: the node ends.
  std::function<result<void>(const caf::strong_actor_ptr& agent, const std::string& node)> admit;
  /// What a measurement is apart from attempt and lease (`held_result::key`).
  std::function<std::string(const measure_request&)> key_of;
  /// Bytes from and to the keeper of a node; empty: not counted.
  std::function<std::pair<uint64_t, uint64_t>(const caf::actor_addr&)> traffic;
  hub_times times;
};

/// The coordinator's side of a cluster, and the only one that knows where anything lives. Compiler,
/// oracle and judge for the rest of the run; what starts children for the executors of remote
/// devices; owner of those executors and of the coordinator's own compiler, oracle, judge and
/// keeper, which it restarts.
///
/// A node is here from its offer until it cannot be reached, leaves, or does not do what it must.
/// Then its stay is over for good: whatever is still heard of it counts for nothing, and it is told
/// to offer itself anew. The loss of a node is nobody's fault: what was compiled or prepared there
/// goes elsewhere, what was measured or judged there fails with `node_lost`, which counts against
/// no limit.
///
/// Devices of a node get leases only when it has prepared everything that the others have.
class cluster_hub final : public cluster_center_actor::base {
public:
  cluster_hub(caf::actor_config& actor, cluster_hub_config config);

  const char* name() const override { return "cluster-hub"; }
  void on_exit() override;

protected:
  behavior_type make_behavior() override;

private:
  using instant = std::chrono::nanoseconds;
  using task_done = std::function<void(const result<node_answer>&)>;

  /// What belongs to one stay of a node, beside the table's books.
  struct stay {
    node_agent_actor agent;
    caf::strong_actor_ptr keeper;
    bool says_ready = false;
    /// Preparations that it has, and those that it is making.
    std::set<std::string> has;
    std::set<std::string> making;
    /// What it brought, by what was measured.
    std::map<std::string, held_result> held;
    /// Measurements whose outputs lie there, by GPU and token.
    std::set<std::pair<uint32_t, uint64_t>> outputs;
    /// In a row.
    uint32_t failures = 0;
    bool returned = false;
    instant heard{0};
    /// Of joining or draining.
    instant due{0};
    /// Whether its devices are in use is being asked.
    bool asking = false;
  };

  struct device {
    session_id session = 0;
    node_device what;
    uint32_t gpu = 0;
    bool joined = false;
    bool drained = false;
    caf::strong_actor_ptr executor;
    uint32_t deaths = 0;
    instant restart_at{0};
  };

  struct compile_job {
    compile_request request;
    caf::typed_response_promise<compiled_candidate> reply;
    std::set<session_id> not_at;
    failure last{errc::node_lost, "no compiler has answered"};
  };

  struct open_fan {
    prepare_request request;
    std::vector<caf::typed_response_promise<prepared_problem>> replies;
    prepare_fan fan;
    /// Nobody wants it any more.
    bool given_up = false;
    /// The coordinator's own part waits for an oracle that is being restarted.
    bool here_again = false;
  };

  struct placing {
    session_id session = 0;
    worker_peers peers;
    caf::typed_response_promise<caf::strong_actor_ptr> reply;
    instant due{0};
  };

  /// A member of ours in the coordinator's process.
  struct local_member {
    caf::strong_actor_ptr handle;
    uint32_t deaths = 0;
    instant restart_at{0};
  };

  instant now();
  void look_again();
  void on_tick();
  bool ending() const { return ending_since_.has_value(); }

  // cluster_hub.cpp: who is here.
  void on_offer(const node_offer& what, const caf::strong_actor_ptr& agent,
    const caf::strong_actor_ptr& keeper);
  void turn_away(const caf::strong_actor_ptr& agent, const std::string& reason);
  void on_ready(const node_ready& what);
  /// What has been prepared elsewhere is prepared there, then its devices count.
  void catch_up(session_id session);
  void activate(session_id session);
  /// Ends a stay. `failed`: by what the node itself did, so that it is kept out for a while.
  void lose(session_id session, const std::string& reason, bool failed = false);
  void drain(session_id session, const std::string& reason, bool by_person);
  void look_whether_idle(session_id session);
  void heard(session_id session);
  /// 0 for strangers, who are told to offer themselves.
  session_id sender_session();
  stay* find(session_id session);
  /// "node 'n1'", as losses are told; an attempt knows them by it.
  std::string label_of(session_id session) const;
  cluster_snapshot snapshot();
  cluster_ack on_command(const cluster_command& what);
  void note(const char* kind, const std::string& node, const std::string& reason,
    const std::string& more = {});

  // cluster_hub_tasks.cpp: work for nodes.
  /// `then` is called once: with the answer, or with why there is none. Returns the task's number;
  /// 0 when `then` has been called already.
  uint64_t give(session_id to, node_task task, instant deadline, task_done then);
  void on_answer(const node_answer& what);
  /// Ends the stay when the failure is the node's own; what its loss is called then.
  failure blame(session_id session, const failure& why);
  caf::result<compiled_candidate> compile(const compile_request& request);
  void serve_compiles();
  void compile_here(compile_job job);
  void compile_there(session_id place, compile_job job);
  void on_compiled(session_id place, compile_job job, const result<node_answer>& answer);
  void compile_elsewhere(session_id place, compile_job job, const failure& why);
  caf::result<prepared_problem> prepare(const prepare_request& request);
  void prepare_at(const std::string& key, session_id place);
  void prepare_here(const std::string& key);
  void on_fan(const std::string& key);
  void finish_fan(const std::string& key, const result<prepared_problem>& outcome);
  void end_draw(const draw_over& what);
  caf::result<evaluation> judge(const judge_request& request);
  void fetch(const std::vector<blob_ref>& blobs, const caf::strong_actor_ptr& from,
    std::function<void(const result<blobs_fetched>&)> then);

  // cluster_hub_devices.cpp: what executors ask for.
  void add_devices(session_id session);
  void start_executor(const std::string& name);
  void executor_down(const std::string& name, const caf::strong_actor_ptr& executor);
  void remove_devices(session_id session, const failure& why);
  caf::result<child_result> start_child(const child_request& what);
  void start_measure(session_id session, const child_request& what, const measure_request& request,
    caf::typed_response_promise<child_result> reply);
  bool hand_in(session_id session, const child_request& what, const measure_request& request,
    caf::typed_response_promise<child_result>& reply);
  void note_handed_in(session_id session, const attempt_id& attempt, const std::string& where);
  void start_probe(
    session_id session, const child_request& what, caf::typed_response_promise<child_result> reply);
  void cancel_child(const child_cancel& what);
  caf::result<device_quiet> wait_for_quiet(const device_quiet_query& what);

  // cluster_hub_workers.cpp: where workers live, and those of the coordinator itself.
  caf::result<caf::strong_actor_ptr> place(const place_worker& what, const worker_peers& peers);
  void place_waiting();
  void try_place(uint32_t index);
  void on_worker_started(const worker_started& what, const caf::strong_actor_ptr& worker);
  void send_workers_home(session_id session);
  void start_member(const std::string& who);
  void member_down(const std::string& who, const caf::error& why);
  void begin_end();
  void end_if_alone();

  cluster_hub_config config_;
  seam::monitors monitors_;
  node_table nodes_;
  task_table tasks_;
  std::map<uint64_t, task_done> task_done_;
  std::map<session_id, stay> stays_;
  std::map<caf::actor_addr, session_id> by_agent_;
  std::map<std::string, device> devices_;
  std::map<uint32_t, std::string> device_of_gpu_;
  /// Tasks of the children that executors believe in.
  std::map<uint64_t, uint64_t> task_of_child_;
  uint64_t starts_ = 0;

  std::deque<compile_job> compiles_;
  uint32_t compiles_here_ = 0;
  /// What every machine with devices must have made, by `prepare_key`; of a draw until it is over.
  std::map<std::string, prepare_request> prepared_;
  std::deque<std::string> draws_;
  std::map<std::string, open_fan> fans_;

  std::map<uint32_t, placing> placing_;
  /// Those that were last told to live with the coordinator.
  std::set<uint32_t> workers_here_;
  std::optional<instant> newest_ready_;

  std::map<std::string, local_member> members_;
  compiler_actor compiler_;
  oracle_actor oracle_;
  judge_actor judge_;
  blob_keeper_actor keeper_;

  instant started_{0};
  uint64_t generation_ = 0;
  std::optional<instant> ending_since_;
  caf::error end_reason_;
};

} // namespace gristmill
