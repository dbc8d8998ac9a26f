#pragma once

#include <string>
#include <string_view>

namespace gristmill {

/// What `ptxas -v` says, as a line for each entry, in order of the names:
/// "resources: softmax: 24 registers, 1056 bytes shared, 0 bytes stack, 0 bytes spilled". Empty
/// when it says nothing of that kind.
std::string resource_lines(std::string_view assembler_log);

} // namespace gristmill
