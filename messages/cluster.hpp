#pragma once

#include "messages/blob.hpp"
#include "messages/child.hpp"
#include "messages/compile.hpp"
#include "messages/errc.hpp"
#include "messages/measure.hpp"
#include "messages/prepare.hpp"
#include "messages/verdict.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

// What a coordinator and its nodes say to each other. Long work is never a request of the actor
// library, whose answer would be waited for without end when the machine is gone: a task and its
// answer are two messages with one number, and both sides keep their own deadlines. Times are
// durations: the clocks of two machines are never compared.

namespace gristmill {

/// Raised whenever a message of this file, or one inside it, changes. Nodes of another number, or
/// of another version of the program, are turned away.
inline constexpr uint32_t cluster_protocol = 1;

/// No text inside a message between nodes is longer, so that a message stays well under 1 MiB.
inline constexpr uint32_t cluster_text_max = 512 * 1024;
/// Content of a blob travels in pieces of at most this size.
inline constexpr uint32_t blob_piece_max = 256 * 1024;

/// First words of whoever connects. This message never changes.
struct cluster_hello {
  uint32_t protocol = 0;
  /// Version of the program, such as "0.9.0".
  std::string version;
};

struct cluster_greeting {
  bool taken = false;
  /// Why not; names both versions.
  std::string reason;
  uint32_t protocol = 0;
  std::string version;
};

/// One device of a node, as the coordinator needs to know it.
struct node_device {
  /// On its node, such as "cuda:0" or "mock:h200#1".
  std::string name;
  /// What results name: "mock:h200", "cuda:h200", "sleep". A run takes devices of one label.
  std::string label;
  /// "h200": what a lease asks for.
  std::string model;
  /// "NVIDIA H200"; empty for a model.
  std::string title;
  /// "sm_90a".
  std::string arch;
  uint64_t memory_bytes = 0;
  uint32_t sm_count = 0;
  uint64_t shared_per_block = 0;
  uint64_t shared_per_sm = 0;
  uint64_t l2_bytes = 0;
  /// Of a sleep device: how long a measurement takes.
  uint64_t sleep_ns = 0;
};

/// A measurement that ended while the coordinator was away. Its outputs lie on the node still.
struct held_result {
  /// `measure_key` (actors/measure_key.hpp): what was measured, apart from attempt and lease.
  std::string key;
  /// Name of the device on its node.
  std::string device;
  measurement measured;
  child_result ended;
};

/// What a node brings. Sent to the hub after a greeting that took it, with the handles of the node
/// agent and of its blob keeper; answered by `node_welcome`.
struct node_offer {
  /// Chosen by its operator; unique in the cluster, at most 64 characters of [A-Za-z0-9_.-].
  std::string node;
  /// Random, another one at each start of the process.
  std::string boot;
  std::vector<node_device> devices;
  /// Compilers that it runs at the same time; 0: none.
  uint32_t compile_slots = 0;
  /// Workers that it takes at most.
  uint32_t workers = 0;
  /// Makes inputs and references; every node with devices does.
  bool oracle = false;
  /// Such as "clang-19.1.7"; empty without compile slots.
  std::string toolchain;
  /// The run that `held` is of; empty when there is none.
  std::string run;
  std::vector<held_result> held;
};

/// Answer to the offer. When taken, the node makes the run's context from the terms and what
/// `prepared` names, then says `node_ready`; only then it gets tasks.
struct node_welcome {
  bool taken = false;
  /// Why not: another node has the name, the run needs other devices, ...
  std::string reason;
  /// Names the run, the same over all its starts.
  std::string run;
  /// What all nodes of the run agree on: schema "gristmill.run-terms/1" (protocol/run_terms.hpp).
  std::string terms;
  /// Problems that are prepared already, to be prepared here before the devices count.
  std::vector<std::string> prepared;
  /// Workers that this node is to expect at most.
  uint32_t workers = 0;
};

/// The node can work, or cannot: then it is left alone.
struct node_ready {
  bool able = true;
  std::string reason;
};

enum class node_task_kind : uint8_t {
  /// `compile` -> `compiled`; the code of its units lies in the node's store.
  compile = 0,
  /// `prepare` -> `prepared`.
  prepare,
  /// `over`; answered empty.
  end_draw,
  /// `measure` on `device` -> `measured` and `ended`.
  measure,
  /// `judge` -> `judged`. Only on the node that measured.
  judge,
  /// Answered empty as soon as nothing works on `device` any more.
  quiet,
  /// `command` of a probe, with `device` -> `ended`.
  probe,
};

std::string to_string(node_task_kind what);

/// From the hub to a node. Only the member that the kind names is set.
struct node_task {
  /// Unique over the life of the hub.
  uint64_t id = 0;
  node_task_kind kind = node_task_kind::compile;
  std::string device;
  /// From the arrival: the node ends the task itself after it, and answers.
  std::chrono::nanoseconds deadline{0};
  compile_request compile;
  prepare_request prepare;
  draw_over over;
  measure_request measure;
  judge_request judge;
  std::vector<std::string> command;
};

/// From a node to the hub, one for each task. `failed`: the node could not do it, which is nobody's
/// verdict.
struct node_answer {
  uint64_t id = 0;
  bool failed = false;
  errc code = errc::child_failed;
  std::string what;
  compiled_candidate compiled;
  prepared_problem prepared;
  measurement measured;
  evaluation judged;
  /// Without its lines.
  child_result ended;
};

/// End the task; its answer follows all the same. Unknown ones are ignored.
struct node_task_cancel {
  uint64_t id = 0;
  /// As of `child_cancel`.
  bool gently = false;
};

/// Start worker `index` of the run here, or end it. Comes with handles (`worker_peers`).
struct worker_order {
  uint32_t index = 0;
  bool end = false;
};

/// From the supervisor to the hub: where can this worker live? Comes with `worker_peers`.
struct place_worker {
  uint32_t index = 0;
};

/// A worker has been started on the node (with its handle), or could not be.
struct worker_started {
  uint32_t index = 0;
  bool started = false;
  std::string reason;
};

/// Workers of this node have put these into its store: the hub is to fetch them before it answers.
struct blobs_offered {
  std::vector<blob_ref> blobs;
};

/// No new work; what runs may end. The node leaves when it is idle, or stays with nothing to do.
struct node_drain {
  std::string reason;
};

/// The run is over, or the node is not wanted any more. It drops everything of the run.
struct node_farewell {
  std::string reason;
};

/// The node leaves by itself: its process was told to end.
struct node_leaving {
  std::string reason;
};

/// Bring these into your own store from the peer's keeper. Answered when all are there.
struct blob_fetch {
  std::vector<blob_ref> blobs;
  std::chrono::nanoseconds deadline{0};
};

struct blobs_fetched {
  /// Bytes that had to travel.
  uint64_t bytes = 0;
};

/// One piece, please. Answered by `blob_piece`; a keeper has at most four open with a peer.
struct blob_pull {
  std::string sha256;
  uint64_t offset = 0;
  uint32_t bytes = 0;
};

struct blob_piece {
  std::string sha256;
  uint64_t offset = 0;
  /// Size of the whole blob.
  uint64_t total = 0;
  std::string data;
  /// Why there is none; empty when there is.
  std::string failure_text;
};

/// One node as `gristmill cluster status` shows it.
struct node_snapshot {
  std::string node;
  std::string boot;
  /// "joining", "ready", "draining", "lost".
  std::string state;
  std::string reason;
  std::vector<node_device> devices;
  uint32_t compile_slots = 0;
  uint32_t compiles_running = 0;
  uint32_t workers = 0;
  uint32_t workers_max = 0;
  uint32_t tasks_open = 0;
  uint64_t tasks_done = 0;
  uint64_t tasks_failed = 0;
  /// Lost so often, and adopted again so often.
  uint64_t losses = 0;
  uint64_t returns = 0;
  /// Measurements that were handed in after the coordinator had been away.
  uint64_t handed_in = 0;
  uint64_t blob_bytes_in = 0;
  uint64_t blob_bytes_out = 0;
  /// Since the node joined or was lost.
  std::chrono::nanoseconds age{0};
};

struct cluster_query {};

struct cluster_snapshot {
  std::string run;
  uint64_t incarnation = 0;
  std::vector<node_snapshot> nodes;
  /// Workers, devices and compilers in the coordinator's own process.
  uint32_t workers_here = 0;
  uint32_t devices_here = 0;
  uint32_t compile_slots_here = 0;
  std::chrono::nanoseconds up{0};
};

enum class cluster_verb : uint8_t {
  /// No new work for the node; it is let go when it is idle.
  drain = 0,
  undrain,
};

struct cluster_command {
  cluster_verb verb = cluster_verb::drain;
  std::string node;
  std::string reason;
};

/// `applied` is false for an unknown node; the note names the nearest.
struct cluster_ack {
  bool applied = false;
  std::string note;
};

} // namespace gristmill
