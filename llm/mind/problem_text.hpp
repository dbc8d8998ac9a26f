#pragma once

#include "protocol/problem.hpp"
#include "protocol/program/prompt.hpp"

#include <string>
#include <vector>

namespace gristmill {

/// A problem in the texts that a prompt shows: signature in the order of the call, workloads with
/// all axes and tolerances, the reference as it is.
prompt_problem prompt_problem_of(const problem& of);

/// What a problem computes, in words that other problems may share: its `op_type`.
std::vector<std::string> operators_of(const problem& of);

} // namespace gristmill
