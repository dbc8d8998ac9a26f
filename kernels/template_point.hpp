#pragma once

#include "kernels/kernel_ir.hpp"

#include <cstdint>
#include <string>

namespace gristmill {

/// Where a row stays between the passes over it.
enum class row_keep : uint8_t {
  /// Nowhere: each pass reads global memory again (L2 holds it, with luck).
  global = 0,
  registers,
  shared,
};

/// One point of the search space: everything about a kernel that may differ while it computes the
/// same.
struct template_point {
  template_family family = template_family::elementwise;
  /// elementwise: threads of a block. row: threads that share a row; 32 is one warp a row.
  int threads = 256;
  /// row, with one warp a row: rows of a block.
  int rows = 1;
  /// Neighbouring elements that one load or store moves.
  int width = 1;
  /// elementwise: vectors of a thread, read before the first is used.
  int unroll = 1;
  row_keep keep = row_keep::global;
  /// row: maximum and sum of exponentials in one pass (softmax only).
  bool online = false;
  /// row, in registers: transcendental values that two passes need stay in registers, too.
  bool reuse = false;
  /// Mark data as read or written once, so that it leaves the caches first.
  bool streaming = false;
  /// Approximate exponentials and divisions.
  bool fast = false;

  friend bool operator==(const template_point&, const template_point&) = default;
};

/// The stable name of a point: "map/t256/v8/u2", "row/t128/r1/v4/reg/online/cs/fast".
std::string key_of(const template_point& point);

/// One generated kernel: device code and launch plan.
struct generated_kernel {
  std::string source;
  std::string plan;
};

} // namespace gristmill
