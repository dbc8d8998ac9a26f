#pragma once

#include "messages/inspect_wire.hpp"

namespace gristmill {

/// A request found nobody: its receiver had ended before it was read. What may be restarted is
/// worth waiting for then; the supervisor announces the successor with `peer_restarted`.
inline bool found_nobody(const caf::error& error) {
  return error == caf::sec::request_receiver_down;
}

/// Why a watched actor is gone: its machine is, or cannot be reached, or has sent its workers home.
/// Nothing is wrong with the actor, and nothing is counted against it. `elsewhere`: it lived on
/// another machine, where the end of the process ends it in good order.
inline bool machine_was_lost(const caf::error& reason, bool elsewhere) {
  return reason == caf::exit_reason::remote_link_unreachable || reason == errc::node_lost
    || (elsewhere && reason == caf::exit_reason::user_shutdown);
}

} // namespace gristmill
