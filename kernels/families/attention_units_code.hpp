#pragma once

#include "tensors/dtype.hpp"

#include <string>

namespace gristmill {

/// Keys a step (a multiple of 16), stages of keys and values on their way, the width of a head (64
/// or 128), and whether the two warpgroups take turns at the units.
struct attention_units_point {
  int keys = 128;
  int stages = 2;
  int head = 128;
  bool turns = false;

  /// Of a block: queries, and as many tiles of keys and of values as there are stages; tiles begin
  /// at multiples of 1024.
  int shared_bytes() const { return 1024 + 128 * head * 2 + 2 * stages * keys * head * 2; }
};

/// The kernel `attention_units` for 16-bit queries, keys and values of one type:
/// out = softmax(scale * q k^T) v for many heads. Each block has 128 queries of a head.
/// Architecture 90a; elsewhere its body is empty.
std::string attention_units_code(dtype type, const attention_units_point& point);

} // namespace gristmill
