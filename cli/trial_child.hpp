#pragma once

#include "messages/result.hpp"

#include <string>

namespace gristmill {

/// Starts a child that does nothing, in the jail of a compiler, and answers what protects it here:
/// "user,mount,…; by bubblewrap", or "limits; REASON". `child_failed` when it does not start.
result<std::string> protections_of_children();

} // namespace gristmill
