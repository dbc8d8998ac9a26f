#pragma once

#include "protocol/resolve.hpp"

#include <filesystem>
#include <string>
#include <string_view>

namespace gristmill {

/// What a person or an agent may see of a compiler's output: the first 40 lines and 8 KiB, without
/// host paths. A failed assertion of the epilogue becomes its message alone; another error there,
/// such as an unknown name, says which entry of the plan it is about.
std::string readable_log(
  std::string_view output, const compile_unit& unit, const std::filesystem::path& folder);

} // namespace gristmill
