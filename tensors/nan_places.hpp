#pragma once

#include "tensors/dtype.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gristmill {

/// Where two tensors hold NaN.
struct nan_places {
  uint64_t both = 0;
  /// Of a solution that made one up, and of one that lost one.
  uint64_t only_first = 0;
  uint64_t only_second = 0;
  /// Copies in which every NaN of either side is 0 on both.
  std::vector<std::byte> first;
  std::vector<std::byte> second;

  bool same() const { return only_first == 0 && only_second == 0; }
};

/// Compares the places of NaN of two tensors of one float type and equal size. Integers, and types
/// without NaN, have none.
nan_places find_nans(
  dtype type, std::span<const std::byte> first, std::span<const std::byte> second);

} // namespace gristmill
