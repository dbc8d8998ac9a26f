#pragma once

#include "messages/result.hpp"
#include "protocol/definition.hpp"
#include "protocol/op_graph.hpp"
#include "protocol/workload.hpp"
#include "tensors/mac_class.hpp"

#include <cstdint>
#include <string>

namespace gristmill {

/// What a workload must at least move and compute.
struct work_count {
  /// Every tensor input that the reference reads and every output, once.
  uint64_t bytes = 0;
  /// Counted from the fused kernel; 0 when the graph is no fused kernel.
  uint64_t flops = 0;
  /// Multiply-adds of the matrix products and convolutions that an output depends on, by the
  /// narrowest type that feeds them.
  mac_counts macs{};
  /// What the count rests on, such as "inputs and outputs once; flops from the operator graph".
  std::string method;
};

/// Counts from the definition's shapes at these resolved axes: every tensor at its own type's
/// width. `graph` may be null: then only bytes are known, of the declared tensors. A tensor input
/// that the graph never reads, or reads for nothing that an output depends on, is not charged; one
/// that is read in part only (a slice, the rows that indices name) is charged for that part.
///
/// Multiply-adds are counted with sizes that are led back from the traced ones to axes; where a
/// size could be several, the smallest is taken, and an operator whose sizes cannot be told is left
/// out and named in `method`: a bound that is too low is weak, one that is too high is wrong.
result<work_count> count_work(
  const definition& def, const op_graph* graph, const axis_values& resolved_axes);

} // namespace gristmill
