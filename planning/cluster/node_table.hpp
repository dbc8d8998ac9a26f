#pragma once

#include "messages/cluster.hpp"
#include "messages/result.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace gristmill {

/// One stay of a node in the cluster, from its offer to its loss; 0 is the coordinator itself. A
/// node that comes back gets another number, so that what belongs to an earlier stay is told apart.
using session_id = uint64_t;

/// What the run needs of a node. A device of another kind is left idle; a compiler of another
/// version is not used, because units of two compilers are not the same.
struct cluster_needs {
  /// "mock:h200": the label that all devices of the run have.
  std::string label;
  /// "sm_90a"; empty: any, as of sleep devices.
  std::string arch;
  std::string toolchain;
  /// Workers may live on nodes.
  bool workers_may_leave = true;
};

struct node_table_limits {
  uint32_t nodes_max = 1024;
  uint32_t devices_max = 64;
  uint32_t held_max = 64;
  /// A node that had to be let go because it failed is asked again after this long, doubled each
  /// time in a row up to the maximum.
  std::chrono::nanoseconds keep_out = std::chrono::seconds{1};
  std::chrono::nanoseconds keep_out_max = std::chrono::minutes{1};
};

enum class node_state : uint8_t {
  /// Its offer was taken; it makes itself ready, or prepares what it has missed.
  joining = 0,
  ready,
  /// Nothing new is given to it; it is let go when it is idle.
  draining,
  lost,
};

std::string to_string(node_state state);

/// A node that was seen at least once.
struct cluster_node {
  std::string name;
  /// Of its current stay, or of the last one.
  session_id session = 0;
  std::string boot;
  node_state state = node_state::lost;
  /// Why draining or lost.
  std::string reason;
  std::vector<node_device> devices;
  /// One a device: why the run does not use it; empty when it does.
  std::vector<std::string> left_idle;
  uint32_t compile_slots = 0;
  /// Why its compilers are not used; empty when they are.
  std::string no_compiles;
  uint32_t workers_max = 0;

  /// Indices of workers that live there, or are being started.
  std::set<uint32_t> workers;
  uint32_t compiles_running = 0;
  uint64_t tasks_done = 0;
  uint64_t tasks_failed = 0;
  uint64_t losses = 0;
  uint64_t returns = 0;
  uint64_t handed_in = 0;
  /// A person has drained it: kept over all its stays.
  bool drained = false;
  /// Stays in a row that ended by its own failure; a task well done begins anew.
  uint32_t failures_in_row = 0;
  std::chrono::nanoseconds kept_out_until{0};
  /// When its state last changed.
  std::chrono::nanoseconds since{0};

  bool is_here() const { return state != node_state::lost; }
  bool can_measure() const;
};

/// Who belongs to the cluster, and what each may be given. Pure.
class node_table {
public:
  explicit node_table(cluster_needs needs, node_table_limits limits = {});

  /// The stay of the same start of the same node, which has connected anew before its loss was
  /// seen: to be ended before its offer is taken. 0: none.
  session_id stay_before(const node_offer& what) const;
  /// Begins a stay. Errors: `invalid_input` for names, texts and numbers outside their limits;
  /// `refused` when the name belongs to a node that is here, for one that a person has drained, and
  /// for one that failed and is kept out for a while yet; `queue_full` for too many nodes.
  result<session_id> offer(const node_offer& what, std::chrono::nanoseconds now);
  /// It works from now on. False for a stay that is over.
  bool ready(session_id session, std::chrono::nanoseconds now);
  /// The stay is over. `failed`: the node itself did not do what it must, so it is kept out for a
  /// while. Nothing for a stay that is over already.
  void lose(
    session_id session, const std::string& reason, bool failed, std::chrono::nanoseconds now);
  /// Nothing new for it. `by_person`: it stays out until `undrain`.
  bool drain(
    session_id session, const std::string& reason, bool by_person, std::chrono::nanoseconds now);
  /// False for an unknown node and one that is not drained.
  bool undrain(const std::string& name);

  /// Null for a stay that is over or never was.
  cluster_node* find(session_id session);
  const cluster_node* find(session_id session) const;
  cluster_node* by_name(const std::string& name);
  /// In the order of names.
  const std::map<std::string, cluster_node>& all() const { return nodes_; }
  std::vector<std::string> names() const;
  /// Stays that are ready and have devices of the run: all that must know what is to be measured.
  std::vector<session_id> with_devices() const;

  /// Where the next compiler runs: the least loaded place with a free slot, the coordinator (0)
  /// before nodes of equal load. `not_at`: places that have failed with it.
  result<session_id> compile_place(
    uint32_t here_running, uint32_t here_slots, const std::set<session_id>& not_at) const;
  /// Whether any compiler is left that has not failed with it, busy or not.
  bool has_compile_place(bool here, const std::set<session_id>& not_at) const;
  /// Where the next worker lives: the node with the largest share of free places; 0 for the
  /// coordinator.
  session_id worker_place() const;
  /// Workers that `worker_place` has room for before it says 0.
  uint32_t free_worker_places() const;

private:
  /// Makes room: the node that has been lost for the longest. False when all are here or drained.
  bool forget_one();
  std::string why_not_used(const node_device& device) const;

  cluster_needs needs_;
  node_table_limits limits_;
  std::map<std::string, cluster_node> nodes_;
  std::map<session_id, std::string> sessions_;
  session_id last_session_ = 0;
};

/// "NODE/DEVICE": how the rest of the run calls a device of a node.
std::string device_name_of(const std::string& node, const std::string& device);

} // namespace gristmill
