#pragma once

#include "gpu/mock/ptx/lanes/lanes.hpp"

/// The parts of the library, one a source file, in the namespace of the build.
namespace gristmill::ptx::GRISTMILL_PTX_LANES {

extern const lane_entries integer_entries;
extern const lane_entries floating_entries;
extern const lane_entries half_entries;
extern const lane_entries math_entries;
extern const lane_entries packed_entries;

} // namespace gristmill::ptx::GRISTMILL_PTX_LANES
