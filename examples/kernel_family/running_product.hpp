#pragma once

#include "kernels/stage.hpp"

namespace gristmill {

/// Running products along the last dimension of one float32 matrix, a thread a row: the example of
/// docs/templates.md. `unsupported` for every other graph.
result<stage_space_ptr> read_running_product_stage(const problem& target, const op_graph& graph);

} // namespace gristmill
