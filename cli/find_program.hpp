#pragma once

#include <filesystem>
#include <string>

namespace gristmill {

/// An executable file.
bool is_program(const std::filesystem::path& path);

/// A program as a shell finds it: a name with a slash is a path, any other is looked for in the
/// folders of PATH. Absolute; empty when there is none.
std::string find_program(const std::string& name);

} // namespace gristmill
