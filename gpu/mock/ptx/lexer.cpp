#include "gpu/mock/ptx/lexer.hpp"

#include "gpu/mock/ptx/error.hpp"

#include <string>

namespace gristmill::ptx {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_word(char c) {
  return is_letter(c) || is_digit(c) || c == '_' || c == '$' || c == '%' || c == '.';
}

} // namespace

lexer::lexer(std::string_view text) : text_(text) {
  ahead_ = scan();
}

token lexer::next() {
  const token result = ahead_;
  last_end_ = position_;
  if (result.kind != token_kind::end)
    ahead_ = scan();
  return result;
}

std::string_view lexer::since(const token& first) const {
  const auto begin = static_cast<size_t>(first.text.data() - text_.data());
  return text_.substr(begin, last_end_ - begin);
}

void lexer::skip_line(int line) {
  while (ahead_.kind != token_kind::end && ahead_.line == line)
    ahead_ = scan();
}

void lexer::skip_blanks() {
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (c == '\n') {
      ++line_;
      ++position_;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
      ++position_;
    } else if (text_.compare(position_, 2, "//") == 0) {
      const size_t end = text_.find('\n', position_);
      position_ = end == std::string_view::npos ? text_.size() : end;
    } else if (text_.compare(position_, 2, "/*") == 0) {
      const size_t end = text_.find("*/", position_ + 2);
      if (end == std::string_view::npos)
        refuse(line_, "a comment is not closed");
      for (size_t i = position_; i < end; ++i)
        line_ += text_[i] == '\n' ? 1 : 0;
      position_ = end + 2;
    } else {
      return;
    }
  }
}

token lexer::scan() {
  skip_blanks();
  if (position_ >= text_.size())
    return {token_kind::end, text_.substr(text_.size()), line_};
  const char c = text_[position_];
  if (is_digit(c))
    return scan_number();
  if (is_word(c))
    return scan_word();
  if (c == '"')
    return scan_string();
  if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f)
    refuse(line_,
      "a character that PTX does not have (code " + std::to_string(static_cast<unsigned char>(c))
        + ")");
  return cut(token_kind::punctuation, position_ + 1);
}

token lexer::scan_word() {
  // `.reg.b32` are two directives; in every other word dots are inside.
  const bool directive = text_[position_] == '.';
  size_t end = position_ + 1;
  while (end < text_.size()) {
    if (is_word(text_[end]) && !(directive && text_[end] == '.'))
      ++end;
    else if (text_.compare(end, 2, "::") == 0)
      end += 2; // As in `ld.shared::cta`.
    else
      break;
  }
  return cut(token_kind::word, end);
}

token lexer::scan_number() {
  size_t end = position_;
  const bool has_prefix = text_[end] == '0' && end + 1 < text_.size() && is_letter(text_[end + 1]);
  while (end < text_.size()) {
    const char c = text_[end];
    const char before = end > position_ ? text_[end - 1] : ' ';
    const bool sign = (c == '+' || c == '-') && !has_prefix && (before == 'e' || before == 'E');
    if (!is_digit(c) && !is_letter(c) && c != '.' && !sign)
      break;
    ++end;
  }
  return cut(token_kind::number, end);
}

token lexer::scan_string() {
  size_t end = position_ + 1;
  while (end < text_.size() && text_[end] != '"' && text_[end] != '\n')
    end += text_[end] == '\\' ? 2 : 1;
  if (end >= text_.size() || text_[end] != '"')
    refuse(line_, "a string is not closed");
  return cut(token_kind::string, end + 1);
}

token lexer::cut(token_kind kind, size_t end) {
  token result{kind, text_.substr(position_, end - position_), line_};
  position_ = end;
  return result;
}

} // namespace gristmill::ptx
