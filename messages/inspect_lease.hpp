#pragma once

#include "messages/inspect_wire.hpp"
#include "messages/lease.hpp"

namespace gristmill {

GRISTMILL_FIELDS(lease, gpu, token, what, term)
GRISTMILL_FIELDS(lease_flow, problem, agent)
GRISTMILL_FIELDS(
  lease_request, request, what, flow, weight, need, estimated_hold, patience, attempt)
GRISTMILL_FIELDS(lease_ticket, request, ticket, ahead)
GRISTMILL_FIELDS(lease_command, verb, request, gpu, token, reason)
GRISTMILL_FIELDS(lease_ack, applied, note)
GRISTMILL_FIELDS(lease_granted, request, granted)
GRISTMILL_FIELDS(lease_ended, request, token, reason)
GRISTMILL_FIELDS(lease_revoke, gpu, token, reason)
GRISTMILL_FIELDS(device_report, gpu, state, token, model, reason)
GRISTMILL_FIELDS(gpu_snapshot, gpu, model, phase, token, attempt)
GRISTMILL_FIELDS(broker_query)
GRISTMILL_FIELDS(broker_snapshot, gpus, waiting, granted_total)

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
GRISTMILL_END_TYPES(gristmill_lease)
