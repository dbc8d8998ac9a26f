#pragma once

#include "kernels/kernel_ir.hpp"
#include "kernels/template_point.hpp"
#include "protocol/definition.hpp"

#include <cstdint>
#include <string>

namespace gristmill {

/// Which rows a block, or a cluster of blocks, works on.
enum class row_walk : uint8_t {
  /// One.
  one = 0,
  /// As many blocks as the device holds walk over all rows, so that what changes with the column
  /// only is loaded once.
  all,
  /// The same, and the next row is on its way while this one is worked on.
  ahead,
};

/// One point of family `sweep`: the rows, or parts of them, stay in registers from their only load
/// to the last pass.
struct sweep_point {
  /// Threads of a block.
  int threads = 256;
  /// Blocks of a cluster that share a row; 1 for none.
  int cluster = 1;
  /// Neighbouring elements that one load or store moves.
  int width = 8;
  /// Blocks that each multiprocessor holds.
  int blocks = 2;
  row_walk walk = row_walk::ahead;
  /// Rows are marked as used once, so that they leave the caches first.
  bool streaming = false;
  bool fast = false;
};

/// What a column of a row costs in registers.
struct sweep_load {
  /// Bytes of the row's tensors, and of those that change with the column only.
  int row_bytes = 0;
  int column_bytes = 0;
  /// Sums over all rows, and values that two passes need.
  int sums = 0;
  int reusable = 0;
};

sweep_load sweep_load_of(const fused_kernel& kernel);

/// The longest row, in columns, that a point holds in registers; 0 when none is.
int64_t sweep_columns_max(const sweep_load& load, const sweep_point& point);

/// Device code and launch plan. `kernel` is of family `row` and may have outputs of one element a
/// column: each block leaves its share of their sums in scratch, and a second kernel adds the
/// shares up in a fixed order. Right for every shape: rows that do not fit take another variant.
generated_kernel sweep_kernel(
  const fused_kernel& kernel, const definition& def, const sweep_point& point);

} // namespace gristmill
