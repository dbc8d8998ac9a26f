#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace gristmill {

/// Where an output misses its reference, in words for a person: "misses cluster in the last
/// columns", "misses are spread over the whole output". `tiles` is the histogram that `compare`
/// makes (8 x 8, row by row, over the output as rows x columns); one of another size, or without a
/// miss, gives an empty text.
///
/// A place is named only when nine tenths of the misses lie there. Counts near the ends of a
/// dimension are exact to an eighth of it: "the last columns" are the last eighth, or the last
/// quarter.
std::string describe_misses(std::span<const uint32_t> tiles);

} // namespace gristmill
