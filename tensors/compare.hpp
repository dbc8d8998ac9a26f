#pragma once

#include "tensors/dtype.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace gristmill {

/// What counts as equal for one workload (specification 2.2, with its defaults).
struct tolerance {
  double atol = 0.01;
  double rtol = 0.01;
  /// Share of the elements that must lie within atol + rtol * |reference|.
  double matched_ratio = 0.99;
  /// No element may be further off than this, matched or not.
  std::optional<double> error_cap;
  /// Places where both are -infinity do not count.
  bool allow_negative_inf = false;

  friend bool operator==(const tolerance&, const tolerance&) = default;
};

/// One output against its reference.
struct comparison {
  bool passed = false;
  /// Any NaN, or else any infinity, in either tensor: fails, and both errors are 0.
  bool has_nan = false;
  bool has_inf = false;
  /// Elements that count: all but the exempt ones.
  uint64_t elements = 0;
  /// Elements outside the tolerance; those that are not finite belong to them.
  uint64_t mismatches = 0;
  double matched_ratio = 0;
  double max_absolute_error = 0;
  /// Largest |x - y| / max(|y|, atol). Not finite when atol is 0 and a reference element is too.
  double max_relative_error = 0;
  /// The solution is all zero and the norm of the reference, from float32 squares, is not: fails
  /// whatever the tolerance, and both errors are that norm.
  bool all_zero_output = false;
  /// Integers or bools that differ at all. A warning of ours beside the verdict, since the rule
  /// compares as float32 and cannot see the low bits of a large integer.
  bool integer_exact_mismatch = false;
  /// Where the mismatches lie: 8 x 8 tiles, row by row, over the tensor as (all but the last
  /// dimension) x (last dimension). Counts stop at 2^32 - 1.
  std::array<uint32_t, 64> miss_tiles{};
  /// Distances in units in the last place of the output's own type (tensors/ulp_histogram.hpp), of
  /// the pairs that are finite; empty for integers and bools. Decides nothing here.
  std::vector<uint64_t> ulp_bins;
  /// Root mean square of the error over that of the reference, over the pairs that are finite: 0
  /// for equal tensors, infinite when only the reference is all zero.
  double relative_rms_error = 0;

  friend bool operator==(const comparison&, const comparison&) = default;
};

/// Called with how many bytes of both tensors have been read for good.
using compare_progress = std::function<void(uint64_t)>;

/// The correctness rule 5.5 of the specification for one output, in float32 arithmetic. Streams
/// over both, so it needs a few hundred kilobytes whatever the size. Spans of another size than
/// type and shape ask for never pass.
///
/// `progress` is called about every 16 MiB, so that the owner of mapped files can let go of what
/// lies behind. Only for an output that is all zero the reference is read once more, and then
/// `progress` starts again from the beginning.
comparison compare(dtype type, const std::vector<int64_t>& shape,
  std::span<const std::byte> solution, std::span<const std::byte> reference,
  const tolerance& allowed, const compare_progress& progress = {});

} // namespace gristmill
