#pragma once

#include "kernels/sweep_registers.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gristmill {

/// Walk `ring` of `sweep_template`: one block a multiprocessor. Its last warp brings rows into a
/// ring in shared memory, some ahead, by bulk copies of architecture 90 (PTX ISA 8.0,
/// cp.async.bulk); each group of `block_threads` threads works on a row of its own. In the source
/// the ring is there where CHUNKS > 0; STAGES, from the launch plan, is the number of rows in it.

/// Shared memory that is left for barriers and the parts of the numbers of a row, in bytes.
constexpr int bytes_beside_ring = 4096;

/// What the smallest ring of a point takes, two rows for each group, with rows of `row_bytes`.
constexpr int64_t ring_bytes_min(const sweep_point& point, int64_t row_bytes) {
  return 2 * point.blocks * row_bytes;
}

/// One tensor of a row in the ring.
struct ring_part {
  /// Index into `fused_kernel::loads`.
  size_t load = 0;
  /// Name of an element's type.
  std::string type;
  /// Variable that points to the row in global memory, and then in the ring.
  std::string pointer;
  int element_bytes = 0;
};

/// Device functions: barriers in shared memory, bulk copies, the meeting of a group.
std::string ring_functions();

/// Declares the ring and its barriers, `group`, and `lane` within it, and starts the barriers.
std::string ring_setup();

/// What the last warp does: `pointers` are statements that make the parts point to `row`.
std::string ring_producer(const std::string& pointers, const std::vector<ring_part>& parts,
  const std::string& rows, const std::string& cols);

/// Waits for the group's next row and points the parts into the ring.
std::string ring_row(const std::vector<ring_part>& parts, const std::string& cols);

/// The place of the row that `ring_row` waited for may be filled again.
std::string ring_row_read();

/// Expressions of the launch plan for rows of `cols` columns.
struct ring_plan {
  std::string stages;
  std::string shared;
};

/// The launch condition: a device has room for the smallest ring.
std::string ring_condition(const sweep_point& point, int row_bytes, const std::string& cols);

ring_plan ring_plan_of(
  const sweep_point& point, int row_bytes, const std::string& cols, const std::string& chunks);

} // namespace gristmill
