#pragma once

#include "kernels/stage.hpp"

namespace gristmill {

/// Family "attention_units": attention with the warpgroup units of architecture 90a.
///
/// Narrower than "attention": queries, keys, values and output are contiguous 16-bit tensors of one
/// type with heads of 64 or 128, the products are computed in float32, and nothing but one constant
/// factor stands between the first product and the softmax. The weights are rounded to 16 bits
/// before they meet the values. On other devices a candidate is the first one of "attention".
/// Lengths may be any, and some workload must have 64 queries and keys: the tiles beyond the ends
/// are filled with zeros, so that a workload and its shrunken twin run the same kernel.
///
/// `unsupported` says what does not fit.
result<stage_space_ptr> read_attention_units_stage(const problem& target, const op_graph& graph);

} // namespace gristmill
