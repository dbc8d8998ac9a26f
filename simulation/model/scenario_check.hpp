#pragma once

#include "messages/result.hpp"
#include "simulation/model/scenario.hpp"

namespace gristmill {

/// Longest run: ten years.
inline constexpr double duration_max_s = 10 * 365.25 * 86'400;
/// Agents, GPUs and the two that the world itself needs: every one has a residue of its own within
/// a quantum of 2^14 ns.
inline constexpr uint32_t entities_max = 16'384;

/// Names of the GPUs of a scenario ("<group>#<n>") and of their nodes ("<group>-<n>"), in the order
/// of the groups.
std::vector<std::string> gpu_names(const scenario& what);
std::vector<std::string> node_names(const scenario& what);

/// Whether every number is one that can be run with, and none contradicts another. Errors:
/// `invalid_input` with the key as it is written in a file, the value and what is allowed. Does not
/// look at the texts of policy, planner and needs.
result<void> check_scenario(const scenario& what);

} // namespace gristmill
