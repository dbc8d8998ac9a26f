#pragma once

#include "protocol/expression.hpp"
#include "protocol/workload.hpp"

namespace gristmill {

/// Evaluates launch-plan expressions that name nothing but axes, such as `axis.M * 2`, at the axes
/// of one workload. `axes` must outlive it.
class axis_scope : public expression_scope {
public:
  explicit axis_scope(const axis_values& axes) : axes_(axes) {}

  /// `not_found` for what is no axis.
  result<expression_value> lookup(const expression_name& name) const override;

private:
  const axis_values& axes_;
};

} // namespace gristmill
