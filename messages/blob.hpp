#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace gristmill {

/// Names content by what it is. Messages carry this, never the artefact itself.
struct blob_ref {
  /// SHA-256 in lower-case hex, 64 characters; empty means "no blob".
  std::string sha256;
  uint64_t bytes = 0;

  friend auto operator<=>(const blob_ref&, const blob_ref&) = default;
};

} // namespace gristmill
