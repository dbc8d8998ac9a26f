#pragma once

#include "kernels/stage.hpp"

namespace gristmill {

/// Family "attention": softmax of a product of two matrices, times a third, without the scores ever
/// being written.
///
/// Found by its operators: two batched products with a `_softmax` over the last dimension between
/// them. What stands before the products (projections split into heads, key heads that several
/// query heads share), between them (scale, masks of any form, soft caps) and behind (merging of
/// heads, other arithmetic on elements) is read along. Sums in float32 with a running maximum.
///
/// `unsupported` says which part of the pattern is missing.
result<stage_space_ptr> read_attention_stage(const problem& target, const op_graph& graph);

} // namespace gristmill
