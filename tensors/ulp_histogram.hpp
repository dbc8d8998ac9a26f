#pragma once

#include "tensors/dtype.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gristmill {

/// Counts how many units in the last place of their own type numbers lie from their references: a
/// result that was computed in a narrower type and widened again shows by it, whatever the
/// tolerance. Both zeros are one number. Of integers and bools nothing is counted.
class ulp_histogram {
public:
  explicit ulp_histogram(dtype type);

  /// As many elements of either as `x` and `y` hold; of a packed type whole bytes. `all_finite`
  /// saves the look at each: else pairs with an infinity or a NaN are left out.
  void add(std::span<const std::byte> x, std::span<const std::byte> y, bool all_finite);

  /// Bin 0: equal; bin n: 2^(n-1) to 2^n - 1. Ends with the last bin that is not empty.
  std::vector<uint64_t> bins() const;

private:
  /// Four tables, so that an element need not wait for the count of its neighbour.
  static constexpr size_t tables = 4;
  static constexpr size_t bins_max = 65;

  using counts = std::array<uint64_t, bins_max>;

  void add_16(const std::byte* x, const std::byte* y, size_t count);
  void add_32(const std::byte* x, const std::byte* y, size_t count);
  template <class Bits>
  void add_each(const std::byte* x, const std::byte* y, size_t count);
  void fold_pairs(counts& into) const;

  dtype type_;
  std::array<counts, tables> counts_{};
  /// Of types that fit into a byte: how often each pair of bytes has come.
  std::vector<uint64_t> pairs_;
};

} // namespace gristmill
