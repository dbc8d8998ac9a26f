#pragma once

#include "kernels/stage.hpp"

namespace gristmill {

/// Family "transpose": a map whose operand lies the other way round in memory than its output.
///
/// Square tiles go through shared memory, so that reads and writes are both side by side.
/// Arithmetic before and behind the permutation is read along. `unsupported` where no permutation
/// moves the last dimension; the other families of maps serve those.
result<stage_space_ptr> read_transpose_stage(const problem& target, const op_graph& graph);

} // namespace gristmill
