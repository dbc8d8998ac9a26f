#pragma once

#include "messages/cluster.hpp"
#include "messages/inspect_child.hpp"
#include "messages/inspect_measure.hpp"

namespace gristmill {

/// Who a worker on a node works with; all of them live with the coordinator.
struct worker_peers {
  caf::strong_actor_ptr planner;
  caf::strong_actor_ptr compiler;
  caf::strong_actor_ptr oracle;
  caf::strong_actor_ptr lease;
  caf::strong_actor_ptr scorer;
  /// How long the run has been going on.
  std::chrono::nanoseconds run_age{0};
};

GRISTMILL_FIELDS(cluster_hello, protocol, version)
GRISTMILL_FIELDS(cluster_greeting, taken, reason, protocol, version)
GRISTMILL_FIELDS(node_device, name, label, model, title, arch, memory_bytes, sm_count,
  shared_per_block, shared_per_sm, l2_bytes, sleep_ns)
GRISTMILL_FIELDS(held_result, key, device, measured, ended)
GRISTMILL_FIELDS(
  node_offer, node, boot, devices, compile_slots, workers, oracle, toolchain, run, held)
GRISTMILL_FIELDS(node_welcome, taken, reason, run, terms, prepared, workers)
GRISTMILL_FIELDS(node_ready, able, reason)
GRISTMILL_FIELDS(
  node_task, id, kind, device, deadline, compile, prepare, over, measure, judge, command)
GRISTMILL_FIELDS(node_answer, id, failed, code, what, compiled, prepared, measured, judged, ended)
GRISTMILL_FIELDS(node_task_cancel, id, gently)
GRISTMILL_FIELDS(worker_order, index, end)
GRISTMILL_FIELDS(place_worker, index)
GRISTMILL_FIELDS(worker_started, index, started, reason)
GRISTMILL_FIELDS(worker_peers, planner, compiler, oracle, lease, scorer, run_age)
GRISTMILL_FIELDS(blobs_offered, blobs)
GRISTMILL_FIELDS(node_drain, reason)
GRISTMILL_FIELDS(node_farewell, reason)
GRISTMILL_FIELDS(node_leaving, reason)
GRISTMILL_FIELDS(blob_fetch, blobs, deadline)
GRISTMILL_FIELDS(blobs_fetched, bytes)
GRISTMILL_FIELDS(blob_pull, sha256, offset, bytes)
GRISTMILL_FIELDS(blob_piece, sha256, offset, total, data, failure_text)
GRISTMILL_FIELDS(node_snapshot, node, boot, state, reason, devices, compile_slots, compiles_running,
  workers, workers_max, tasks_open, tasks_done, tasks_failed, losses, returns, handed_in,
  blob_bytes_in, blob_bytes_out, age)
GRISTMILL_FIELDS(cluster_query)
GRISTMILL_FIELDS(
  cluster_snapshot, run, incarnation, nodes, workers_here, devices_here, compile_slots_here, up)
GRISTMILL_FIELDS(cluster_command, verb, node, reason)
GRISTMILL_FIELDS(cluster_ack, applied, note)

} // namespace gristmill

GRISTMILL_BEGIN_TYPES(gristmill_cluster, 8)
GRISTMILL_TYPE(gristmill_cluster, gristmill::cluster_hello)
GRISTMILL_TYPE(gristmill_cluster, gristmill::cluster_greeting)
GRISTMILL_TYPE(gristmill_cluster, gristmill::node_offer)
GRISTMILL_TYPE(gristmill_cluster, gristmill::node_welcome)
GRISTMILL_TYPE(gristmill_cluster, gristmill::node_ready)
GRISTMILL_TYPE(gristmill_cluster, gristmill::node_task)
GRISTMILL_TYPE(gristmill_cluster, gristmill::node_answer)
GRISTMILL_TYPE(gristmill_cluster, gristmill::node_task_cancel)
GRISTMILL_TYPE(gristmill_cluster, gristmill::worker_order)
GRISTMILL_TYPE(gristmill_cluster, gristmill::place_worker)
GRISTMILL_TYPE(gristmill_cluster, gristmill::worker_started)
GRISTMILL_TYPE(gristmill_cluster, gristmill::worker_peers)
GRISTMILL_TYPE(gristmill_cluster, gristmill::blobs_offered)
GRISTMILL_TYPE(gristmill_cluster, gristmill::node_drain)
GRISTMILL_TYPE(gristmill_cluster, gristmill::node_farewell)
GRISTMILL_TYPE(gristmill_cluster, gristmill::node_leaving)
GRISTMILL_TYPE(gristmill_cluster, gristmill::blob_fetch)
GRISTMILL_TYPE(gristmill_cluster, gristmill::blobs_fetched)
GRISTMILL_TYPE(gristmill_cluster, gristmill::blob_pull)
GRISTMILL_TYPE(gristmill_cluster, gristmill::blob_piece)
GRISTMILL_TYPE(gristmill_cluster, gristmill::cluster_query)
GRISTMILL_TYPE(gristmill_cluster, gristmill::cluster_snapshot)
GRISTMILL_TYPE(gristmill_cluster, gristmill::cluster_command)
GRISTMILL_TYPE(gristmill_cluster, gristmill::cluster_ack)
GRISTMILL_TYPE(gristmill_cluster, gristmill::evaluation)
GRISTMILL_END_TYPES(gristmill_cluster)
