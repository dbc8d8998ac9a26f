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
/// Each has a workload for the clock that moves 64 MB or does a billion multiply-adds, and small
/// odd ones for correctness. `op_type` is the category.
std::vector<problem> builtin_problems();

/// Names of those that a run takes when it is given none: few and quick, so that a first run shows
/// something within a minute. docs/builtin-problems.md says why these.
std::span<const std::string_view> default_problems();

/// One of them. `not_found` names the nearest.
result<problem> builtin_problem(std::string_view name);

} // namespace gristmill
