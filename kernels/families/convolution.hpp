#pragma once

#include "kernels/stage.hpp"

namespace gristmill {

/// Family "convolution": one convolution of one or two dimensions with any stride, padding,
/// dilation and groups, not transposed, with a pointwise epilogue. Computed as a contraction of the
/// weight with windows of the input, which are never stored; depthwise ones an output a thread.
result<stage_space_ptr> read_convolution_stage(const problem& target, const op_graph& graph);

} // namespace gristmill
