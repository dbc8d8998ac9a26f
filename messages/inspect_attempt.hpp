#pragma once

#include "messages/attempt.hpp"
#include "messages/inspect_wire.hpp"
#include "messages/plan.hpp"
#include "messages/propose.hpp"

namespace gristmill {

GRISTMILL_FIELDS(attempt_id, problem, language, ordinal)
GRISTMILL_FIELDS(candidate_ref, hash, source, plan, key, parent, hypothesis)
GRISTMILL_FIELDS(workload_time, uuid, ns)
GRISTMILL_FIELDS(trial, key, status, objective_ns, floor_share, effort, times, candidate, feedback)

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, trial_history::row& x) {
  if constexpr (Inspector::reads_state) {
    return f(const_cast<trial&>(*x.seen)); // An inspector that reads changes nothing.
  } else {
    auto made = std::make_shared<trial>();
    x.seen = made;
    return f(*made);
  }
}

GRISTMILL_FIELDS(
  assignment, id, kind, device_model, seed, history, in_flight, given, graph, moved_from, notes)
GRISTMILL_FIELDS(attempt_summary, id, kind, worker, outcome, candidate, effort, status,
  objective_ns, speedup, sol_score, floor_share, incumbent_stays, gpu_ns, times, feedback, note,
  reason)
GRISTMILL_FIELDS(work_request, worker)
GRISTMILL_FIELDS(work_reply, kind, work, reason)
GRISTMILL_FIELDS(claim_request, attempt, key)
GRISTMILL_FIELDS(claim_reply, granted, taken)
GRISTMILL_FIELDS(drain_request, reason)
GRISTMILL_FIELDS(rerun_request, problem, attempt, candidate)
GRISTMILL_FIELDS(planner_query)
GRISTMILL_FIELDS(planner_snapshot, problems_total, problems_finished, problems_passed,
  attempts_finished, attempts_in_flight, gpu_ns, geomean, finished, stop_reason)
GRISTMILL_FIELDS(propose_request, work)
GRISTMILL_FIELDS(proposal, kind, candidate, effort, workloads, reason)

} // namespace gristmill

GRISTMILL_BEGIN_TYPES(gristmill_attempt, 0)
GRISTMILL_TYPE(gristmill_attempt, gristmill::attempt_summary)
GRISTMILL_TYPE(gristmill_attempt, gristmill::work_request)
GRISTMILL_TYPE(gristmill_attempt, gristmill::work_reply)
GRISTMILL_TYPE(gristmill_attempt, gristmill::claim_request)
GRISTMILL_TYPE(gristmill_attempt, gristmill::claim_reply)
GRISTMILL_TYPE(gristmill_attempt, gristmill::drain_request)
GRISTMILL_TYPE(gristmill_attempt, gristmill::planner_query)
GRISTMILL_TYPE(gristmill_attempt, gristmill::planner_snapshot)
GRISTMILL_TYPE(gristmill_attempt, gristmill::propose_request)
GRISTMILL_TYPE(gristmill_attempt, gristmill::proposal)
GRISTMILL_TYPE(gristmill_attempt, gristmill::rerun_request)
GRISTMILL_END_TYPES(gristmill_attempt)
