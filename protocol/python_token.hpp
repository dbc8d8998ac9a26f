#pragma once

#include "messages/result.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace gristmill {

/// A piece of a Python source; `text` points into it.
struct python_token {
  enum class kind : uint8_t { name, number, string, symbol, line_end };

  kind what = kind::line_end;
  /// Of a symbol the longest operator that begins there, such as "**=".
  std::string_view text;
  size_t line = 1;
  /// First of its logical line; the indentation with tabs to the next multiple of eight, and with
  /// tabs that count one.
  bool starts_line = false;
  size_t column = 0;
  size_t column_of_blanks = 0;

  bool is(std::string_view wanted) const { return what != kind::string && text == wanted; }
};

inline constexpr std::array<std::string_view, 35> python_keywords{"False", "None", "True", "and",
  "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else",
  "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal",
  "not", "or", "pass", "raise", "return", "try", "while", "with", "yield"};

inline bool is_python_keyword(std::string_view text) {
  return std::find(python_keywords.begin(), python_keywords.end(), text) != python_keywords.end();
}

inline bool is_value_keyword(std::string_view text) {
  return text == "True" || text == "False" || text == "None";
}

// Bytes above 127 belong to letters of other alphabets.
inline bool starts_python_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'
    || static_cast<unsigned char>(c) >= 0x80;
}
inline bool continues_python_name(char c) {
  return starts_python_name(c) || (c >= '0' && c <= '9');
}

/// All tokens with a line end behind each logical line; blank lines and comments leave none.
/// Refuses an open string or bracket, an odd character, a wrong number, and a first line that is
/// indented.
result<std::vector<python_token>> tokenize_python(std::string_view source);

} // namespace gristmill
