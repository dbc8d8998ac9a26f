#pragma once

#include "messages/embedded_file.hpp"

#include <span>

namespace gristmill {

/// The headers of `protocol/exporter/runtime` as the program carries them: every exported solution
/// takes them along.
std::span<const embedded_file> export_runtime_files();

} // namespace gristmill
