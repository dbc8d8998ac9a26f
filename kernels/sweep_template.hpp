#pragma once

#include "kernels/kernel_ir.hpp"
#include "kernels/sweep_registers.hpp"
#include "kernels/template_point.hpp"
#include "protocol/definition.hpp"

namespace gristmill {

/// Device code and launch plan. `kernel` is of family `row` and may have outputs of one element a
/// column: each block leaves its share of their sums in scratch, and a second kernel adds the
/// shares up in a fixed order. Right for every shape: rows that do not fit take another variant.
generated_kernel sweep_kernel(
  const fused_kernel& kernel, const definition& def, const sweep_point& point);

} // namespace gristmill
