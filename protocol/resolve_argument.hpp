#pragma once

#include "protocol/plan.hpp"
#include "protocol/plan_scope.hpp"
#include "protocol/resolve.hpp"

#include <string>
#include <utility>
#include <vector>

namespace gristmill {

using named_scalars = std::vector<std::pair<std::string, scalar_value>>;

/// An argument with what the kernel's parameter must look like.
struct bound_argument {
  resolved_argument passed;
  /// "const float*", "int32_t", ...
  std::string parameter;
  bool is_const = false;
};

/// Binds one argument by the table of contracts, section 5. `maps` are those of the plan.
result<bound_argument> bind_argument(const plan_argument& argument, const plan_scope& scope,
  const std::vector<resolved_buffer>& buffers, const named_scalars& scalars,
  const std::vector<plan_tensor_map>& maps);

/// The bytes of a launch's parameters, each at its natural alignment.
uint64_t parameter_bytes(const std::vector<resolved_argument>& arguments);

/// A define's literal as it stands behind -D.
result<std::string> define_literal(const expression_value& value);

} // namespace gristmill
