#pragma once

#include "messages/result.hpp"
#include "protocol/definition.hpp"
#include "protocol/op_graph.hpp"
#include "protocol/workload.hpp"

#include <cstdint>
#include <string>

namespace gristmill {

/// What a workload must at least move and compute.
struct work_count {
  /// Every tensor input that the reference reads and every output, once.
  uint64_t bytes = 0;
  /// Counted from the fused kernel; 0 when the graph is no fused kernel.
  uint64_t flops = 0;
  /// What the count rests on, such as "inputs and outputs once; flops from the operator graph".
  std::string method;
};

/// Counts from the definition's shapes at these resolved axes. `graph` may be null: then only bytes
/// are known. A tensor input that the graph never reads is not charged, and one that a fused kernel
/// reads in part only is charged for that part.
result<work_count> count_work(
  const definition& def, const op_graph* graph, const axis_values& resolved_axes);

} // namespace gristmill
