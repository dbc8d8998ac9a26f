#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace gristmill {

/// Cuts a stream of bytes into lines, and never holds more than one line that is too long.
class line_buffer {
public:
  explicit line_buffer(size_t line_bytes_max) : line_bytes_max_(line_bytes_max) {}

  void append(std::string_view bytes) { pending_.append(bytes); }

  /// The next whole line, without its line feed.
  std::optional<std::string> next() {
    auto end = pending_.find('\n', searched_);
    if (end == std::string::npos) {
      searched_ = pending_.size();
      return std::nullopt;
    }
    std::string line = pending_.substr(0, end);
    pending_.erase(0, end + 1);
    searched_ = 0;
    return line;
  }

  /// A line longer than allowed has begun; nothing that follows can be trusted. Ask after `next`
  /// has answered nothing.
  bool overflowed() const { return pending_.size() > line_bytes_max_; }

private:
  size_t line_bytes_max_;
  std::string pending_;
  size_t searched_ = 0;
};

} // namespace gristmill
