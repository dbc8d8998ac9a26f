#pragma once

#include <string>
#include <string_view>

namespace gristmill {

/// What `ptxas -v` says, as a line for each entry, in order of the names:
/// "resources: softmax: 24 registers, 1056 bytes shared, 0 bytes stack, 0 bytes spilled". Empty
/// when it says nothing of that kind.
std::string resource_lines(std::string_view assembler_log);

/// Whether the assembler says that the code is slower because it assembles it as one of several
/// that may be linked: `setmaxnreg` has no effect then (C7504) and wgmma runs in series (C7509).
/// nvJitLink always assembles that way. The driver assembles the same PTX as a whole program.
bool is_slowed_by_linking(std::string_view assembler_log);

} // namespace gristmill
