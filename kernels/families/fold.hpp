#pragma once

#include "kernels/stage.hpp"

namespace gristmill {

/// Family "fold": reductions over any dimensions, with arithmetic before, between and after.
///
/// All reductions of the graph share their rows: normalisations over several dimensions or over
/// groups of channels, softmax over any dimension, column sums, quantisation by rows or blocks,
/// positions of extrema, gradients of normalisations. A row is spread over the threads of a block
/// where the last dimension is reduced; otherwise neighbouring threads take neighbouring rows. Long
/// rows of sums can be split over blocks, and a second kernel combines the parts.
///
/// `unsupported` names the operator or the size that does not fit.
result<stage_space_ptr> read_fold_stage(const problem& target, const op_graph& graph);

} // namespace gristmill
