#pragma once

#include "messages/result.hpp"

#include <string>
#include <vector>

namespace gristmill {

/// Whether the value of a flag is one of the known ones. Errors: `invalid_input`, naming the flag
/// and the nearest known value.
result<void> check_choice(
  const std::string& flag, const std::string& value, const std::vector<std::string>& known);

} // namespace gristmill
