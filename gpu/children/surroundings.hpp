#pragma once

#include "gpu/children/confinement.hpp"
#include "gpu/children/jail.hpp"
#include "messages/result.hpp"

namespace gristmill {

/// What this machine and the job directory hold that `confinement_of` must know.
result<jail_surroundings> read_surroundings(const jail_command& command);

} // namespace gristmill
