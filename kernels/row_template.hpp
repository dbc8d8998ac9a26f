#pragma once

#include "kernels/kernel_ir.hpp"
#include "kernels/template_point.hpp"
#include "protocol/definition.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gristmill {

/// Device code and launch plan of a kernel of family `row` at one point of its space. Right for every
/// shape: rows that vectors do not fit, or that are too long to be kept, take other variants of the plan.
generated_kernel row_kernel(
  const fused_kernel& kernel, const definition& def, const template_point& point);

/// Plan conditions under which the columns of a row can be read in vectors of that width.
std::vector<std::string> row_vector_conditions(
  const fused_kernel& kernel, const definition& def, int width);

/// Bytes of one column of the row that are worth keeping between passes; 0 when every load is read once.
int kept_bytes_per_column(const fused_kernel& kernel, bool online);

/// Whether some transcendental value is needed by two passes.
bool has_reusable_values(const fused_kernel& kernel, bool online);

/// The longest row that a point keeps in registers, in columns; 0 when none is.
int64_t register_columns_max(const fused_kernel& kernel, const template_point& point);

} // namespace gristmill
