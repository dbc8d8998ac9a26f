#include "protocol/python_syntax.hpp"

#include "protocol/json_document.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <initializer_list>
#include <span>
#include <string>

namespace gristmill {

namespace {

using kind = python_token::kind;
using line = std::span<const python_token>;

tl::unexpected<failure> refuse(const python_token& at, const std::string& why) {
  return fail(errc::invalid_input, fmt::format("line {} is not Python: {}", at.line, why));
}

bool is_among(const python_token& t, std::initializer_list<std::string_view> texts) {
  return t.what != kind::string && std::find(texts.begin(), texts.end(), t.text) != texts.end();
}

bool is_plain_name(const python_token& t) {
  return t.what == kind::name && (!is_python_keyword(t.text) || is_value_keyword(t.text));
}

bool ends_operand(const python_token& t) {
  return is_plain_name(t) || t.what == kind::number || t.what == kind::string
    || is_among(t, {")", "]", "}", "..."});
}

/// `match`, `case` and `type` are names that may begin a statement.
bool is_soft_word(const python_token& t) {
  return is_among(t, {"match", "case", "type"});
}

bool is_binary_only(const python_token& t) {
  return t.what == kind::symbol
    && is_among(t,
      {"/", "//", "%", "@", "&", "|", "^", "<<", ">>", "<", ">", "<=", ">=", "==", "!=", "=",
        "+=", "-=", "*=", "/=", "//=", "%=", "&=", "|=", "^=", "@=", "**=", ">>=", "<<=", "->",
        ":=", "."});
}

/// What an operand must follow.
bool needs_operand(const python_token& t) {
  return (is_binary_only(t) && !is_among(t, {"/", "."}))
    || is_among(t,
      {"+", "-", "~", "and", "or", "not", "is", "if", "elif", "while", "await", "assert", "del",
        "in"});
}

bool begins_compound(const python_token& t) {
  return t.what == kind::name
    && is_among(t,
      {"def", "class", "if", "elif", "else", "for", "while", "with", "try", "except", "finally",
        "async"});
}

/// Statements that no operand precedes on their line.
bool begins_statement(const python_token& t) {
  return t.what == kind::name
    && is_among(t,
      {"pass", "return", "break", "continue", "raise", "del", "global", "nonlocal", "assert",
        "while", "with", "try", "def", "class", "elif", "except", "finally", "yield", "await",
        "lambda"});
}

/// Two neighbours in one logical line.
result<void> check_pair(const python_token& a, const python_token& b, bool relative_import) {
  const auto side_by_side = [&] {
    return refuse(
      b, fmt::format("{} directly behind {}", excerpt(b.text, 40), excerpt(a.text, 40)));
  };
  // The dots of `from ...a import b` are no operand.
  const bool operand_before =
    ends_operand(a) && !is_soft_word(a) && !(relative_import && a.is("..."));
  const bool strings = a.what == kind::string && b.what == kind::string;
  if (operand_before && !strings
    && (is_plain_name(b) || b.what == kind::number || b.what == kind::string
      || is_among(b, {"{", "~", "..."}) || begins_statement(b)))
    return side_by_side();
  if (is_among(a, {"pass", "break", "continue"}) && !b.is(";"))
    return side_by_side();
  if (a.is(".") && !relative_import && !is_plain_name(b))
    return side_by_side();
  if (needs_operand(a)
    && (is_binary_only(b)
      || is_among(b, {",", ")", "]", "}", ":", ";", "and", "or", "in", "if", "else", "for", "is"}))
    && !(a.is("not") && b.is("in")))
    return side_by_side();
  if (a.is(",") && (b.is(",") || (is_binary_only(b) && !is_among(b, {"/", "="}))))
    return side_by_side();
  if (is_among(a, {"(", "[", "{"})
    && (is_among(b, {",", ";"}) || (is_binary_only(b) && !(b.is(".") && relative_import))
      || (b.is(":") && !a.is("["))))
    return side_by_side();
  if (a.is(":")
    && (is_binary_only(b) || is_among(b, {")", "}", "and", "or", "is", "in", "if", "else"})))
    return side_by_side();
  if (is_among(a, {"(", "[", "{", ",", "return", "lambda"})
    && is_among(b, {"and", "or", "is", "if", "else", "for", "as"}))
    return side_by_side();
  if (a.is(";") && (is_binary_only(b) || is_among(b, {";", ",", ":"}) || begins_compound(b)))
    return side_by_side();
  return {};
}

/// Names of parameters between `def name(` and its `)`. Gives the place behind the bracket.
result<size_t> check_parameters(line tokens, size_t at) {
  size_t depth = 0;
  size_t lambdas = 0;
  bool expects_name = true;
  bool any = false;
  bool after_star = false;
  bool bare_star = false;
  bool after_slash = false;
  bool after_keywords = false;
  bool default_before = false;
  bool has_default = false;
  bool is_ordinary = false;
  for (size_t i = at; i < tokens.size(); ++i) {
    const auto& t = tokens[i];
    if (is_among(t, {"(", "[", "{"})) {
      if (depth++ == 1 && expects_name)
        return refuse(t, "a parameter without a name");
      continue;
    }
    const bool closes = is_among(t, {")", "]", "}"}) && --depth == 0;
    if (!closes && depth != 1)
      continue;
    if (closes || (t.is(",") && lambdas == 0)) {
      if (expects_name && (any ? !closes : t.is(",")))
        return refuse(t, "a parameter without a name");
      if (is_ordinary && default_before && !has_default && !after_star)
        return refuse(t, "a parameter without a default behind one that has one");
      default_before = default_before || (is_ordinary && has_default);
      has_default = false;
      is_ordinary = false;
      if (closes) {
        if (bare_star)
          return refuse(t, "`*` without a parameter behind it");
        return i + 1;
      }
      expects_name = true;
      any = true;
      continue;
    }
    if (t.is("lambda"))
      ++lambdas;
    else if (t.is(":") && lambdas > 0)
      --lambdas;
    else if (t.is("=") && lambdas == 0)
      has_default = true;
    if (!expects_name)
      continue;
    expects_name = false;
    any = true;
    if (after_keywords)
      return refuse(t, "a parameter behind `**`");
    if (t.is("*")) {
      if (after_star)
        return refuse(t, "a second `*`");
      after_star = true;
      bare_star = i + 1 < tokens.size() && is_among(tokens[i + 1], {",", ")"});
      if (!bare_star && (i + 1 == tokens.size() || !is_plain_name(tokens[i + 1])))
        return refuse(t, "`*` without a name");
    } else if (t.is("**")) {
      after_keywords = true;
      if (bare_star || i + 1 == tokens.size() || !is_plain_name(tokens[i + 1]))
        return refuse(t, "`**` without a name, or directly behind `*`");
    } else if (t.is("/")) {
      if (after_slash || after_star || i == at + 1)
        return refuse(t, "a `/` that no parameter precedes");
      after_slash = true;
    } else if (t.what == kind::name && !is_python_keyword(t.text)) {
      if (i + 1 < tokens.size() && !is_among(tokens[i + 1], {",", ")", ":", "="}))
        return refuse(t, fmt::format("{} behind a parameter", excerpt(tokens[i + 1].text, 40)));
      is_ordinary = true;
      bare_star = false;
    } else {
      return refuse(t, fmt::format("{} is no parameter", excerpt(t.text, 40)));
    }
  }
  return refuse(tokens.back(), "a parameter list that is never closed");
}

/// The place of the colon that opens the body, or the size.
size_t find_colon(line tokens, size_t from) {
  size_t depth = 0;
  size_t lambdas = 0;
  for (size_t i = from; i < tokens.size(); ++i) {
    const auto& t = tokens[i];
    if (is_among(t, {"(", "[", "{"}))
      ++depth;
    else if (is_among(t, {")", "]", "}"}) && depth > 0)
      --depth;
    else if (depth == 0 && t.is("lambda"))
      ++lambdas;
    else if (depth == 0 && t.is(":") && lambdas-- == 0)
      return i;
  }
  return tokens.size();
}

/// `1 = x` and the like, in the simple statements of a line.
result<void> check_targets(line tokens) {
  size_t depth = 0;
  bool annotated = false;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto& t = tokens[i];
    if (is_among(t, {"(", "[", "{"}))
      ++depth;
    else if (is_among(t, {")", "]", "}"}) && depth > 0)
      --depth;
    else if (depth == 0 && t.is(";"))
      annotated = false;
    else if (depth == 0 && is_among(t, {":", "lambda"}))
      annotated = true;
    else if (depth == 0 && t.is("=") && !annotated && i > 0
      && (tokens[i - 1].what == kind::number || tokens[i - 1].what == kind::string
        || (tokens[i - 1].what == kind::name && is_value_keyword(tokens[i - 1].text))))
      return refuse(
        t, fmt::format("nothing can be assigned to {}", excerpt(tokens[i - 1].text, 40)));
  }
  return {};
}

class checker {
public:
  explicit checker(const std::vector<python_token>& tokens) : tokens_(tokens) {}

  result<void> run() {
    levels_.push_back({});
    for (size_t begin = 0; begin < tokens_.size();) {
      size_t end = begin;
      while (end < tokens_.size() && tokens_[end].what != kind::line_end)
        ++end;
      if (end > begin)
        if (auto fine = check_line(line{tokens_}.subspan(begin, end - begin)); !fine)
          return fine;
      begin = end + 1;
    }
    const auto& last = tokens_.back();
    if (expects_body_)
      return refuse(last, "a body is missing behind `:`");
    while (!levels_.empty())
      if (auto fine = leave_level(last); !fine)
        return fine;
    return {};
  }

private:
  struct level {
    size_t column = 0;
    size_t column_of_blanks = 0;
    /// The compound word, "@" or nothing that began the last statement of this level.
    std::string_view last;
  };

  result<void> leave_level(const python_token& at) {
    const auto last = levels_.back().last;
    if (last == "try")
      return refuse(at, "`try` without `except` or `finally`");
    if (last == "@")
      return refuse(at, "a decorator without a function or class");
    levels_.pop_back();
    return {};
  }

  result<void> check_indentation(const python_token& first) {
    const auto deeper = [&] { return first.column > levels_.back().column; };
    const auto mixed = [&] {
      const auto& top = levels_.back();
      return (first.column > top.column) != (first.column_of_blanks > top.column_of_blanks)
        || (first.column == top.column) != (first.column_of_blanks == top.column_of_blanks);
    };
    if (expects_body_) {
      if (!deeper())
        return refuse(first, "a body is missing behind `:`");
      if (mixed())
        return refuse(first, "tabs and blanks are mixed");
      levels_.push_back({first.column, first.column_of_blanks, {}});
      expects_body_ = false;
      return {};
    }
    if (deeper())
      return refuse(first, "indented, but nothing above opens a body");
    while (first.column < levels_.back().column)
      if (auto fine = leave_level(first); !fine)
        return fine;
    if (first.column != levels_.back().column)
      return refuse(first, "the indentation is that of no line above");
    if (mixed())
      return refuse(first, "tabs and blanks are mixed");
    return {};
  }

  /// Whether this word may follow the last statement of its level.
  result<void> check_order(const python_token& first) {
    auto& last = levels_.back().last;
    const auto follows = [&](std::initializer_list<std::string_view> words) {
      return std::find(words.begin(), words.end(), last) != words.end();
    };
    bool fine = true;
    if (first.is("else"))
      fine = follows({"if", "elif", "for", "while", "except"});
    else if (first.is("elif"))
      fine = follows({"if", "elif"});
    else if (first.is("except"))
      fine = follows({"try", "except"});
    else if (first.is("finally"))
      fine = follows({"try", "except", "else"});
    else if (last == "try")
      return refuse(first, "`try` without `except` or `finally`");
    if (!fine)
      return refuse(first, fmt::format("`{}` belongs to nothing above", first.text));
    if (last == "@" && !is_among(first, {"@", "def", "class", "async"}))
      return refuse(first, "a decorator without a function or class");
    return {};
  }

  result<void> check_line(line tokens) {
    const auto& first = tokens.front();
    const auto& last = tokens.back();
    if (auto fine = check_indentation(first); !fine)
      return fine;
    if (auto fine = check_order(first); !fine)
      return fine;
    if ((is_binary_only(first) && !first.is("@")) || is_among(first, {",", ":", ";", "**"}))
      return refuse(first, fmt::format("{} at the start of a line", excerpt(first.text)));
    if (needs_operand(last)
      || is_among(last,
        {".", "/", "**", "lambda", "import", "from", "as", "for", "global", "nonlocal", "class",
          "def", "with", "async"})
      || (last.is("*") && !(tokens.size() > 1 && tokens[tokens.size() - 2].is("import"))))
      return refuse(last, fmt::format("{} at the end of a line", excerpt(last.text)));
    const bool relative =
      std::any_of(tokens.begin(), tokens.end(), [](const python_token& t) { return t.is("from"); });
    for (size_t i = 1; i < tokens.size(); ++i)
      if (auto fine = check_pair(tokens[i - 1], tokens[i], relative); !fine)
        return fine;
    return check_statement(tokens);
  }

  result<void> check_statement(line tokens) {
    const auto& first = tokens.front();
    size_t word = 0;
    if (first.is("async")) {
      word = 1;
      if (tokens.size() < 2 || !is_among(tokens[1], {"def", "for", "with"}))
        return refuse(first, "`async` without `def`, `for` or `with`");
    }
    levels_.back().last = first.is("@") ? "@" : std::string_view{};
    if (!begins_compound(tokens[word])) {
      // Only `match x:` and `case x:` may end in a colon too.
      if (tokens.back().is(":")) {
        if (!is_among(first, {"match", "case"}) || tokens.size() < 3)
          return refuse(tokens.back(), "a `:` behind what opens no body");
        expects_body_ = true;
      }
      return check_targets(tokens);
    }
    levels_.back().last = tokens[word].text;
    size_t from = word + 1;
    if (is_among(tokens[word], {"def", "class"})) {
      if (from >= tokens.size() || tokens[from].what != kind::name
        || is_python_keyword(tokens[from].text))
        return refuse(first, fmt::format("`{}` without a name", tokens[word].text));
      ++from;
    }
    if (tokens[word].is("def") && from < tokens.size() && tokens[from].is("(")) {
      auto behind = check_parameters(tokens, from);
      if (!behind)
        return pass(behind);
      from = *behind;
      if (from < tokens.size() && !is_among(tokens[from], {":", "->"}))
        return refuse(first, "no `:` behind the parameters");
    }
    const size_t colon = find_colon(tokens, from);
    if (colon == tokens.size())
      return refuse(first, fmt::format("`{}` without its `:`", tokens[word].text));
    if (is_among(tokens[word], {"else", "try", "finally"}) && colon != word + 1)
      return refuse(first, fmt::format("`{}` without its `:`", tokens[word].text));
    if (is_among(tokens[word], {"if", "elif", "while", "for", "with"}) && colon == word + 1)
      return refuse(first, fmt::format("`{}` without an expression", tokens[word].text));
    if (tokens[word].is("for")
      && std::none_of(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(colon),
        [](const python_token& t) { return t.is("in"); }))
      return refuse(first, "`for` without `in`");
    expects_body_ = colon + 1 == tokens.size();
    if (expects_body_)
      return {};
    if (begins_compound(tokens[colon + 1]))
      return refuse(first, "a compound statement behind `:` on the same line");
    return check_targets(tokens.subspan(colon + 1));
  }

  const std::vector<python_token>& tokens_;
  std::vector<level> levels_;
  bool expects_body_ = false;
};

} // namespace

result<void> check_python_syntax(const std::vector<python_token>& tokens) {
  return checker{tokens}.run();
}

} // namespace gristmill
