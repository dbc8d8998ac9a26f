#pragma once

#include "protocol/plan.hpp"
#include "protocol/plan_scope.hpp"
#include "protocol/resolve.hpp"

#include <vector>

namespace gristmill {

/// Evaluates a tensor map of a plan, all `count` of them, and holds each against the rules of the
/// driver's encoder. A failure begins with the field. `unsupported` for im2col, interleaved and
/// fp4 maps.
result<resolved_argument> resolve_map(
  const plan_tensor_map& map, const plan_scope& scope, const std::vector<resolved_buffer>& buffers);

} // namespace gristmill
