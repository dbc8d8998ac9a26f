#pragma once

#include "messages/caf_seam.hpp"

namespace gristmill {

/// A request found nobody: its receiver had ended before it was read. What may be restarted is
/// worth waiting for then; the supervisor announces the successor with `peer_restarted`.
inline bool found_nobody(const caf::error& error) {
  return error == caf::sec::request_receiver_down;
}

} // namespace gristmill
