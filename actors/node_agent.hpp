#pragma once

#include "actors/held_results.hpp"
#include "actors/interfaces.hpp"
#include "actors/node_context.hpp"
#include "actors/node_tasks.hpp"
#include "actors/search_library.hpp"
#include "gpu/toolchain/device_compiler.hpp"
#include "journal/blob_cache.hpp"
#include "protocol/proposer_text.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gristmill {

/// The agent with its other face, for the process that it lives in.
using own_node_agent_actor = node_agent_actor::extend<
  // A hub has greeted us; the pointer is its door, which is the hub.
  sig<void, cluster_greeting, caf::strong_actor_ptr>,
  // This process is to end: what measures may end first. A second one: at once.
  sig<void, drain_request>>;

/// What the process is told about, from the agent's thread.
struct node_news {
  enum class kind : uint8_t {
    /// The hub has taken us and gets its work done here.
    ready = 0,
    /// It has not; connect again later.
    turned_away,
    /// It is gone, or this stay is over: connect again.
    hub_lost,
    run_over,
    /// The agent has ended, as it was told to.
    left,
    /// The agent has ended, because nothing can be done here any more.
    broken,
  };
  kind what = kind::ready;
  std::string text;
};

struct node_agent_device {
  node_device what;
  /// What a runner calls it: "mock:h200", "cuda:0"; empty for one that sleeps.
  std::string runner_name;
};

struct node_agent_times {
  /// From the offer to its answer.
  std::chrono::nanoseconds welcome = std::chrono::seconds{30};
  /// What a context needs, on its way here.
  std::chrono::nanoseconds fetch_context = std::chrono::minutes{5};
  /// Blobs of a task, within the task's own deadline.
  std::chrono::nanoseconds fetch = std::chrono::minutes{2};
  /// To let what measures end, and how long nothing has to have happened before that is believed.
  std::chrono::nanoseconds leave = std::chrono::minutes{2};
  std::chrono::nanoseconds leave_idle = std::chrono::seconds{10};
};

struct node_agent_config {
  std::string node;
  /// Random; another one at each start of the process.
  std::string boot;
  std::vector<node_agent_device> devices;
  uint32_t compile_slots = 0;
  uint32_t workers = 0;
  bool oracle = false;
  /// Used with compile slots alone.
  device_compiler device_code;
  /// `directory` is for all runs: each of them gets a folder in it.
  node_folders folders;
  /// May be null: nothing is evicted, and nothing has to be pinned.
  std::shared_ptr<blob_cache> cache;
  std::function<child_front_actor(caf::actor_system&)> make_child_front;
  std::function<blob_keeper_actor(caf::actor_system&)> make_keeper;
  std::function<void(const node_news&)> on_news;
  node_agent_times times;
  /// Somebody here who dies more often ends the node.
  uint32_t restarts_max = 5;
};

/// One machine of a cluster: does the tasks of a hub and hosts workers. Owner of everything on the
/// node; knows one run at a time.
///
/// When the hub is lost its workers are ended and what measures goes on; the results are kept
/// (held_results.hpp) and offered to the next hub of the same run, with all that was prepared for
/// it still here. The process behind it connects; this actor never waits for the network.
///
/// Nothing that a hub says ends this actor: tasks that make no sense are answered `failed`.
class node_agent final : public own_node_agent_actor::base {
public:
  node_agent(caf::actor_config& actor, node_agent_config config);

  const char* name() const override { return "node-agent"; }
  void on_exit() override;

protected:
  behavior_type make_behavior() override;

private:
  using instant = std::chrono::nanoseconds;

  /// Everything of one run.
  struct cell {
    run_terms terms;
    run_context_ptr context;
    std::vector<proposer_choice> mix;
    std::shared_ptr<search_library> library = std::make_shared<search_library>();
    compiler_actor compiler;
    oracle_actor oracle;
    judge_actor judge;
    std::map<std::string, uint32_t> deaths;
    /// Answers about problems, which do not change.
    std::map<std::string, prepared_problem> prepared;
  };
  using cell_ptr = std::shared_ptr<cell>;

  struct hosted {
    worker_actor worker;
    proposer_actor proposer;
    uint32_t deaths = 0;
  };

  instant now();
  void arm();
  void on_tick();
  void tell_news(node_news::kind what, std::string text);

  // node_agent.cpp: hubs come and go.
  void on_hub(const caf::strong_actor_ptr& door);
  void on_welcome(const node_welcome& what, const caf::strong_actor_ptr& keeper);
  void turned_away(const std::string& reason);
  void cannot_work(const std::string& reason);
  result<void> check_devices(const run_terms& terms) const;
  void enter_run(run_terms terms, std::vector<std::string> prepared);
  void prepare_next(std::vector<std::string> missing);
  void become_ready();
  void hub_lost(const std::string& reason);
  void forget_hub();
  void on_farewell(const node_farewell& what);
  void leave(const std::string& reason);
  void look_whether_left();
  void end_all(node_news::kind how, const std::string& reason);
  void drop_run();
  void start_services(const cell_ptr& in);
  void start_service(const cell_ptr& in, const std::string& which);
  void end_services(cell& of);

  // node_agent_tasks.cpp
  void on_task(const node_task& what);
  void begin(uint64_t ticket, const node_task& what);
  void do_compile(uint64_t ticket, const compile_request& what);
  void do_prepare(uint64_t ticket, const prepare_request& what);
  void do_measure(uint64_t ticket, const node_task& what);
  void sleep_instead(uint64_t ticket, held_result what, const node_device& device);
  void do_judge(uint64_t ticket, const judge_request& what);
  void do_quiet(uint64_t ticket, const std::string& device);
  void do_probe(uint64_t ticket, const node_task& what);
  /// `note` goes with the answer: `handed_in_answer` for one that was measured for an earlier hub.
  void measured(uint64_t ticket, held_result what, const std::string& note = {});
  void end_sleep(uint64_t ticket, child_end how);
  void end_child(uint64_t ticket, bool gently);
  void answer(uint64_t ticket, node_answer with);
  void refuse(uint64_t ticket, const failure& why);
  void pass_on(uint64_t ticket, const caf::error& why);
  void remove_dropped();
  const node_agent_device* find_device(const std::string& name) const;

  // node_agent_workers.cpp
  void on_worker_order(const worker_order& what, const worker_peers& peers);
  result<worker_actor> start_worker(uint32_t index, const worker_peers& peers);
  proposer_actor start_proposer(uint32_t index);
  void on_proposer_down(uint32_t index);
  void end_worker(uint32_t index);
  void end_workers();

  node_agent_config config_;
  seam::monitors monitors_;
  node_tasks tasks_;
  held_results held_;
  child_front_actor child_front_;
  blob_keeper_actor keeper_;
  /// Numbers the children of this process, over all runs.
  std::shared_ptr<std::atomic<uint64_t>> child_ids_ = std::make_shared<std::atomic<uint64_t>>(1);

  cluster_hub_actor hub_;
  caf::strong_actor_ptr hub_keeper_;
  /// What was begun for an earlier hub finds another number here.
  uint64_t stay_ = 0;
  std::optional<instant> welcome_due_;
  bool ready_ = false;

  cell_ptr cell_;
  uint64_t runs_ = 0;
  std::map<uint32_t, hosted> workers_;

  struct asleep {
    instant until;
    instant began;
    held_result result;
  };
  std::map<uint64_t, asleep> sleeping_;
  /// Children of tasks that can be ended, and blobs that tasks need.
  std::map<uint64_t, uint64_t> children_;
  std::map<uint64_t, blob_pins> pins_;
  /// Tickets of `quiet` tasks, by sleep device.
  std::multimap<std::string, uint64_t> quiet_waiting_;

  std::optional<instant> leave_due_;
  instant busy_last_{0};
  uint64_t generation_ = 0;
  std::optional<instant> armed_for_;
};

} // namespace gristmill
