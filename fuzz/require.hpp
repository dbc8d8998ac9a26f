#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace gristmill::fuzz {

/// A rule that holds for every input, checked in every kind of build. What breaks it ends the
/// program, as a crash would.
inline void require(bool holds, const char* rule) {
  if (holds)
    return;
  std::fprintf(stderr, "broken rule: %s\n", rule);
  std::abort();
}

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

} // namespace gristmill::fuzz
