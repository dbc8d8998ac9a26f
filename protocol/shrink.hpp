#pragma once

#include "messages/result.hpp"
#include "protocol/definition.hpp"
#include "protocol/workload.hpp"

#include <cstdint>

namespace gristmill {

/// Elements over all inputs and outputs of a workload with these resolved axes.
result<uint64_t> workload_elements(const definition& def, const axis_values& resolved);

/// The axes of a workload's correctness twin: small enough to interpret in full, alike enough to
/// go through the same code. Gives all axes, resolved.
///
/// When the workload has at most `max_elements` elements these are its own. Else its variable axes
/// are reduced in the order of declaration, the next one only when the one before is at its floor.
/// Each stays congruent modulo 64 and at least 64 (one below 128 stays as it is); where that is not
/// small enough, modulo 16, then 8, with the same rule. Constants stay, expressions follow.
/// `refused` when even the floors are too big; `unsupported` for a workload with safetensors
/// inputs, whose shapes are fixed.
result<axis_values> shrink_axes(const definition& def, const workload& work, uint64_t max_elements);

} // namespace gristmill
