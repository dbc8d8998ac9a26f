#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gristmill::ptx {

enum class token_kind : uint8_t {
  end,
  /// Identifier, opcode with all its dots, or one directive: `ld.param.u64`, `%tid.x`, `$L_1`,
  /// `.reg`.
  word,
  /// Begins with a digit; no sign.
  number,
  /// With its quotes.
  string,
  /// One character.
  punctuation
};

struct token {
  token_kind kind = token_kind::end;
  /// A part of the text, so that positions can be compared.
  std::string_view text;
  int line = 1;

  bool is(std::string_view what) const { return kind != token_kind::end && text == what; }
};

/// Cuts PTX text into tokens, without comments. Throws `parse_error`.
class lexer {
public:
  explicit lexer(std::string_view text);

  /// The token that `next` would return.
  const token& peek() const { return ahead_; }
  token next();
  /// The part of the text from a token that was read up to the token read last, inclusive.
  std::string_view since(const token& first) const;
  /// Skips all tokens on this line: for directives that end with it.
  void skip_line(int line);

private:
  void skip_blanks();
  token scan();
  token scan_word();
  token scan_number();
  token scan_string();
  token cut(token_kind kind, size_t end);

  std::string_view text_;
  size_t position_ = 0;
  int line_ = 1;
  token ahead_;
  size_t last_end_ = 0;
};

} // namespace gristmill::ptx
