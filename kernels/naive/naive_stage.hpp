#pragma once

#include "kernels/stage.hpp"

#include <string>
#include <vector>

namespace gristmill {

/// Reads a stage with one operator and any number of views, casts and copies around it: a plain
/// kernel that is right for every shape and any strided or reshaped operand, and nothing more.
/// One thread an output element; one warp an element where a reduction makes it; one warp a row for
/// softmax, normalisations and scans.
///
/// Sizes are plan expressions over the axes, so that the kernel holds for every workload. Errors:
/// `unsupported`, naming the operator and the reason, such as "operator 'nonzero' has a result
/// whose shape depends on the data".
result<stage_space_ptr> read_naive_stage(const problem& target, const op_graph& graph);

/// The operators that the family computes, by name and sorted; views are among them.
std::vector<std::string> naive_operator_names();

} // namespace gristmill
