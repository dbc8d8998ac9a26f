#include "kernels/axis_scope.hpp"

#include <fmt/format.h>

namespace gristmill {

result<expression_value> axis_scope::lookup(const expression_name& name) const {
  const int64_t* value = find_axis_value(axes_, name.name);
  if (name.kind != "axis" || value == nullptr)
    return fail(errc::not_found, fmt::format("there is no axis {}", name.name));
  return expression_value{*value};
}

} // namespace gristmill
