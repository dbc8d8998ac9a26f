#pragma once

#include <string_view>

namespace gristmill {

/// A file of the source tree that a program carries inside itself, so that it runs from anywhere.
struct embedded_file {
  /// Path relative to the folder that was embedded, with forward slashes.
  std::string_view path;
  std::string_view content;
};

} // namespace gristmill
