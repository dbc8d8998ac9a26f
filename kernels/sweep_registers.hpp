#pragma once

#include "kernels/kernel_ir.hpp"

#include <cstdint>

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
  /// The same, and a warp of its own brings rows into shared memory ahead (`sweep_ring.hpp`): one
  /// block a multiprocessor, in which each group of threads has a row.
  ring,
};

/// One point of family `sweep`: the rows, or parts of them, stay in registers from their only load
/// to the last pass.
struct sweep_point {
  /// Threads of a block, or of a group of it.
  int threads = 256;
  /// Blocks of a cluster that share a row; 1 for none.
  int cluster = 1;
  /// Neighbouring elements that one load or store moves.
  int width = 8;
  /// Blocks that each multiprocessor holds; with a ring, groups of `threads` of its only block.
  int blocks = 2;
  row_walk walk = row_walk::ahead;
  /// Rows are marked as used once, so that they leave the caches first.
  bool streaming = false;
  bool fast = false;
  /// Rows that fill all vectors of all threads take code without guards.
  bool full = false;
};

/// Whether what changes with the column only stays in registers from one row to the next. A block
/// with a single row reads it where it needs it, so that it delays no load of the row and takes no
/// registers from them.
constexpr bool holds_columns(row_walk walk) {
  return walk != row_walk::one;
}

/// Threads of the block that has a ring.
constexpr int ring_threads(const sweep_point& point) {
  return point.threads * point.blocks + 32;
}

/// How a load comes to a thread.
enum class load_role : uint8_t {
  /// One number a row.
  row_number,
  /// Changes with the column only.
  column,
  /// Changes with row and column.
  element,
};

load_role role_of(const ir_load& load);

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

} // namespace gristmill
