#pragma once

#include "actors/transport/cluster_address.hpp"
#include "actors/transport/join_talk.hpp"
#include "actors/transport/wire.hpp"

#include <chrono>
#include <string>

namespace gristmill {

struct dial_settings {
  cluster_address address;
  /// Folder of this process; empty: no TLS, loopback alone, and only a coordinator of the same
  /// user.
  std::string tls;
  join_identity ours;
};

/// A connection that a coordinator has let in, with its first bytes for the actor library waiting.
/// Waits up to `deadline` (a lookup of the host name may take longer, as long as the system lets
/// it). Errors as of `cluster_connect`.
result<wire_ptr> dial(const dial_settings& settings, std::chrono::nanoseconds deadline);

} // namespace gristmill
