#pragma once

#include "kernels/stage.hpp"

namespace gristmill {

/// What `fuse` reads as one elementwise kernel; keys such as "map/t256/v4/u2".
result<stage_space_ptr> read_map_stage(const problem& target, const op_graph& graph);

/// What `fuse` reads as one kernel with reductions over rows; keys such as
/// "row/t128/r1/v4/reg/online".
result<stage_space_ptr> read_row_stage(const problem& target, const op_graph& graph);

} // namespace gristmill
