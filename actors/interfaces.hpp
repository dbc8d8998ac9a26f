#pragma once

#include "messages/inspect_attempt.hpp"
#include "messages/inspect_child.hpp"
#include "messages/inspect_cluster.hpp"
#include "messages/inspect_lease.hpp"
#include "messages/inspect_llm.hpp"
#include "messages/inspect_measure.hpp"
#include "messages/inspect_plant.hpp"
#include "messages/inspect_runtime.hpp"

namespace gristmill {

using seam::sig;

/// Keeps every event of the run. Two durabilities: `barrier` is acknowledged when it is on disk.
using journal_actor = caf::typed_actor<
  // `io_failed` when the log cannot be written: the run ends.
  sig<journal_ack, journal_append>,
  // INTERNAL: commit what waits.
  sig<void, tick>>;

/// Starts children and answers when they have ended; the loop thread behind it does the waiting.
using child_front_actor = caf::typed_actor<
  // Always answered with a child_result once the process group is gone; `queue_full` when too many
  // wait.
  sig<child_result, child_request>,
  // Ends a child; its result follows. Unknown ids are ignored.
  sig<void, child_cancel>,
  // Answered as soon as no child works on the device, also one that nobody waits for any more.
  sig<device_quiet, device_quiet_query>,
  // INTERNAL: the loop thread has seen a child end.
  sig<void, child_result>>;

/// What a holder of leases can be told.
using lease_holder_actor = caf::typed_actor<
  // Your turn; the second part is the executor of that GPU (a `gpu_actor`).
  sig<void, lease_granted, caf::strong_actor_ptr>,
  // No turn, or the turn is over.
  sig<void, lease_ended>>;

/// What an executor can be told by the broker.
using gpu_executor_actor = caf::typed_actor<sig<void, lease_revoke>,
  // Look at your idle device again and report `probed`.
  sig<void, probe_order>>;

/// Lends each GPU to one holder at a time; the only owner of tokens, queues and health.
using gpu_lease_actor = caf::typed_actor<
  // The sender is the holder: it gets a place in line at once and the grant later, pushed.
  // `queue_full` when too many wait; `not_found` when no GPU has the model.
  sig<lease_ticket, lease_request>,
  // Stale commands are answered with `applied = false` and do nothing.
  sig<lease_ack, lease_command>,
  // From the executor of a GPU, which is the sender: joins, starts, proves that nothing runs,
  // leaves.
  sig<lease_ack, device_report>, sig<broker_snapshot, broker_query>,
  // From a person: drain and undrain. `applied = false` with the nearest name for an unknown GPU.
  sig<lease_ack, broker_command>,
  // INTERNAL: the table's next deadline fell due.
  sig<void, tick>>;

/// One device: runs one measurement at a time, in one child a lease.
using gpu_actor = caf::typed_actor<
  // Answered after the lease is released and verified. `lease_expired` for a token that is too
  // old, `invalid_input` for another GPU's lease, `refused` while busy, `timed_out` when the
  // child outlives its term, `child_failed` when the child front is gone, `shutting_down` at the
  // end; a crash, a hang or a fault of the candidate is an answer, not an error.
  sig<measurement, measure_request>,
  // From the broker: end what runs under this token, refuse it from now on, report `verified`.
  sig<void, lease_revoke>,
  // From the broker, while idle: look at the device again, report `probed`.
  sig<void, probe_order>,
  // INTERNAL: a deadline fell due.
  sig<void, tick>>;

/// Makes device code; caches by content; compile slots are its credit.
using compiler_actor = caf::typed_actor<
  // A candidate that does not compile is an answer. `invalid_input` for a launch plan that does not
  // parse or resolve is an answer too (compile_error); `child_failed` when the compiler child died.
  sig<compiled_candidate, compile_request>>;

/// Judges: correctness from the judge's counts, integrity, score. Owner of incumbents.
using scorer_actor = caf::typed_actor<
  // `lease_expired` for a measurement under an old token; `child_failed` when the judge died.
  sig<verdict, judge_request>,
  // The verdict on what the compiler refused.
  sig<verdict, refused_request>,
  // A problem is ready: floors and bounds.
  sig<void, prepared_problem>>;

/// Compares outputs with references, on the machine where they lie.
using judge_actor = caf::typed_actor<
  // Counts of the workloads that ran to their end; none when there are none. The outputs are gone
  // afterwards, however it ends. `child_failed` when the judge child died; `node_lost` when the
  // machine with the outputs is gone: then the candidate is to be measured again.
  sig<evaluation, judge_request>>;

/// Makes inputs, references and operator graphs.
using oracle_actor = caf::typed_actor<
  // A reference that raises is an answer (invalid_reference); `child_failed` when the child died.
  // Of a draw, the cases that came to be; `not_checked` when none did.
  sig<prepared_problem, prepare_request>,
  // A promotion is over. Unknown draws are ignored.
  sig<void, draw_over>>;

/// Every call of a language model goes through here: which deployment, when, how often again, and
/// who pays. The transport behind it does the waiting.
using llm_gateway_actor = caf::typed_actor<
  // Always answered, within the deadlines of the deployment. A refusal or a cut-off text is an
  // answer. `budget_exhausted` names the budget that does not hold the worst case of the call;
  // `provider_refused` for keys, quota and unknown models; `queue_full` when too many wait;
  // `invalid_input` for a call that no deployment can take; `timed_out` and `io_failed` after the
  // last try; `shutting_down` at the end.
  sig<llm_reply, llm_request>,
  // The call is answered with `shutting_down`. Unknown ones are ignored.
  sig<void, llm_cancel>, sig<llm_snapshot, llm_query>,
  // INTERNAL: a try may have ended, or a deadline fell due.
  sig<void, tick>>;

/// Has ideas. One a worker.
using proposer_actor = caf::typed_actor<
  // Having none is an answer.
  sig<proposal, propose_request>>;

/// Decides which problem each worker tries next, until budgets or ideas end.
using planner_actor = caf::typed_actor<
  // Answered when there is work or never will be; the sender is watched: if it dies, its attempt
  // ends.
  sig<work_reply, work_request>,
  // Nothing is tried twice.
  sig<claim_reply, claim_request>,
  // One for each assignment; answered when it is counted. Duplicates and late ones are ignored.
  sig<void, attempt_summary>,
  // First Ctrl-C: give out nothing more.
  sig<void, drain_request>, sig<planner_snapshot, planner_query>, sig<void, start_working>,
  // From the supervisor: the oracle was replaced.
  sig<void, peer_restarted, caf::strong_actor_ptr>,
  // From the supervisor: this candidate failed only because of its GPU. Duplicates, unknown ones
  // and late ones are logged and change nothing.
  sig<void, rerun_request>,
  // From outside, while the run takes candidates: answered when the attempt is over, or at once
  // when there is none to be made. `queue_full` when too many wait; `shutting_down` at the end.
  sig<plant_reply, plant_request>,
  // Unknown ones, and those that are being tried, are left alone.
  sig<void, plant_withdrawal>, sig<void, plant_close>,
  // INTERNAL: a budget or a deadline fell due.
  sig<void, tick>>;

/// Holds the content of blobs for a peer, and fetches from it: pieces in both directions, at most
/// four open. One a node and one at the coordinator.
using blob_keeper_actor = caf::typed_actor<
  // From its own side, with the keeper of the peer. `not_found` when the peer does not have it,
  // `io_failed` when it cannot be written here, `timed_out`, `queue_full`, `node_lost`.
  sig<blobs_fetched, blob_fetch, caf::strong_actor_ptr>,
  // From the peer; the sender gets the piece.
  sig<void, blob_pull>, sig<void, blob_piece>,
  // INTERNAL: a deadline fell due.
  sig<void, tick>>;

/// What a process that connects may say first, and all that is published.
using cluster_door_actor = caf::typed_actor<sig<cluster_greeting, cluster_hello>>;

/// The coordinator's side of the cluster: knows the nodes, gives them tasks, places workers, and
/// stands for compiler, oracle and judge of the whole cluster. The only one that knows where
/// anything lives.
using cluster_hub_actor = caf::typed_actor<
  // Whoever connects. Those who are turned away learn why.
  sig<cluster_greeting, cluster_hello>,
  // From a node, with its agent and its keeper; answered to the agent by `node_welcome` with the
  // hub's keeper.
  sig<void, node_offer, caf::strong_actor_ptr, caf::strong_actor_ptr>, sig<void, node_ready>,
  sig<void, node_answer>, sig<void, worker_started, caf::strong_actor_ptr>,
  // The sender, a worker's proposer on a node, is answered once the blobs are here.
  sig<blobs_fetched, blobs_offered, caf::strong_actor_ptr>, sig<void, node_leaving>,
  // From the supervisor. The worker, or null when it is to live here.
  sig<caf::strong_actor_ptr, place_worker, worker_peers>,
  // As the actors of these names; `node_lost` when the node is gone and nobody else can do it.
  sig<compiled_candidate, compile_request>, sig<prepared_problem, prepare_request>,
  sig<void, draw_over>, sig<evaluation, judge_request>,
  // From `gristmill cluster`.
  sig<cluster_snapshot, cluster_query>, sig<cluster_ack, cluster_command>,
  // INTERNAL: a deadline fell due.
  sig<void, tick>>;

/// A node as the coordinator sees it. Owns everything that lives on the node.
using node_agent_actor = caf::typed_actor<
  // With the hub's keeper.
  sig<void, node_welcome, caf::strong_actor_ptr>, sig<void, node_task>, sig<void, node_task_cancel>,
  // Answered by `worker_started` with its handle.
  sig<void, worker_order, worker_peers>, sig<void, node_drain>, sig<void, node_farewell>,
  // INTERNAL: a deadline fell due.
  sig<void, tick>>;

/// One agent: carries one attempt after the other through its steps.
using worker_actor = caf::typed_actor<sig<void, start_working>,
  // From the broker.
  sig<void, lease_granted, caf::strong_actor_ptr>, sig<void, lease_ended>,
  // From the supervisor: a compiler, an oracle or a scorer was replaced.
  sig<void, peer_restarted, caf::strong_actor_ptr>,
  // INTERNAL: a step took too long.
  sig<void, tick>>;

/// Owns every actor: starts them, restarts what may be restarted, ends them in order.
using supervisor_actor = caf::typed_actor<sig<void, start_working>,
  // From the planner: nothing is left to do. From itself: something essential died.
  sig<void, run_ended>,
  // First Ctrl-C: passed on to the planner. Second one: the run ends at once.
  sig<void, drain_request>,
  // For the progress line; passed on to the planner.
  sig<planner_snapshot, planner_query>,
  // From the broker, which is started before the planner; passed on to it.
  sig<void, rerun_request>,
  // INTERNAL: a restart or the end of a grace period fell due.
  sig<void, tick>>;

} // namespace gristmill
