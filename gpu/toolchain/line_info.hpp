#pragma once

#include <string>
#include <string_view>

namespace gristmill {

/// Takes the places in source text out of all functions of LLVM's intermediate code that are not
/// in the file of that name. Once they are inlined, their instructions then have the place of the
/// call: PTX has no room for more than one, and a line of a header tells a kernel's author nothing.
std::string keep_lines_of(std::string_view ir, std::string_view file_name);

} // namespace gristmill
