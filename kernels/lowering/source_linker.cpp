#include "kernels/lowering/source_linker.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <set>

namespace gristmill {

namespace {

enum class piece : uint8_t { identifier, number, quoted, comment, space, symbol };

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// Takes C++ text apart, as far as renaming needs it.
class source_scanner {
public:
  explicit source_scanner(std::string_view text) : text_(text) {}

  bool next() {
    if (at_ >= text_.size())
      return false;
    const size_t begin = at_;
    const char c = text_[at_];
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      what_ = piece::space;
      take_while([](char x) { return std::isspace(static_cast<unsigned char>(x)) != 0; });
    } else if (text_.substr(at_, 2) == "//") {
      what_ = piece::comment;
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (text_.substr(at_, 2) == "/*") {
      what_ = piece::comment;
      const size_t end = text_.find("*/", at_ + 2);
      at_ = end == std::string_view::npos ? text_.size() : end + 2;
    } else if (c == '"' || c == '\'') {
      what_ = piece::quoted;
      take_quoted(c);
    } else if (std::isdigit(static_cast<unsigned char>(c)) != 0
      || (c == '.' && at_ + 1 < text_.size()
        && std::isdigit(static_cast<unsigned char>(text_[at_ + 1])) != 0)) {
      what_ = piece::number;
      take_number();
    } else if (is_word(c)) {
      what_ = piece::identifier;
      take_while(is_word);
      if (at_ < text_.size() && text_[at_] == '"'
        && text_.substr(begin, at_ - begin).ends_with('R'))
        take_raw();
    } else {
      what_ = piece::symbol;
      ++at_;
    }
    found_ = text_.substr(begin, at_ - begin);
    return true;
  }

  piece what() const { return what_; }
  std::string_view found() const { return found_; }
  /// What comes next, without taking it.
  std::string_view rest() const { return text_.substr(at_); }
  void skip(size_t count) { at_ += count; }

private:
  template <class Test>
  void take_while(Test test) {
    while (at_ < text_.size() && test(text_[at_]))
      ++at_;
  }

  void take_quoted(char quote) {
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (text_[at_] == '\\')
        ++at_;
    }
    at_ = std::min(at_ + 1, text_.size());
  }

  void take_raw() {
    what_ = piece::quoted;
    const size_t open = text_.find('(', at_);
    if (open == std::string_view::npos) {
      at_ = text_.size();
      return;
    }
    const std::string close = ")" + std::string{text_.substr(at_ + 1, open - at_ - 1)} + "\"";
    const size_t end = text_.find(close, open);
    at_ = end == std::string_view::npos ? text_.size() : end + close.size();
  }

  /// Letters, digit separators and signs of exponents belong to a number.
  void take_number() {
    char before = ' ';
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const bool is_sign = (c == '+' || c == '-')
        && (before == 'e' || before == 'E' || before == 'p' || before == 'P');
      const bool is_separator = c == '\'' && at_ + 1 < text_.size() && is_word(text_[at_ + 1]);
      if (!is_word(c) && c != '.' && !is_sign && !is_separator)
        break;
      // 0x1e+1 is a sum, not an exponent; the generated sources have none, and a name is never
      // swallowed by it.
      before = c;
      ++at_;
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  piece what_ = piece::space;
  std::string_view found_;
};

/// The directive that a line begins with ("include", "define"), or empty.
std::string_view directive_of(std::string_view line) {
  const size_t hash = line.find_first_not_of(" \t");
  if (hash == std::string_view::npos || line[hash] != '#')
    return {};
  const size_t begin = line.find_first_not_of(" \t", hash + 1);
  if (begin == std::string_view::npos)
    return {};
  size_t end = begin;
  while (end < line.size() && is_word(line[end]))
    ++end;
  return line.substr(begin, end - begin);
}

void for_each_line(std::string_view text, const std::function<void(std::string_view line)>& each) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    each(text.substr(0, end));
    if (end == std::string_view::npos)
      return;
    text.remove_prefix(end + 1);
  }
}

std::string defined_name(std::string_view line) {
  const size_t at = line.find("define") + 6;
  const size_t begin = line.find_first_not_of(" \t", at);
  if (begin == std::string_view::npos)
    return {};
  size_t end = begin;
  while (end < line.size() && is_word(line[end]))
    ++end;
  return std::string{line.substr(begin, end - begin)};
}

/// `extern "C"` before a declaration goes away; before a block it stays.
std::string without_c_linkage(std::string_view text) {
  std::string out;
  source_scanner scan(text);
  while (scan.next()) {
    if (scan.what() == piece::identifier && scan.found() == "extern") {
      source_scanner ahead(scan.rest());
      size_t length = 0;
      bool is_linkage = false;
      while (ahead.next()) {
        length += ahead.found().size();
        if (ahead.what() == piece::space)
          continue;
        if (!is_linkage && ahead.found() == "\"C\"") {
          is_linkage = true;
          continue;
        }
        length -= ahead.found().size();
        break;
      }
      if (is_linkage && !scan.rest().substr(length).starts_with('{')) {
        scan.skip(length);
        continue;
      }
    }
    out += scan.found();
  }
  return out;
}

} // namespace

std::string with_renamed_identifiers(
  std::string_view text, const std::vector<std::pair<std::string, std::string>>& names) {
  const std::map<std::string, std::string, std::less<>> table(names.begin(), names.end());
  std::string out;
  source_scanner scan(text);
  while (scan.next()) {
    const auto found = scan.what() == piece::identifier ? table.find(scan.found()) : table.end();
    if (found == table.end())
      out += scan.found();
    else
      out += found->second;
  }
  return out;
}

std::string linked_source(const std::vector<source_part>& parts) {
  std::vector<std::string> includes;
  std::string bodies;
  for (const source_part& part : parts) {
    std::set<std::string> macros;
    std::string body;
    for (const auto& [name, value] : part.macros)
      macros.insert(name);
    for_each_line(part.text, [&](std::string_view line) {
      const auto directive = directive_of(line);
      if (directive == "include") {
        if (std::find(includes.begin(), includes.end(), line) == includes.end())
          includes.emplace_back(line);
        return;
      }
      if (directive == "define")
        macros.insert(defined_name(line));
      body += line;
      body += '\n';
    });
    std::vector<std::pair<std::string, std::string>> names;
    for (const auto& name : macros)
      names.emplace_back(name, part.prefix + name);
    bodies += "\n";
    if (!part.condition.empty())
      bodies += fmt::format("#if {}\n", part.condition);
    for (const auto& [name, value] : part.macros) {
      if (!value.empty())
        bodies += fmt::format("#define {}{} {}\n", part.prefix, name, value);
    }
    bodies += fmt::format("namespace {} {{\n", part.space)
      + without_c_linkage(with_renamed_identifiers(body, names))
      + fmt::format("}} // namespace {}\n", part.space);
    if (!part.condition.empty())
      bodies += "#endif\n";
  }
  std::string out = fmt::format("// {} stages, each in a namespace of its own.\n", parts.size());
  for (const auto& line : includes)
    out += line + "\n";
  return out + bodies;
}

} // namespace gristmill
