#pragma once

#include "kernels/stage.hpp"

namespace gristmill {

/// Family "scan": running sums and products along the last dimension, a block a row, with
/// arithmetic on elements before and behind. `unsupported` says what does not fit.
result<stage_space_ptr> read_scan_stage(const problem& target, const op_graph& graph);

} // namespace gristmill
