#pragma once

#include "actors/transport/cluster_address.hpp"

namespace gristmill {

/// A socket that listens at the address and does not block. The caller closes it. Errors:
/// `invalid_input`, with a remedy (in use, not of this machine, name unknown); `io_failed`.
result<int> listening_socket(const cluster_address& where);

/// Port that a socket is bound to.
uint16_t port_of(int socket);

} // namespace gristmill
