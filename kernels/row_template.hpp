#pragma once

#include "kernels/kernel_ir.hpp"
#include "kernels/template_point.hpp"
#include "protocol/definition.hpp"

#include <cstdint>

namespace gristmill {

/// Device code and launch plan of a kernel of family `row` at one point of its space. Right for
/// every shape: rows that vectors do not fit, or that are too long to be kept, take other variants
/// of the plan.
generated_kernel row_kernel(
  const fused_kernel& kernel, const definition& def, const template_point& point);

/// What of a row is worth keeping between passes.
struct row_keeping {
  /// Bytes of one column of everything that more than one pass reads; 0 when each is read once.
  int bytes = 0;
  /// Transcendental values of one element that two passes need.
  int reusable = 0;
};

row_keeping keeping_of(const fused_kernel& kernel, bool online);

/// The longest row that a point keeps in registers, in columns; 0 when none is.
int64_t register_columns_max(const row_keeping& keeping, const template_point& point);

} // namespace gristmill
