#pragma once

#include "simulation/selfcheck/load.hpp"

#include <vector>

namespace gristmill {

/// Mean time from arrival to end, in seconds, on one GPU that always works on what has the least
/// work left and may interrupt for it: a small simulation of its own, because no lease is ever
/// interrupted. Of all orders this has the smallest mean on every path (Schrage 1968). Jobs in the
/// order of their arrival; the first `skipped` do not count.
double least_remaining_mean(const std::vector<job_size>& jobs, size_t skipped = 0);

} // namespace gristmill
