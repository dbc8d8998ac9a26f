#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// A word of C++ as the preprocessor sees it.
struct device_token {
  enum class kind : uint8_t { identifier, number, text, mark, header };

  kind what = kind::mark;
  /// Of a number without digit separators and in lower case; of a header its name; of a text the
  /// quotes too.
  std::string text;
  /// Where it begins; counted from 1.
  size_t line = 0;
  /// It stands in a line that begins with #.
  bool directive = false;
};

/// The tokens of device code, without comments. Lines that end in a backslash are joined first,
/// digraphs are spelt out, and whatever is no token is a mark of one character.
std::vector<device_token> device_tokens(std::string_view source);

} // namespace gristmill
