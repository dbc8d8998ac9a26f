#pragma once

#include <cstdint>
#include <vector>

namespace gristmill {

/// Median, for an even number the mean of the two in the middle; 0 of none.
uint64_t median_of(std::vector<uint64_t> values);
/// Median absolute deviation from the median.
uint64_t deviation_of(const std::vector<uint64_t>& values);

} // namespace gristmill
