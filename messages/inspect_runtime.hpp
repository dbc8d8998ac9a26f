#pragma once

#include "messages/inspect_wire.hpp"
#include "messages/runtime.hpp"

namespace gristmill {

GRISTMILL_FIELDS(tick, generation)
GRISTMILL_FIELDS(peer_restarted, which)
GRISTMILL_FIELDS(start_working)
GRISTMILL_FIELDS(run_ended, reason, clean)

} // namespace gristmill

GRISTMILL_BEGIN_TYPES(gristmill_runtime, 4)
GRISTMILL_TYPE(gristmill_runtime, gristmill::tick)
GRISTMILL_TYPE(gristmill_runtime, gristmill::peer_restarted)
GRISTMILL_TYPE(gristmill_runtime, gristmill::start_working)
GRISTMILL_TYPE(gristmill_runtime, gristmill::run_ended)
GRISTMILL_END_TYPES(gristmill_runtime)
