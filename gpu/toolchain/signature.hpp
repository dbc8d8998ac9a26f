#pragma once

#include "protocol/resolve.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gristmill {

/// The name of the variable that the epilogue makes for an entry; its initial value is the kernel.
std::string entry_variable(size_t index);

/// File name and lines that the epilogue gives itself, so that a diagnostic can be traced to its
/// entry: entry `i` stands in the lines from (i + 1) * 1000 on.
constexpr std::string_view epilogue_file = "launch-plan";
std::optional<size_t> entry_of_line(int line);

/// Source text that is put behind the candidate's: a variable for each entry, so that the compiler
/// instantiates it and tells its symbol, and static assertions that hold when the kernel takes what
/// the plan passes. The message of each names the argument. Without `with_variables` the assertions
/// alone, for a compiler that tells symbols in another way.
std::string signature_epilogue(const compile_unit& unit, bool with_variables = true);

/// Bytes of a kernel parameter of that C++ type (`entry_use::parameter_abi`); nothing for an
/// unknown one.
std::optional<uint32_t> parameter_bytes(std::string_view cpp_type);

} // namespace gristmill
