#pragma once

#include "kernels/stage.hpp"

namespace gristmill {

/// Family "topk": the few largest or smallest elements of each row and their places, in order, with
/// arithmetic on elements before and behind. A warp a row. Of equal elements the first comes first;
/// what is no number counts as the largest. `unsupported` says what does not fit.
result<stage_space_ptr> read_top_values_stage(const problem& target, const op_graph& graph);

} // namespace gristmill
