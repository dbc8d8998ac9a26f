#pragma once

#include "kernels/kernel_ir.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// Device code for reading and writing neighbouring elements in words of up to 16 bytes: the struct
/// template `packed<T, N>`. With `streaming` it can also mark data as used once.
std::string vector_code(bool streaming);

/// The operators `add_op`, `max_op` and `min_op` of device code that reduces floats.
std::string_view reduction_operators();

/// Device code for combining a value of each thread of a row: `reduce_row` and `reduce_places`.
/// Needs the constant `row_threads`.
std::string_view row_reduction_code();

/// `round_into(vector, floats)`: what a thread computed as the elements of a vector of an output,
/// two of 16 bits by one instruction.
std::string rounding_code(const std::vector<ir_output>& outputs);

/// The same lines, each moved to the right.
std::string indented(const std::string& text, int spaces);

} // namespace gristmill
