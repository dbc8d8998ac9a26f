#pragma once

#include "messages/result.hpp"
#include "protocol/python_token.hpp"

#include <vector>

namespace gristmill {

/// What of Python's grammar can be checked without knowing it all: indentation, the colon and the
/// body of compound statements, parameter lists, and which tokens may stand side by side. What
/// passes is not yet Python; what is refused is none.
result<void> check_python_syntax(const std::vector<python_token>& tokens);

} // namespace gristmill
