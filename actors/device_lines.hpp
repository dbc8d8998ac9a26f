#pragma once

#include "actors/run_context.hpp"

#include <string>
#include <vector>

namespace gristmill {

/// The device of a run as agents are told it, a line each.
std::vector<std::string> device_lines(const run_context& context);

} // namespace gristmill
