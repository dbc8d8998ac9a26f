#pragma once

#include "messages/result.hpp"

#include <string>
#include <string_view>

namespace gristmill {

/// A text that is overwritten before its memory is given back. Movable only, so that there is one
/// of it.
class secret_text {
public:
  secret_text() = default;
  explicit secret_text(std::string_view text);
  ~secret_text();
  secret_text(secret_text&& other) noexcept;
  secret_text& operator=(secret_text&& other) noexcept;
  secret_text(const secret_text&) = delete;
  secret_text& operator=(const secret_text&) = delete;

  std::string_view view() const { return text_; }
  bool empty() const { return text_.empty(); }
  void wipe();

private:
  std::string text_;
};

/// Overwrites memory in a way that the compiler does not leave out.
void wipe_memory(void* at, size_t bytes);

/// The key in the environment variable of this name. `invalid_input` when it is not set, empty or
/// holds what cannot stand in a header (control characters, such as the line end of a file); the
/// text names the variable and never the value.
result<secret_text> read_key(const std::string& environment_name);

/// The program calls this before it uses keys: a crash then leaves no core file with them in it.
/// `io_failed` when the system refuses.
result<void> forbid_core_files();

} // namespace gristmill
