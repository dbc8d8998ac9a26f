#pragma once

#include "gpu/children/confinement.hpp"
#include "messages/result.hpp"

#include <cstdint>
#include <sys/types.h>

namespace gristmill {

/// Inside a fresh user namespace: the one user and group that exist have the same numbers as
/// outside, so that the job's files stay the child's own.
result<void> keep_user(uid_t user, gid_t group);

/// Inside a fresh mount namespace: makes the view of `wanted` the root of the file system and takes
/// everything else away. `own_processes`: in a fresh process namespace too, as its first process.
/// The current directory is the confinement's afterwards. Fails with `unsupported` and a text that
/// names the step; the process is of no use then.
result<void> enter_view(const confinement& wanted, bool own_processes);

/// Gives up all capabilities, those too that a program of the super-user would get back. Needs
/// no_new_privs for the rest.
result<void> drop_capabilities();

} // namespace gristmill
