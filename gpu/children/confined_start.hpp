#pragma once

#include "gpu/children/confinement.hpp"
#include "messages/result.hpp"

#include <functional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace gristmill {

/// Runs in the process that is to become the command; `ready` is the descriptor on which it says so
/// with `say_ready` just before. Returns only when that failed.
using become_command = std::function<failure(int ready)>;

/// Starts the command in namespaces of our own making. `unsupported` with the step that this system
/// refuses; nothing is left of the try then.
result<pid_t> start_in_own_namespaces(const confinement& wanted, const become_command& become);

/// The same by bubblewrap, which starts `command`; the text "FD" among its words is replaced by the
/// number of the descriptor.
result<pid_t> start_in_bubblewrap(
  const std::string& bubblewrap, const confinement& wanted, std::vector<std::string> command);

/// Tells whoever waits in one of the above that nothing more can be refused.
void say_ready(int ready);

/// Waits until that process has ended, and ends it when it takes more than the confinement allows.
/// Answers the exit status to hand on.
int stand_by(pid_t first, const confinement& wanted);

} // namespace gristmill
