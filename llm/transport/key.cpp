#include "llm/transport/key.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <string.h>
#include <sys/resource.h>
#include <utility>

namespace gristmill {

void wipe_memory(void* at, size_t bytes) {
  ::explicit_bzero(at, bytes);
}

secret_text::secret_text(std::string_view text) : text_(text) {}

secret_text::~secret_text() {
  wipe();
}

secret_text::secret_text(secret_text&& other) noexcept {
  *this = std::move(other);
}

secret_text& secret_text::operator=(secret_text&& other) noexcept {
  if (this != &other) {
    wipe();
    // A short text lives inside the string itself and a move would leave it behind.
    text_ = other.text_;
    other.wipe();
  }
  return *this;
}

void secret_text::wipe() {
  // A text that was longer once may have left something behind its end.
  text_.resize(text_.capacity());
  wipe_memory(text_.data(), text_.size());
  text_.clear();
}

result<secret_text> read_key(const std::string& environment_name) {
  const char* value = std::getenv(environment_name.c_str());
  if (value == nullptr || *value == '\0')
    return fail(errc::invalid_input,
      fmt::format("the environment variable {}, which is to hold the key, is {}", environment_name,
        value == nullptr ? "not set" : "empty"));
  const std::string_view text = value;
  const bool printable = std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) > 0x20 && static_cast<unsigned char>(c) < 0x7f;
  });
  if (!printable)
    return fail(errc::invalid_input,
      fmt::format("the environment variable {} holds a blank, a line end or another character that "
                  "no key has; set it to the key alone",
        environment_name));
  return secret_text(text);
}

result<void> forbid_core_files() {
  const rlimit none{0, 0};
  if (::setrlimit(RLIMIT_CORE, &none) != 0)
    return fail(
      errc::io_failed, fmt::format("setrlimit(RLIMIT_CORE, 0): {}", std::strerror(errno)));
  return {};
}

} // namespace gristmill
