#pragma once

#include <string>

namespace gristmill {

/// Device code for reading and writing neighbouring elements in words of up to 16 bytes: the struct
/// template `packed<T, N>`. With `streaming` it can also mark data as used once.
std::string vector_code(bool streaming);

/// The same lines, each moved to the right.
std::string indented(const std::string& text, int spaces);

} // namespace gristmill
