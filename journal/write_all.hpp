#pragma once

#include <cerrno>
#include <string_view>
#include <unistd.h>

namespace gristmill {

/// Writes the whole text to a descriptor that blocks. Answers 0, or the error number.
inline int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count >= 0)
      text.remove_prefix(static_cast<size_t>(count));
    else if (errno != EINTR)
      return errno;
  }
  return 0;
}

} // namespace gristmill
