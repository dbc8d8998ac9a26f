#pragma once

#include "messages/inspect_wire.hpp"
#include "messages/llm.hpp"

namespace gristmill {

GRISTMILL_FIELDS(chat_message, from, text)
GRISTMILL_FIELDS(llm_request, call, problem, agent, purpose, instructions, messages,
  output_tokens_max, temperature, seed)
GRISTMILL_FIELDS(
  llm_usage, state, uncached_input, cache_read, cache_write, visible_output, reasoning)
GRISTMILL_FIELDS(llm_reply, call, text, finish, usage, cost_nano_usd, deployment, model, request_id,
  tries, first_event, took)
GRISTMILL_FIELDS(llm_cancel, agent, call)
GRISTMILL_FIELDS(llm_query)
GRISTMILL_FIELDS(
  llm_deployment_snapshot, name, model, in_flight, in_flight_max, calls, retries, failures, paused)
GRISTMILL_FIELDS(llm_snapshot, deployments, waiting, calls, usage, calls_unknown, spent_nano_usd,
  reserved_nano_usd, closed)

} // namespace gristmill

GRISTMILL_BEGIN_TYPES(gristmill_llm, 5)
GRISTMILL_TYPE(gristmill_llm, gristmill::llm_request)
GRISTMILL_TYPE(gristmill_llm, gristmill::llm_reply)
GRISTMILL_TYPE(gristmill_llm, gristmill::llm_cancel)
GRISTMILL_TYPE(gristmill_llm, gristmill::llm_query)
GRISTMILL_TYPE(gristmill_llm, gristmill::llm_snapshot)
GRISTMILL_END_TYPES(gristmill_llm)
