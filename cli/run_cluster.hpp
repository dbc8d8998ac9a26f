#pragma once

#include "cli/run_actors.hpp"

namespace gristmill {

/// Makes of the actors of a run of one process those of one that nodes may join: the hub stands for
/// compiler, oracle and judge, and owns those of this process.
void add_cluster(run_factories& make, const run_setup& setup, const run_context_ptr& context,
  uint32_t incarnation, const cluster_start& cluster);

} // namespace gristmill
