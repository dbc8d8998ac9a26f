#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gristmill {

/// What a server wrote, as it may stand in a log or on a terminal: one line of valid UTF-8 of at
/// most `bytes_max` bytes (then "…"), without control characters, without marks that turn the
/// direction of writing, and with everything that looks like a key replaced by "[redacted]": words
/// with the beginnings of well-known keys, long random words, what follows "Bearer" or "key=".
std::string plain_words(std::string_view text, size_t bytes_max = 300);

/// Valid UTF-8: every byte that belongs to no character becomes U+FFFD.
std::string valid_utf8(std::string_view text);
bool is_utf8(std::string_view text);

} // namespace gristmill
