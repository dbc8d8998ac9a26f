#pragma once

#include "messages/caf_seam.hpp"

namespace gristmill {

/// Configuration of an actor system of ours: all message types, error texts, a sharing scheduler
/// (our traffic is low-rate: half the latency and no idle polling) with `threads` workers.
void configure(caf::actor_system_config& config, unsigned threads);

} // namespace gristmill
