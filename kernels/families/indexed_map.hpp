#pragma once

#include "kernels/stage.hpp"

namespace gristmill {

/// Family "index": every element of the output for itself, from wherever its operands lie.
///
/// Reads what moves elements in any way (views that merge and split dimensions, concatenations,
/// paddings, slices with a step, rolls, gathers with an index tensor, pooling windows) together
/// with arithmetic on elements, in float32, integers and truth values. Outputs have one shape.
/// `unsupported` names the operator or the size that does not fit.
result<stage_space_ptr> read_indexed_map_stage(const problem& target, const op_graph& graph);

} // namespace gristmill
