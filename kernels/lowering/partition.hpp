#pragma once

#include "kernels/lowering/program_graph.hpp"
#include "kernels/lowering/stage_library.hpp"
#include "messages/result.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace gristmill {

/// A graph cut into stages, in launch order: a stage reads inputs and what earlier ones wrote.
struct partition {
  std::vector<std::shared_ptr<const read_stage>> stages;
};

/// The ways to cut a program, the one that fuses most first, the one with a stage for each operator
/// last. All different, at least one, at most `partitions_max`.
///
/// Where a good family reads the whole graph, the first has that one stage. Else it is found
/// greedily: from a stage for each operator, values are computed where they are used instead of
/// being written, as long as a good family reads every stage that changes. What is expensive (not
/// pointwise) is never computed twice. Then the operators between two expensive ones are tried
/// together, then stages with a value in common. The partitions in between are the first with one
/// fusion undone.
///
/// Errors: `unsupported`, naming the operator, when some operator has no kernel.
result<std::vector<partition>> partitions_of(
  const program_graph& program, const op_graph& original, stage_library& library);

/// Only the last of them.
result<partition> plain_partition(const program_graph& program, stage_library& library);

constexpr size_t partitions_max = 8;

} // namespace gristmill
