#include "protocol/program/device_tokens.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace gristmill {

namespace {

bool is_letter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$'
    || static_cast<unsigned char>(c) >= 0x80;
}
bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}
bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

/// Joined lines, with the line of each character.
struct joined_text {
  std::string text;
  std::vector<size_t> lines;
};

joined_text join_lines(std::string_view source) {
  joined_text out;
  size_t line = 1;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\\') {
      size_t end = i + 1;
      while (end < source.size() && is_blank(source[end]))
        ++end;
      if (end < source.size() && source[end] == '\n') {
        ++line;
        i = end;
        continue;
      }
    }
    out.text += source[i];
    out.lines.push_back(line);
    if (source[i] == '\n')
      ++line;
  }
  return out;
}

class tokeniser {
public:
  explicit tokeniser(std::string_view source) : joined_(join_lines(source)), s_(joined_.text) {}

  std::vector<device_token> read() {
    while (at_ < s_.size())
      step();
    return std::move(out_);
  }

private:
  char peek(size_t ahead) const { return at_ + ahead < s_.size() ? s_[at_ + ahead] : '\0'; }

  void put(device_token::kind what, size_t end) {
    end = std::min(end, s_.size());
    device_token token;
    token.what = what;
    token.line = joined_.lines[at_];
    token.directive = directive_;
    token.text = s_.substr(at_, end - at_);
    out_.push_back(std::move(token));
    fresh_line_ = false;
    at_ = end;
  }

  void step() {
    const char c = s_[at_];
    if (c == '\n') {
      fresh_line_ = true;
      directive_ = false;
      include_ = false;
      ++at_;
    } else if (is_blank(c)) {
      ++at_;
    } else if (c == '/' && peek(1) == '/') {
      at_ = std::min(s_.find('\n', at_), s_.size());
    } else if (c == '/' && peek(1) == '*') {
      const size_t end = s_.find("*/", at_ + 2);
      at_ = end == std::string_view::npos ? s_.size() : end + 2;
    } else if (include_ && (c == '<' || c == '"')) {
      header();
    } else if (is_letter(c)) {
      word();
    } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
      number();
    } else if (c == '"') {
      quoted('"', at_ + 1);
    } else if (c == '\'') {
      quoted('\'', at_ + 1);
    } else {
      mark();
    }
  }

  void header() {
    const char close = s_[at_] == '<' ? '>' : '"';
    size_t end = at_ + 1;
    while (end < s_.size() && s_[end] != close && s_[end] != '\n')
      ++end;
    ++at_;
    put(device_token::kind::header, end);
    if (at_ < s_.size() && s_[at_] == close)
      ++at_;
    include_ = false;
  }

  void word() {
    size_t end = at_;
    while (end < s_.size() && (is_letter(s_[end]) || is_digit(s_[end])))
      ++end;
    const std::string_view text = s_.substr(at_, end - at_);
    if (end < s_.size() && s_[end] == '"') {
      // A raw text ends with its own word; other prefixes change nothing here.
      if (text == "R" || text == "LR" || text == "uR" || text == "UR" || text == "u8R")
        return raw(end);
      if (text == "L" || text == "u" || text == "U" || text == "u8")
        return quoted('"', end + 1);
    }
    const bool names_header = directive_ && (text == "include" || text == "include_next")
      && !out_.empty() && out_.back().text == "#" && out_.back().directive;
    put(device_token::kind::identifier, end);
    include_ = names_header;
  }

  void raw(size_t quote) {
    const size_t open = s_.find('(', quote);
    if (open == std::string_view::npos || open - quote > 17)
      return put(device_token::kind::text, quote + 1);
    const std::string close = ")" + std::string(s_.substr(quote + 1, open - quote - 1)) + "\"";
    const size_t end = s_.find(close, open);
    put(device_token::kind::text, end == std::string_view::npos ? s_.size() : end + close.size());
  }

  void quoted(char close, size_t end) {
    while (end < s_.size() && s_[end] != close && s_[end] != '\n')
      end += s_[end] == '\\' ? 2 : 1;
    put(device_token::kind::text, end < s_.size() && s_[end] == close ? end + 1 : end);
  }

  void number() {
    size_t end = at_;
    std::string text;
    while (end < s_.size()) {
      const char c = s_[end];
      const bool sign = (c == '+' || c == '-')
        && std::string_view("eEpP").find(s_[end - 1]) != std::string_view::npos && end > at_;
      const bool separator = c == '\'' && end + 1 < s_.size()
        && std::isalnum(static_cast<unsigned char>(s_[end + 1])) != 0;
      if (!is_letter(c) && !is_digit(c) && c != '.' && !sign && !separator)
        break;
      if (!separator)
        text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      ++end;
    }
    put(device_token::kind::number, end);
    out_.back().text = std::move(text);
  }

  void mark() {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 6> digraphs{
      {{"%:%:", "##"}, {"%:", "#"}, {"<%", "{"}, {"%>", "}"}, {"<:", "["}, {":>", "]"}}};
    static constexpr std::array<std::string_view, 24> long_marks{"<<=", ">>=", "...", "->*", "##",
      "::", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||",
      "+=", "-=", "*=", "/=", "%=", "&=", "|="};
    const std::string_view rest = s_.substr(at_);
    for (const auto& [written, means] : digraphs)
      if (rest.starts_with(written)) {
        begin_directive(means);
        put(device_token::kind::mark, at_ + written.size());
        out_.back().text = means;
        return;
      }
    for (const auto& each : long_marks)
      if (rest.starts_with(each))
        return put(device_token::kind::mark, at_ + each.size());
    begin_directive(rest.substr(0, 1));
    put(device_token::kind::mark, at_ + 1);
  }

  void begin_directive(std::string_view means) {
    if (means == "#" && fresh_line_)
      directive_ = true;
  }

  joined_text joined_;
  std::string_view s_;
  size_t at_ = 0;
  bool fresh_line_ = true;
  bool directive_ = false;
  /// The next word is the name of a header.
  bool include_ = false;
  std::vector<device_token> out_;
};

} // namespace

std::vector<device_token> device_tokens(std::string_view source) {
  return tokeniser(source).read();
}

} // namespace gristmill
