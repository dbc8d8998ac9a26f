#pragma once

#include "messages/result.hpp"
#include "protocol/definition.hpp"
#include "protocol/plan.hpp"
#include "protocol/resolve.hpp"
#include "protocol/solution.hpp"
#include "protocol/workload.hpp"

#include <string>
#include <vector>

namespace gristmill {

/// A candidate with what its plan was judged on.
struct export_request {
  /// The device code.
  std::string source;
  plan parsed;
  definition def;
  /// Decide which compile units there are: those that these workloads come to.
  std::vector<workload> workloads;
  device_facts device;
};

/// C++ that torch can build: `binding.cpp` with the function `run(inputs..., outputs...)`, a
/// `unit_N.cu` for each compile unit, and the headers that they include.
struct exported_plan {
  std::vector<source_file> sources;
  compile_options options;
  std::string entry_point;
};

/// Turns a candidate into a torch extension. Everything that depends on the call (grid, block,
/// shared memory, arguments, scratch, which variant) is computed in the generated code from the
/// shapes of the tensors, with the checks of the plan's own rules.
///
/// `unsupported` names what cannot be exported: an axis that no tensor and no expression tells, a
/// `read` from a tensor that has no integers. Plans that `resolve` refuses for want of a device
/// (tensor maps, structs, `read`, `occupancy`) are exported.
result<exported_plan> export_plan(const export_request& request);

/// A Python file that builds these sources with torch when it is imported and registers
/// `torch.ops.gristmill.<operator_name>(inputs...) -> outputs`. `unsupported` when the shape of an
/// output does not follow from the inputs.
result<std::string> operator_text(const definition& def, const std::string& operator_name,
  const std::string& about, const exported_plan& built);

/// Letters, digits and underscores of a name, in lower case, starting with a letter.
std::string identifier_of(std::string_view text);

} // namespace gristmill
