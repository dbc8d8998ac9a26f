#include "protocol/python_scan.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>

namespace gristmill {

namespace {

constexpr std::array<std::string_view, 35> keywords{"False", "None", "True", "and", "as", "assert",
  "async", "await", "break", "class", "continue", "def", "del", "elif", "else", "except", "finally",
  "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass",
  "raise", "return", "try", "while", "with", "yield"};

bool is_keyword(std::string_view text) {
  return std::find(keywords.begin(), keywords.end(), text) != keywords.end();
}

bool is_value_keyword(std::string_view text) {
  return text == "True" || text == "False" || text == "None";
}

// Bytes above 127 belong to letters of other alphabets here; Python decides about them later.
bool starts_name(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'
    || static_cast<unsigned char>(c) >= 0x80;
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool continues_name(char c) {
  return starts_name(c) || is_digit(c);
}

enum class token_kind : uint8_t { name, number, string, symbol, line_end };

struct token {
  token_kind kind = token_kind::line_end;
  std::string_view text;
  size_t line = 1;
  /// First of a logical line that starts at the left margin.
  bool at_margin = false;
};

class tokenizer {
public:
  explicit tokenizer(std::string_view source) : source_(source) {}

  result<std::vector<token>> run() {
    std::vector<token> tokens;
    bool line_start = true;
    while (true) {
      const size_t before = at_;
      skip_blanks();
      if (at_ >= source_.size())
        break;
      const char c = source_[at_];
      if (c == '#') {
        while (at_ < source_.size() && source_[at_] != '\n')
          ++at_;
        continue;
      }
      if (c == '\n') {
        ++at_;
        ++line_;
        if (open_.empty()) {
          if (!line_start)
            tokens.push_back({token_kind::line_end, {}, line_, false});
          line_start = true;
        }
        continue;
      }
      const bool indented = line_start && at_ > before;
      if (indented && tokens.empty())
        return refuse("the first line is indented");
      auto next = read_token();
      if (!next)
        return pass(next);
      next->at_margin = line_start && !indented;
      line_start = false;
      if (auto fine = check_neighbours(tokens, *next); !fine)
        return pass(fine);
      tokens.push_back(*next);
    }
    if (!open_.empty())
      return refuse(fmt::format(
        "the bracket `{}` of line {} is never closed", open_.back().bracket, open_.back().line));
    tokens.push_back({token_kind::line_end, {}, line_, false});
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

  void skip_blanks() {
    while (at_ < source_.size()) {
      const char c = source_[at_];
      if (c == ' ' || c == '\t' || c == '\r' || c == '\f') {
        ++at_;
      } else if (c == '\\' && at_ + 1 < source_.size()
        && (source_[at_ + 1] == '\n' || (source_.substr(at_ + 1, 2) == "\r\n"))) {
        at_ += source_[at_ + 1] == '\n' ? 2 : 3;
        ++line_;
      } else {
        return;
      }
    }
  }

  result<token> read_token() {
    const size_t begin = at_;
    const char c = source_[at_];
    if (const size_t prefix = string_prefix())
      return read_string(begin, prefix - 1);
    if (starts_name(c)) {
      while (at_ < source_.size() && continues_name(source_[at_]))
        ++at_;
      return make(token_kind::name, begin);
    }
    if (is_digit(c) || (c == '.' && at_ + 1 < source_.size() && is_digit(source_[at_ + 1]))) {
      read_number();
      return make(token_kind::number, begin);
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
    ++at_;
    return make(token_kind::symbol, begin);
  }

  token make(token_kind kind, size_t begin) const {
    return {kind, source_.substr(begin, at_ - begin), line_, false};
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

  result<token> read_string(size_t begin, size_t prefix) {
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
        at_ += 2; // In a raw string too: a quote behind a backslash does not close it.
        continue;
      }
      if (c == '\n') {
        if (!triple)
          break;
        ++line_;
      }
      if (c == quote && (!triple || source_.substr(at_, 3) == std::string(3, quote))) {
        at_ += triple ? 3 : 1;
        return make(token_kind::string, begin);
      }
      ++at_;
    }
    line_ = first_line;
    return refuse("a string that is never closed");
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

  // Two operands with nothing between them, as in `print 1`, are an error wherever they stand.
  // `match x` and its kind look the same, so their words are let through at the start of a line.
  result<void> check_neighbours(const std::vector<token>& tokens, const token& next) const {
    if (tokens.empty())
      return {};
    const auto& last = tokens.back();
    const auto plain_name = [](const token& t) {
      return t.kind == token_kind::name && (!is_keyword(t.text) || is_value_keyword(t.text));
    };
    const bool ends_operand = plain_name(last) || last.kind == token_kind::number
      || last.kind == token_kind::string
      || (last.kind == token_kind::symbol
        && (last.text == ")" || last.text == "]" || last.text == "}"));
    const bool starts_operand =
      plain_name(next) || next.kind == token_kind::number || next.kind == token_kind::string;
    const bool soft = last.text == "match" || last.text == "case" || last.text == "type";
    if (!ends_operand || !starts_operand || soft
      || (last.kind == token_kind::string && next.kind == token_kind::string))
      return {};
    return refuse(
      fmt::format("`{}` directly behind `{}`", next.text.substr(0, 40), last.text.substr(0, 40)));
  }

  std::string_view source_;
  size_t at_ = 0;
  size_t line_ = 1;
  std::vector<opened> open_;
};

/// Reads the parameters behind `def name`; `at` stands on the opening bracket.
std::vector<std::string> read_parameters(const std::vector<token>& tokens, size_t at) {
  std::vector<std::string> names;
  size_t depth = 0;
  size_t lambdas = 0;
  bool expects_name = true;
  bool counting = true;
  for (; at < tokens.size(); ++at) {
    const auto& each = tokens[at];
    if (each.kind == token_kind::symbol) {
      const char c = each.text[0];
      if (c == '(' || c == '[' || c == '{') {
        ++depth;
        continue;
      }
      if (c == ')' || c == ']' || c == '}') {
        if (--depth == 0)
          break;
        continue;
      }
    }
    if (depth != 1)
      continue;
    if (each.text == "lambda") {
      ++lambdas; // Its commas are not ours until its colon.
    } else if (each.text == ":" && lambdas > 0) {
      --lambdas;
    } else if (each.text == "," && lambdas == 0) {
      expects_name = true;
    } else if (expects_name) {
      if (each.text == "*")
        counting = false; // What follows is for keywords only.
      else if (each.kind == token_kind::name && counting)
        names.emplace_back(each.text);
      expects_name = false;
    }
  }
  return names;
}

} // namespace

const python_function* python_outline::find(std::string_view name) const {
  for (const auto& each : functions)
    if (each.name == name)
      return &each;
  return nullptr;
}

result<python_outline> scan_python(std::string_view source) {
  auto tokens = tokenizer{source}.run();
  if (!tokens)
    return pass(tokens);
  python_outline out;
  for (size_t i = 0; i + 2 < tokens->size(); ++i) {
    const auto& first = (*tokens)[i];
    if (!first.at_margin || first.text != "def")
      continue;
    const auto& name = (*tokens)[i + 1];
    if (name.kind != token_kind::name || is_keyword(name.text) || (*tokens)[i + 2].text != "(")
      return fail(errc::invalid_input,
        fmt::format("line {} is not Python: `def` without a name and its parameters", first.line));
    out.functions.push_back({std::string{name.text}, read_parameters(*tokens, i + 2)});
  }
  return out;
}

bool is_python_name(std::string_view text) {
  return !text.empty() && starts_name(text[0])
    && std::all_of(text.begin(), text.end(), continues_name) && !is_keyword(text);
}

} // namespace gristmill
