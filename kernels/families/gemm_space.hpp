#pragma once

#include "kernels/families/contraction.hpp"
#include "kernels/stage.hpp"
#include "protocol/problem.hpp"

#include <string>

namespace gristmill {

/// All kernels for one contraction: tiles with fused multiply-adds ("ffma"), tiles with tensor
/// cores where both operands hold 16-bit numbers ("mma"), dot products and strips where one side
/// has few rows, one element a thread ("direct"); the first four with the depth split over blocks,
/// too. Every point is right for every shape: where vectors do not fit, its plan takes a kernel
/// that moves elements one by one.
///
/// Keys begin with `family`. `unsupported` when no workload's axes resolve.
result<stage_space_ptr> make_gemm_space(
  std::string family, const problem& target, contraction what);

/// A plain tile kernel for one contraction, with tensor cores for 16-bit operands: what an ordinary
/// library would do. Source and plan depend on graph and definition alone, not on workloads.
generated_kernel plain_gemm(const problem& target, contraction what);

} // namespace gristmill
