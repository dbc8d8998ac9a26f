#pragma once

#include "kernels/template_point.hpp"
#include "messages/result.hpp"

#include "protocol/problem.hpp"
#include "protocol/resolve.hpp"

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace gristmill {

/// Says whether a generated candidate can be launched at every workload of its problem, before
/// anybody compiles it. The failure tells why not.
using plan_check = std::function<result<void>(const generated_kernel&)>;

/// A workload with everything that a plan needs to know of it.
struct plan_binding {
  std::string uuid;
  /// Resolved axes at true size, and those of the correctness twin.
  axis_values full_axes;
  axis_values check_axes;
  /// Inputs without a shape.
  std::vector<std::pair<std::string, scalar_value>> full_numbers;
  std::vector<std::pair<std::string, scalar_value>> check_numbers;
};

/// A check that resolves the plan for each binding on the device: scratch within its limit, grids,
/// blocks and shared memory that the device has, and one compile unit for a workload and its twin.
/// Copies what it needs.
plan_check make_plan_check(definition def, std::vector<plan_binding> bindings, device_facts device);

} // namespace gristmill
