#pragma once

#include "messages/inspect_wire.hpp"
#include "messages/lease.hpp"

namespace gristmill {

GRISTMILL_FIELDS(lease, gpu, token, what, term)
GRISTMILL_FIELDS(lease_flow, problem, agent)
GRISTMILL_FIELDS(lease_request, request, what, flow, weight, need, estimated_hold, patience,
  attempt, candidate, term)
GRISTMILL_FIELDS(lease_ticket, request, ticket, ahead, estimated_wait)
GRISTMILL_FIELDS(lease_command, verb, request, gpu, token, reason, outcome, idle)
GRISTMILL_FIELDS(lease_ack, applied, note)
GRISTMILL_FIELDS(lease_granted, request, granted)
GRISTMILL_FIELDS(lease_ended, request, token, reason)
GRISTMILL_FIELDS(lease_revoke, gpu, token, reason)
GRISTMILL_FIELDS(probe_report, outcome, detail)
GRISTMILL_FIELDS(adopted_lease, request, held)
GRISTMILL_FIELDS(device_report, gpu, state, token, model, reason, boot, probe, adopted)
GRISTMILL_FIELDS(probe_order, gpu, limit)
GRISTMILL_FIELDS(
  gpu_snapshot, gpu, model, phase, token, attempt, name, reason, what, flow, held, term, age)
GRISTMILL_FIELDS(waiter_snapshot, ticket, what, flow, need, attempt, waited, ahead, estimated_wait)
GRISTMILL_FIELDS(broker_alarm, kind, gpu, ticket, detail)
GRISTMILL_FIELDS(flow_usage, flow, weight, held_ns, leases)
GRISTMILL_FIELDS(broker_query, waiters_max)
GRISTMILL_FIELDS(
  broker_snapshot, gpus, waiting, granted_total, waiters, alarms, usage, policy, epoch)
GRISTMILL_FIELDS(broker_command, verb, gpu, reason)

} // namespace gristmill

GRISTMILL_BEGIN_TYPES(gristmill_lease, 1)
GRISTMILL_TYPE(gristmill_lease, gristmill::lease_request)
GRISTMILL_TYPE(gristmill_lease, gristmill::lease_ticket)
GRISTMILL_TYPE(gristmill_lease, gristmill::lease_command)
GRISTMILL_TYPE(gristmill_lease, gristmill::lease_ack)
GRISTMILL_TYPE(gristmill_lease, gristmill::lease_granted)
GRISTMILL_TYPE(gristmill_lease, gristmill::lease_ended)
GRISTMILL_TYPE(gristmill_lease, gristmill::lease_revoke)
GRISTMILL_TYPE(gristmill_lease, gristmill::device_report)
GRISTMILL_TYPE(gristmill_lease, gristmill::broker_query)
GRISTMILL_TYPE(gristmill_lease, gristmill::broker_snapshot)
GRISTMILL_TYPE(gristmill_lease, gristmill::broker_command)
GRISTMILL_TYPE(gristmill_lease, gristmill::probe_order)
GRISTMILL_END_TYPES(gristmill_lease)
