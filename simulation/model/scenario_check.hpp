#pragma once

#include "messages/result.hpp"
#include "simulation/model/scenario.hpp"

namespace gristmill {

/// Longest run: ten years.
inline constexpr double duration_max_s = 10 * 365.25 * 86'400;
/// Drawn times are whole quanta of 2^14 ns plus the number of the entity whose they are.
inline constexpr int quantum_bits = 14;
/// Agents, GPUs and the two that the world itself needs: every one has a residue of its own within
/// a quantum.
inline constexpr uint32_t entities_max = uint32_t{1} << quantum_bits;

/// Whether every number is one that can be run with, and none contradicts another. Errors:
/// `invalid_input` with the key as it is written in a file, the value and what is allowed. Does not
/// look at the texts of policy, planner and needs.
result<void> check_scenario(const scenario& what);

} // namespace gristmill
