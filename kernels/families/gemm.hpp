#pragma once

#include "kernels/stage.hpp"

namespace gristmill {

/// Family "gemm": one matrix product (mm, bmm, addmm, baddbmm, mv, addmv, dot, linear) whose
/// operands are views or pointwise expressions of inputs, with a pointwise epilogue.
result<stage_space_ptr> read_gemm_stage(const problem& target, const op_graph& graph);

/// The product as a plain tile kernel, for the baseline: texts depend on graph and definition
/// alone. A change of them is a new version of the baseline. `unsupported` as for
/// `read_gemm_stage`.
result<generated_kernel> plain_product(const problem& target, const op_graph& graph);

} // namespace gristmill
