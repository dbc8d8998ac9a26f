#pragma once

#include <string>
#include <string_view>

namespace gristmill {

/// What `__grid_constant__` expands to on the clang path: clang 19 has no such attribute, and would
/// copy the parameter to local memory as soon as its address is taken. The front end only notes
/// where the mark stands; the code generator of LLVM 19 knows what it means.
constexpr std::string_view grid_constant_mark = "gristmill.grid_constant";

/// LLVM's intermediate code in which each parameter of a kernel that carries the mark and is passed
/// by value is a grid constant: its address is that of the parameter itself, in `.param` space. The
/// notes are taken out; on anything else than such a parameter they mean nothing.
std::string use_grid_constants(std::string_view ir);

} // namespace gristmill
