#pragma once

#include "messages/result.hpp"

namespace gristmill {

/// From here on the system calls by which a process touches others, the kernel or the network are
/// refused with EPERM, in this process and all that it starts. `network` leaves sockets alone.
/// `unsupported` where the kernel has no filters. Set no_new_privs before.
result<void> filter_system_calls(bool network);

} // namespace gristmill
