#pragma once

#include "messages/embedded_file.hpp"

#include <span>

namespace gristmill {

/// The presets as files.
std::span<const embedded_file> preset_files();

} // namespace gristmill
