#pragma once

#include "kernels/kernel_ir.hpp"

#include <vector>

namespace gristmill {

/// A maximum and the sum of exponentials below it, which one pass can find together.
struct online_pair {
  int maximum = -1;
  int sum = -1;
  /// The value whose maximum is taken.
  int body = -1;
};

/// One walk over the row.
struct row_pass {
  /// Reductions that this pass finishes, by node; those of a pair are not among them.
  std::vector<int> reductions;
  std::vector<online_pair> pairs;
  /// Element outputs that this pass writes, by index into `fused_kernel::outputs`.
  std::vector<int> outputs;
  /// Outputs of one element a column to which this pass adds its row, by index as well.
  std::vector<int> columns;
};

/// The passes of a row kernel: every reduction as early as what it depends on allows, the outputs
/// last. With `online`, a softmax needs one pass less.
std::vector<row_pass> passes_of(const fused_kernel& kernel, bool online);

/// Pairs that an online pass can merge; empty when the kernel has none.
std::vector<online_pair> online_pairs(const fused_kernel& kernel);

/// The nodes whose values each element of a pass needs.
std::vector<int> roots_of(const fused_kernel& kernel, const row_pass& pass);

/// Transcendental values of single elements that more than one pass needs.
std::vector<int> reusable_nodes(const fused_kernel& kernel, const std::vector<row_pass>& passes);

/// For each load that depends on the column: in how many passes it is read.
std::vector<int> reads_per_load(const fused_kernel& kernel, const std::vector<row_pass>& passes);

} // namespace gristmill
