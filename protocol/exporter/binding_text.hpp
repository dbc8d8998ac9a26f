#pragma once

#include "messages/result.hpp"
#include "protocol/definition.hpp"
#include "protocol/exporter/unit_choice.hpp"
#include "protocol/plan.hpp"

#include <string>
#include <vector>

namespace gristmill {

/// `binding.cpp`: the function `run` that checks the tensors, reads the axes off them, evaluates
/// the plan and launches on torch's current stream. Steps run in the order of the plan, which is
/// always a right one. `unsupported` names what a call cannot tell.
result<std::string> binding_text(
  const plan& source, const definition& def, const std::vector<export_unit>& units);

} // namespace gristmill
