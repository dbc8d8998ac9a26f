#pragma once

#include "kernels/families/reduction_reader.hpp"

#include <string>
#include <string_view>

namespace gristmill {

/// C++ text that combines two numbers.
std::string combined(
  combine_kind kind, bool is_integer, const std::string& a, const std::string& b);

/// The number that changes nothing when it is combined.
std::string neutral(combine_kind kind, bool is_integer);

/// The functor of the generated source that does the same.
std::string_view functor(combine_kind kind);

bool is_place(combine_kind kind);

/// Whether a text names the variable `place`, the element of the row.
bool mentions_place(const std::string& text);

/// Device code: the functors; those that search for a place; and `over_row`, which combines a value
/// of each thread of a row. The last needs the constants `row_threads` and, where threads take
/// columns, `columns`.
std::string_view fold_operators_code();
std::string_view fold_place_code();
std::string_view fold_threads_code(bool is_by_row);

} // namespace gristmill
