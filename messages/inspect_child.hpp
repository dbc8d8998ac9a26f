#pragma once

#include "messages/child.hpp"
#include "messages/event.hpp"
#include "messages/inspect_wire.hpp"

namespace gristmill {

GRISTMILL_FIELDS(
  child_request, id, profile, argv, job_directory, nonce, deadline, silence_limit, device)
GRISTMILL_FIELDS(child_cancel, id, gently)
GRISTMILL_FIELDS(device_quiet_query, device)
GRISTMILL_FIELDS(device_quiet, device)
GRISTMILL_FIELDS(child_result, id, end, status, lines, log, wall, group_left)
GRISTMILL_FIELDS(
  event, seq, v, incarnation, t, wall, kind, problem, attempt, candidate, gpu, token, reason, data)
GRISTMILL_FIELDS(journal_append, events, how)
GRISTMILL_FIELDS(journal_ack, seq)

} // namespace gristmill

GRISTMILL_BEGIN_TYPES(gristmill_child, 3)
GRISTMILL_TYPE(gristmill_child, gristmill::child_request)
GRISTMILL_TYPE(gristmill_child, gristmill::child_cancel)
GRISTMILL_TYPE(gristmill_child, gristmill::child_result)
GRISTMILL_TYPE(gristmill_child, gristmill::journal_append)
GRISTMILL_TYPE(gristmill_child, gristmill::journal_ack)
GRISTMILL_TYPE(gristmill_child, gristmill::device_quiet_query)
GRISTMILL_TYPE(gristmill_child, gristmill::device_quiet)
GRISTMILL_END_TYPES(gristmill_child)
