#pragma once

#include "gpu/children/confinement.hpp"
#include "gpu/children/jail.hpp"
#include "messages/result.hpp"

#include <string>

namespace gristmill {

/// What this machine and the job directory hold that `confinement_of` must know.
result<jail_surroundings> read_surroundings(const jail_command& command);

/// The program of this process, absolute, without links.
std::string own_program();

} // namespace gristmill
