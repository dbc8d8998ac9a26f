#pragma once

#include "messages/result.hpp"
#include "planning/allocation/allocation.hpp"

#include <string_view>

namespace gristmill {

/// The allocation that a text such as `equal` or `rebalance(floor=0.5, gate=0.05, prior=0.1)`
/// describes; the form of the lease policies (docs/planner.md). Errors: `invalid_input` for an
/// unknown rule, parameter or value, with the nearest valid one.
result<allocation_settings> planner_from_text(std::string_view text);

} // namespace gristmill
