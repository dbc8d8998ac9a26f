#pragma once

#include "tensors/dtype.hpp"

#include <string>
#include <string_view>

namespace gristmill {

/// The C++ type that holds one element of a traced dtype ("bfloat16") while a naive kernel works on
/// it: float for float32 and everything narrower, double for float64, else the exact type. Throws
/// `no_template` for a dtype without one, such as complex64.
std::string naive_register(std::string_view dtype_name);

/// True for the floating-point dtypes.
bool naive_is_float(std::string_view dtype_name);

/// The element type of a buffer as C++ spells it in a kernel's parameters.
std::string naive_storage(dtype type);

/// An expression of C++ type `from` as an expression of C++ type `to`; a number becomes a bool by
/// asking whether it is zero.
std::string naive_converted(const std::string& text, std::string_view from, std::string_view to);

/// An expression of the register type, rounded to the values that the dtype has.
std::string naive_rounded(const std::string& text, std::string_view dtype_name);

/// An expression of the register type as a value of the storage type.
std::string naive_stored(const std::string& text, dtype type);

/// A number as a literal of a C++ type: exact for double, rounded for float, truncated for
/// integers. Infinities of an integer type are its limits.
std::string naive_literal(double number, std::string_view type);

/// The lowest and the highest value of a C++ type; infinities for floats.
std::string naive_lowest(std::string_view type);
std::string naive_highest(std::string_view type);

} // namespace gristmill
