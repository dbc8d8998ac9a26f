#pragma once

#include "tensors/dtype.hpp"

#include <string>
#include <string_view>

namespace gristmill {

// Device code of the contraction kernels: function templates over the struct `task` of
// `gemm_task`. Each adds up in float32 along the depth in ascending order inside of a thread.

/// What all of them need: which tile a block has, which part of the depth, how sums leave.
std::string_view gemm_common_code();
/// `ffma_tile`: a tile of the result a block, a smaller one a thread, operands in shared memory.
std::string_view gemm_ffma_code();
/// `mma_tile`: the same with tensor cores for 16-bit operands.
std::string gemm_mma_code(dtype type);
/// `warpgroup_tiles`: the same with the warpgroup units of architecture 90a, operands brought by
/// tensor maps along the depth; tiles of `columns` columns. Elsewhere its body is empty. Its
/// helpers have names of their own, because it shares a source with another kernel of this list.
std::string gemm_wgmma_code(dtype type, int columns);
/// `dots`: few rows (or few columns) against many: warps run along the depth.
std::string_view gemm_dots_code();
/// `strips`: the same where neighbours of the many lie side by side: threads run along them.
std::string_view gemm_strips_code();
/// `direct`: one element of the result a thread.
std::string_view gemm_direct_code();
/// `reduce_partial`: sums of the parts of a split depth, in order.
std::string_view gemm_reduce_code();

} // namespace gristmill
