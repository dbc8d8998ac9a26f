#pragma once

#include "messages/caf_seam.hpp"
#include "messages/device_join.hpp"

namespace gristmill {

GRISTMILL_FIELDS(device_join, name, model, arch, node, memory_bytes)
GRISTMILL_FIELDS(device_joined, gpu)

} // namespace gristmill

GRISTMILL_BEGIN_TYPES(gristmill_device_join, 9)
GRISTMILL_TYPE(gristmill_device_join, gristmill::device_join)
GRISTMILL_TYPE(gristmill_device_join, gristmill::device_joined)
GRISTMILL_END_TYPES(gristmill_device_join)
