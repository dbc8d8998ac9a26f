#pragma once

#include "gpu/mock/ptx/warp.hpp"

#include <cstdint>

namespace gristmill::ptx {

/// Runs a warp for at most `budget` operations, or until it is done, waits at a barrier, or says
/// that others should run. Throws `fault_signal`; `w.pc` is then the operation that failed.
///
/// Lanes that part ways form groups. The group with the lowest pc runs first, so that groups meet
/// again where their paths do; a group that used up its turn lets the others run, so that lanes may
/// wait for each other.
void execute(warp& w, uint64_t budget);

/// After a turn that was used up: runs on, for at most `most` operations, until the warp jumps back
/// to operation `at`, or to any if that is UINT32_MAX, which it then becomes. False when it does
/// not, or waits.
bool run_to_back_edge(warp& w, uint32_t& at, uint32_t most);

} // namespace gristmill::ptx
