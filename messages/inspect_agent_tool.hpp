#pragma once

#include "messages/agent_tool.hpp"
#include "messages/inspect_attempt.hpp"

namespace gristmill {

GRISTMILL_FIELDS(tool_question, what, problem, candidate, workloads)
GRISTMILL_FIELDS(tool_answer, what, status, text, json)

} // namespace gristmill

GRISTMILL_BEGIN_TYPES(gristmill_agent_tool, 7)
GRISTMILL_TYPE(gristmill_agent_tool, gristmill::tool_question)
GRISTMILL_TYPE(gristmill_agent_tool, gristmill::tool_answer)
GRISTMILL_END_TYPES(gristmill_agent_tool)
