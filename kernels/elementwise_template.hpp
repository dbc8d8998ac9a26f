#pragma once

#include "kernels/kernel_ir.hpp"
#include "kernels/template_point.hpp"
#include "protocol/definition.hpp"

#include <string>
#include <vector>

namespace gristmill {

/// Device code and launch plan of a kernel of family `elementwise` at one point of its space. Right
/// for every shape: where vectors do not fit, the plan takes its scalar variant.
generated_kernel elementwise_kernel(
  const fused_kernel& kernel, const definition& def, const template_point& point);

/// Plan conditions under which vectors of that width fit; empty when they always do.
std::vector<std::string> elementwise_vector_conditions(
  const fused_kernel& kernel, const definition& def, int width);

} // namespace gristmill
