#pragma once

#include "messages/inspect_attempt.hpp"
#include "messages/plant.hpp"

namespace gristmill {

GRISTMILL_FIELDS(plant_request, problem, candidate)
GRISTMILL_FIELDS(plant_reply, kind, summary, earlier, reason)
GRISTMILL_FIELDS(plant_withdrawal, problem, candidate, reason)
GRISTMILL_FIELDS(plant_close, reason)

} // namespace gristmill

GRISTMILL_BEGIN_TYPES(gristmill_plant, 6)
GRISTMILL_TYPE(gristmill_plant, gristmill::plant_request)
GRISTMILL_TYPE(gristmill_plant, gristmill::plant_reply)
GRISTMILL_TYPE(gristmill_plant, gristmill::plant_withdrawal)
GRISTMILL_TYPE(gristmill_plant, gristmill::plant_close)
GRISTMILL_END_TYPES(gristmill_plant)
