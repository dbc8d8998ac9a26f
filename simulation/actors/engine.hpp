#pragma once

#include "simulation/core/engine.hpp"

namespace gristmill {

/// The same as `run_core`, with the production broker actor (actors/gpu_lease.hpp), one actor an
/// agent and one a device, exchanging the production messages in virtual time. Equal scenario and
/// seed give the same result and byte-identical journals in both engines.
result<lab_result> run_actors(const scenario& what, lab_options options);

} // namespace gristmill
