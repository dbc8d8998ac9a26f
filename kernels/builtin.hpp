#pragma once

#include "messages/embedded_file.hpp"
#include "messages/result.hpp"
#include "protocol/problem.hpp"

#include <span>
#include <string_view>
#include <vector>

namespace gristmill {

/// The files under `kernels/builtin` as the program carries them.
std::span<const embedded_file> builtin_files();

/// Our own problems in SOL-ExecBench form, each with its operator graph, in alphabetical order.
/// Each has a workload that moves 64 MB or more, for the clock, and small odd ones, for
/// correctness.
std::vector<problem> builtin_problems();

/// One of them. `not_found` names the nearest.
result<problem> builtin_problem(std::string_view name);

} // namespace gristmill
