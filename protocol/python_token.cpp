#include "protocol/python_token.hpp"

#include "protocol/json_document.hpp"

#include <cctype>
#include <fmt/format.h>
#include <string>

namespace gristmill {

namespace {

using kind = python_token::kind;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

constexpr size_t fields_max = 50;

// Longest first, so that a prefix never wins.
constexpr std::array<std::string_view, 47> operators{"**=", "//=", ">>=", "<<=", "...", "**", "//",
  ">>", "<<", "<=", ">=", "==", "!=", "->",
  "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "@=", ":=", "+", "-", "*", "/", "%", "@", "&",
  "|", "^", "~", "<", ">", "(", ")", "[", "]", "{", "}", ",", ":", ".", ";", "="};

/// Blanks, punctuation, arithmetic signs and pictures of Unicode: none may stand in a name.
constexpr std::array<std::pair<uint32_t, uint32_t>, 15> no_letters{
  {{0x80, 0xa9}, {0xab, 0xb4}, {0xb6, 0xb6}, {0xb8, 0xb9}, {0xbb, 0xbf}, {0xd7, 0xd7}, {0xf7, 0xf7},
    {0x2000, 0x203e}, {0x2041, 0x2053}, {0x2055, 0x2070}, {0x2190, 0x23ff}, {0x2500, 0x27ff},
    {0x3000, 0x3004}, {0xff01, 0xff0f}, {0x1f000, 0x1faff}}};

class tokenizer {
public:
  explicit tokenizer(std::string_view source) : source_(source) {}

  result<std::vector<python_token>> run() {
    std::vector<python_token> tokens;
    bool line_start = true;
    while (true) {
      if (line_start)
        read_indentation();
      else
        skip_blanks();
      if (at_ >= source_.size())
        break;
      const char c = source_[at_];
      if (c == '#') {
        while (at_ < source_.size() && source_[at_] != '\n' && source_[at_] != '\r')
          ++at_;
        continue;
      }
      if (c == '\0')
        return refuse("a null byte");
      if (c == '\n' || c == '\r') {
        at_ += source_.substr(at_, 2) == "\r\n" ? 2 : 1;
        ++line_;
        if (open_.empty()) {
          if (!line_start)
            tokens.push_back(end_of_line());
          line_start = true;
        }
        continue;
      }
      if (line_start && column_ > 0 && tokens.empty())
        return refuse("the first line is indented");
      auto next = read_token();
      if (!next)
        return pass(next);
      if (line_start) {
        next->starts_line = true;
        next->column = column_;
        next->column_of_blanks = blanks_;
      }
      line_start = false;
      tokens.push_back(*next);
    }
    if (!open_.empty())
      return refuse(fmt::format(
        "the bracket `{}` of line {} is never closed", open_.back().bracket, open_.back().line));
    tokens.push_back(end_of_line());
    return tokens;
  }

private:
  struct opened {
    char bracket;
    size_t line;
  };

  tl::unexpected<failure> refuse(const std::string& why) const {
    return fail(errc::invalid_input, fmt::format("line {} is not Python: {}", line_, why));
  }

  python_token end_of_line() const { return {kind::line_end, {}, line_, false, 0, 0}; }

  void read_indentation() {
    column_ = 0;
    blanks_ = 0;
    for (; at_ < source_.size(); ++at_) {
      const char c = source_[at_];
      if (c == ' ')
        ++column_;
      else if (c == '\t')
        column_ = (column_ / 8 + 1) * 8;
      else if (c == '\f')
        column_ = blanks_ = 0;
      else if (const size_t width = joined_lines(); width > 0 && column_ == 0) {
        // A joined line at the margin leaves the indentation to the next one.
        at_ += width - 1;
        ++line_;
        continue;
      } else
        break;
      blanks_ += c == '\f' ? 0 : 1;
    }
    // What follows another joined line does not count.
    skip_blanks();
  }

  /// The size of a backslash and a line end that are not the end of all; else 0.
  size_t joined_lines() const {
    if (source_[at_] != '\\' || at_ + 1 >= source_.size()
      || (source_[at_ + 1] != '\n' && source_[at_ + 1] != '\r'))
      return 0;
    const size_t width = source_.substr(at_ + 1, 2) == "\r\n" ? 3 : 2;
    return at_ + width < source_.size() ? width : 0;
  }

  void skip_blanks() {
    while (at_ < source_.size()) {
      const char c = source_[at_];
      if (c == ' ' || c == '\t' || c == '\f') {
        ++at_;
      } else if (const size_t width = joined_lines(); width > 0) {
        at_ += width;
        ++line_;
      } else {
        return;
      }
    }
  }

  result<python_token> read_token() {
    const size_t begin = at_;
    const char c = source_[at_];
    if (const size_t prefix = string_prefix())
      return read_string(begin, prefix - 1);
    if (starts_python_name(c)) {
      while (at_ < source_.size() && continues_python_name(source_[at_]))
        ++at_;
      return read_name(begin);
    }
    if (is_digit(c) || (c == '.' && at_ + 1 < source_.size() && is_digit(source_[at_ + 1]))) {
      read_number();
      return check_number(begin);
    }
    if (c == '(' || c == '[' || c == '{') {
      open_.push_back({c, line_});
      if (open_.size() > 200)
        return refuse("brackets nested deeper than 200");
    } else if (c == ')' || c == ']' || c == '}') {
      const char partner = c == ')' ? '(' : c == ']' ? '[' : '{';
      if (open_.empty() || open_.back().bracket != partner)
        return refuse(fmt::format("`{}` closes nothing", c));
      open_.pop_back();
    }
    const auto rest = source_.substr(at_);
    const auto found = std::find_if(operators.begin(), operators.end(),
      [&](std::string_view each) { return rest.starts_with(each); });
    if (found == operators.end())
      return refuse(fmt::format("{} is no part of it", excerpt(rest.substr(0, 1))));
    at_ += found->size();
    return make(kind::symbol, begin);
  }

  python_token make(kind what, size_t begin) const {
    return {what, source_.substr(begin, at_ - begin), line_, false, 0, 0};
  }

  /// Letters before the quote plus one, or 0 when no string starts here.
  size_t string_prefix() const {
    size_t letters = 0;
    while (letters < 3 && at_ + letters < source_.size()
      && std::string_view{"rRbBuUfF"}.find(source_[at_ + letters]) != std::string_view::npos)
      ++letters;
    if (letters > 2 || at_ + letters >= source_.size())
      return 0;
    const char quote = source_[at_ + letters];
    return quote == '\'' || quote == '"' ? letters + 1 : 0;
  }

  result<python_token> read_string(size_t begin, size_t prefix) {
    const bool formatted =
      source_.substr(at_, prefix).find_first_of("fF") != std::string_view::npos;
    at_ += prefix;
    const char quote = source_[at_];
    const bool triple =
      at_ + 2 < source_.size() && source_[at_ + 1] == quote && source_[at_ + 2] == quote;
    at_ += triple ? 3 : 1;
    const size_t first_line = line_;
    while (at_ < source_.size()) {
      const char c = source_[at_];
      if (c == '\\') {
        if (at_ + 1 < source_.size() && source_[at_ + 1] == '\n')
          ++line_;
        // In a raw string too: a quote behind a backslash does not close it. A brace is a brace.
        at_ += formatted && source_.substr(at_ + 1, 1) == "{" ? 1 : 2;
        continue;
      }
      if (c == '\0')
        return refuse("a null byte");
      if (formatted && c == '{') {
        if (source_.substr(at_, 2) == "{{")
          at_ += 2;
        else if (auto field = skip_field(triple); !field)
          return pass(field);
        continue;
      }
      if (c == '\n') {
        if (!triple)
          break;
        ++line_;
      }
      if (c == quote && (!triple || source_.substr(at_, 3) == std::string(3, quote))) {
        at_ += triple ? 3 : 1;
        return make(kind::string, begin);
      }
      ++at_;
    }
    line_ = first_line;
    return refuse("a string that is never closed");
  }

  /// The `{…}` of a formatted string: up to Python 3.11 the quotes in it differ from those around
  /// it, later they need not.
  result<void> skip_field(bool triple) {
    if (++fields_ > fields_max)
      return refuse(fmt::format("formatted strings nested deeper than {}", fields_max));
    size_t braces = 0;
    while (at_ < source_.size()) {
      const char c = source_[at_];
      if (c == '\n' && !triple)
        break;
      if (c == '\n')
        ++line_;
      if (c == '"' || c == '\'') {
        size_t prefix = 0;
        while (prefix < 2 && at_ > prefix
          && std::string_view{"rRbBuUfF"}.find(source_[at_ - prefix - 1]) != std::string_view::npos)
          ++prefix;
        at_ -= prefix;
        if (auto inner = read_string(at_, prefix); !inner)
          return pass(inner);
        continue;
      }
      ++at_;
      if (c == '{')
        ++braces;
      if (c == '}' && --braces == 0) {
        --fields_;
        return {};
      }
    }
    return refuse("a formatted string with a brace that is never closed");
  }

  void read_number() {
    const auto digits = [&](auto belongs) {
      while (at_ < source_.size() && (belongs(source_[at_]) || source_[at_] == '_'))
        ++at_;
    };
    const auto hexadecimal = [](char c) {
      return std::isxdigit(static_cast<unsigned char>(c)) != 0;
    };
    if (source_[at_] == '0' && at_ + 1 < source_.size()) {
      const auto base = std::tolower(static_cast<unsigned char>(source_[at_ + 1]));
      if (base == 'x' || base == 'o' || base == 'b') {
        at_ += 2;
        return base == 'x' ? digits(hexadecimal) : digits(is_digit);
      }
    }
    digits(is_digit);
    if (at_ < source_.size() && source_[at_] == '.') {
      ++at_;
      digits(is_digit);
    }
    if (at_ < source_.size() && (source_[at_] == 'e' || source_[at_] == 'E')) {
      size_t power = at_ + 1;
      if (power < source_.size() && (source_[power] == '+' || source_[power] == '-'))
        ++power;
      // Not the `e` of "1else".
      if (power < source_.size() && is_digit(source_[power])) {
        at_ = power;
        digits(is_digit);
      }
    }
    if (at_ < source_.size() && (source_[at_] == 'j' || source_[at_] == 'J'))
      ++at_;
  }

  result<python_token> check_number(size_t begin) {
    auto out = make(kind::number, begin);
    const auto& text = out.text;
    const char base = text.size() > 1 && text[0] == '0' ? static_cast<char>(text[1] | 0x20) : '0';
    const auto has = [&](std::string_view any) {
      return text.find_first_of(any) != std::string_view::npos;
    };
    bool fine = !text.ends_with('_') && text.find("__") == std::string_view::npos;
    if (base == 'x' || base == 'o' || base == 'b')
      fine =
        fine && text.size() > 2 && !(base == 'o' && has("89")) && !(base == 'b' && has("23456789"));
    else if (text.size() > 1 && text[0] == '0' && !has(".eEjJ"))
      fine = fine && text.find_first_not_of("0_") == std::string_view::npos;
    if (!fine)
      return refuse(fmt::format("{} is no number", excerpt(text)));
    return out;
  }

  /// Letters of all alphabets go, but not the blanks, signs and pictures that look like code.
  result<python_token> read_name(size_t begin) const {
    auto out = make(kind::name, begin);
    for (size_t i = 0; i < out.text.size(); ++i) {
      const auto byte = [&](size_t at) -> uint32_t {
        return at < out.text.size() ? static_cast<unsigned char>(out.text[at]) & 0x3f : 0;
      };
      const auto lead = static_cast<unsigned char>(out.text[i]);
      uint32_t c = 0;
      if (lead >= 0xf0)
        c = (lead & 7U) << 18 | byte(i + 1) << 12 | byte(i + 2) << 6 | byte(i + 3);
      else if (lead >= 0xe0)
        c = (lead & 15U) << 12 | byte(i + 1) << 6 | byte(i + 2);
      else if (lead >= 0xc0)
        c = (lead & 31U) << 6 | byte(i + 1);
      else
        continue;
      for (const auto& [first, last] : no_letters)
        if (c >= first && c <= last)
          return refuse(fmt::format("the character U+{:04X} is no part of it", c));
    }
    return out;
  }

  std::string_view source_;
  size_t at_ = 0;
  size_t line_ = 1;
  size_t column_ = 0;
  size_t blanks_ = 0;
  /// Formatted strings that are open inside each other.
  size_t fields_ = 0;
  std::vector<opened> open_;
};

} // namespace

result<std::vector<python_token>> tokenize_python(std::string_view source) {
  return tokenizer{source}.run();
}

} // namespace gristmill
