#pragma once

#include "kernels/stage.hpp"

namespace gristmill {

/// Family `sweep`: reductions over rows, sums over all rows, and arithmetic around them, with rows
/// held in registers (`kernels/sweep_template.hpp`).
result<stage_space_ptr> read_sweep_stage(const problem& target, const op_graph& graph);

} // namespace gristmill
