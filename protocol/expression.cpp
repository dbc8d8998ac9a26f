#include "protocol/expression.hpp"

#include "protocol/expression_node.hpp"
#include "protocol/json_document.hpp"
#include "protocol/nearest.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>

namespace gristmill {

namespace {

constexpr size_t text_max = 4096;
constexpr size_t depth_max = 64;
/// A chain such as 1+1+1+... is as deep for the evaluator as it is long.
constexpr size_t nodes_max = 1000;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_hex_digit(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
bool starts_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'
    || static_cast<unsigned char>(c) >= 0x80;
}

// Words that Python reads as something else than a name.
constexpr std::array<std::string_view, 34> python_words{"None", "and", "as", "assert", "async",
  "await", "break", "class", "continue", "def", "del", "elif", "else", "except", "finally", "for",
  "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise",
  "return", "try", "while", "with", "yield", "__debug__"};

// Longest first, so that a prefix never wins.
constexpr std::array<std::string_view, 17> symbols{
  "**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "<", ">", "(", ")", ",", "."};

struct token {
  enum class kind : uint8_t { end, integer, floating, name, string, symbol };

  kind what = kind::end;
  /// Of a symbol: an element of the table above.
  std::string_view text;
  size_t column = 1;
  int64_t integer = 0;
  double floating = 0;
};

class parser {
public:
  parser(std::string_view text, expression_mode mode) : text_(text), mode_(mode) {}

  result<expression> run() {
    if (text_.size() > text_max)
      return fail(errc::invalid_input,
        fmt::format("an expression of {} bytes; at most {} are read", text_.size(), text_max));
    if (auto first = advance(); !first)
      return pass(first);
    auto root = axis_mode() ? parse_sum() : parse_or();
    if (!root)
      return pass(root);
    if (now_.what != token::kind::end)
      return refuse(now_.column, fmt::format("unexpected {}", shown(now_)));
    if (nodes_.size() > nodes_max)
      return refuse(1, fmt::format("more than {} numbers, names and operators", nodes_max));
    return expression{std::string{text_},
      std::make_shared<const std::vector<expression_node>>(std::move(nodes_)), mode_};
  }

private:
  using node_index = result<uint32_t>;

  bool axis_mode() const { return mode_ == expression_mode::axis; }

  tl::unexpected<failure> refuse(size_t column, const std::string& why) const {
    return fail(errc::invalid_input,
      fmt::format("expression {}, column {}: {}", excerpt(text_), column, why));
  }

  static std::string shown(const token& t) {
    return t.what == token::kind::end ? std::string{"end"} : excerpt(t.text);
  }

  // ---- tokens

  void skip_blanks() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const bool newline = c == '\n' || c == '\r';
      if (axis_mode() && newline && brackets_ == 0 && started_) {
        // Behind the first line only blank lines and comments may follow.
        ended_ = true;
      }
      if (axis_mode() && c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n')
          ++at_;
        continue;
      }
      if (axis_mode() && c == '\\') {
        // Joins two lines, if there is a second one.
        const size_t width = text_.substr(at_ + 1, 2) == "\r\n" ? 3 : 2;
        const bool joins = at_ + 1 < text_.size() && (text_[at_ + 1] == '\n' || width == 3);
        if (!joins || at_ + width >= text_.size())
          return;
        at_ += width;
        continue;
      }
      if (c != ' ' && c != '\t' && !newline && !(axis_mode() && c == '\f'))
        return;
      ++at_;
    }
  }

  result<void> advance() {
    skip_blanks();
    now_ = token{};
    now_.column = at_ + 1;
    if (at_ >= text_.size())
      return {};
    if (ended_)
      return refuse(now_.column, "a second line");
    if (axis_mode() && !started_ && at_ > 0 && (text_[at_ - 1] == ' ' || text_[at_ - 1] == '\t')) {
      // The format's parser takes a leading blank for an indentation.
      return refuse(now_.column, "an axis expression must not begin with a blank");
    }
    started_ = true;
    const char c = text_[at_];
    if (is_digit(c) || (c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1])))
      return read_number();
    if (starts_name(c)) {
      const size_t begin = at_;
      while (at_ < text_.size() && (starts_name(text_[at_]) || is_digit(text_[at_])))
        ++at_;
      now_.what = token::kind::name;
      now_.text = text_.substr(begin, at_ - begin);
      return {};
    }
    if (c == '"' && !axis_mode())
      return read_string();
    for (std::string_view symbol : symbols) {
      if (!text_.substr(at_).starts_with(symbol))
        continue;
      at_ += symbol.size();
      if (symbol == "(")
        ++brackets_;
      if (symbol == ")" && brackets_ > 0)
        --brackets_;
      now_.what = token::kind::symbol;
      now_.text = symbol;
      return {};
    }
    size_t width = 1;
    while (
      at_ + width < text_.size() && (static_cast<unsigned char>(text_[at_ + width]) & 0xc0) == 0x80)
      ++width;
    return refuse(
      at_ + 1, fmt::format("{} is not part of an expression", excerpt(text_.substr(at_, width))));
  }

  result<void> read_string() {
    const size_t close = text_.find('"', at_ + 1);
    if (close == std::string_view::npos)
      return refuse(at_ + 1, "a string that is never closed");
    now_.what = token::kind::string;
    now_.text = text_.substr(at_ + 1, close - at_ - 1);
    at_ = close + 1;
    return {};
  }

  // Takes digits with single underscores between them.
  template <class Belongs>
  bool read_digits(std::string& digits, Belongs belongs) {
    bool last_was_digit = false;
    while (at_ < text_.size() && (belongs(text_[at_]) || (text_[at_] == '_' && last_was_digit))) {
      last_was_digit = text_[at_] != '_';
      if (last_was_digit)
        digits += text_[at_];
      ++at_;
    }
    return last_was_digit;
  }

  result<void> read_number() {
    const size_t begin = at_;
    std::string digits;
    int base = 10;
    bool floating = false;
    bool fine = true;
    if (text_[at_] == '0' && at_ + 1 < text_.size()) {
      const char letter = static_cast<char>(text_[at_ + 1] | 0x20);
      base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
    }
    if (base != 10) {
      at_ += 2;
      if (at_ < text_.size() && text_[at_] == '_')
        ++at_;
      fine = read_digits(digits, is_hex_digit); // from_chars below knows the base's digits.
    } else {
      if (text_[at_] != '.')
        fine = read_digits(digits, is_digit);
      if (fine && at_ < text_.size() && text_[at_] == '.') {
        floating = true;
        digits += '.';
        ++at_;
        if (at_ < text_.size() && is_digit(text_[at_]))
          fine = read_digits(digits, is_digit);
      }
      if (fine && at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
        floating = true;
        digits += 'e';
        ++at_;
        if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-'))
          digits += text_[at_++];
        fine = read_digits(digits, is_digit);
      }
      // Python refuses 007, but takes 00.
      if (!floating && digits.size() > 1 && digits[0] == '0')
        fine = digits.find_first_not_of('0') == std::string::npos;
    }
    while (at_ < text_.size() && (starts_name(text_[at_]) || is_digit(text_[at_]))) {
      fine = false;
      ++at_;
    }
    now_.text = text_.substr(begin, at_ - begin);
    const char* first = digits.data();
    const char* last = first + digits.size();
    std::from_chars_result read{};
    if (floating) {
      now_.what = token::kind::floating;
      read = std::from_chars(first, last, now_.floating);
      // Too small for a double: Python takes it for 0, as it takes the nearest double otherwise.
      const auto first_nonzero = digits.find_first_not_of('0');
      const bool tiny = digits.find("e-") != std::string::npos
        || (digits.find('e') == std::string::npos && first_nonzero != std::string::npos
          && digits[first_nonzero] == '.');
      if (read.ec == std::errc::result_out_of_range && tiny)
        read.ec = std::errc{};
    } else {
      now_.what = token::kind::integer;
      read = std::from_chars(first, last, now_.integer, base);
    }
    if (fine && read.ec == std::errc::result_out_of_range)
      return refuse(begin + 1, fmt::format("{} is out of range", excerpt(now_.text)));
    if (!fine || read.ec != std::errc{} || read.ptr != last)
      return refuse(begin + 1, fmt::format("{} is not a number", excerpt(now_.text)));
    return {};
  }

  // ---- nodes

  uint32_t add(expression_node node) {
    nodes_.push_back(std::move(node));
    return static_cast<uint32_t>(nodes_.size() - 1);
  }

  bool is_symbol(std::string_view text) const {
    return now_.what == token::kind::symbol && now_.text == text;
  }
  bool is_word(std::string_view text) const {
    return now_.what == token::kind::name && now_.text == text;
  }

  /// The operator from the list that stands here, with a lasting spelling, or an empty one.
  std::string_view current_operator(std::initializer_list<std::string_view> spellings) const {
    for (std::string_view each : spellings)
      if (is_symbol(each) || is_word(each))
        return each;
    return {};
  }

  node_index add_binary(std::string_view spelling, uint32_t left, uint32_t right) {
    expression_node node;
    node.what = expression_node::kind::binary;
    node.spelling = spelling;
    node.children = {left, right};
    return add(std::move(node));
  }

  template <class Operand>
  node_index parse_chain(std::initializer_list<std::string_view> spellings, Operand operand) {
    auto left = operand();
    while (left) {
      const auto spelling = current_operator(spellings);
      if (spelling.empty())
        return left;
      if (auto next = advance(); !next)
        return pass(next);
      auto right = operand();
      if (!right)
        return right;
      left = add_binary(spelling, *left, *right);
    }
    return left;
  }

  node_index parse_or() {
    return parse_chain({"or"}, [&] { return parse_and(); });
  }
  node_index parse_and() {
    return parse_chain({"and"}, [&] { return parse_not(); });
  }

  node_index parse_not() {
    if (!is_word("not"))
      return parse_comparison();
    return parse_unary_with("not", [&] { return parse_not(); });
  }

  template <class Operand>
  node_index parse_unary_with(std::string_view spelling, Operand operand) {
    if (++depth_ > depth_max)
      return refuse(now_.column, fmt::format("nested deeper than {}", depth_max));
    if (auto next = advance(); !next)
      return pass(next);
    auto inner = operand();
    --depth_;
    if (!inner)
      return inner;
    expression_node node;
    node.what = expression_node::kind::unary;
    node.spelling = spelling;
    node.children = {*inner};
    return add(std::move(node));
  }

  node_index parse_comparison() {
    auto left = parse_sum();
    if (!left)
      return left;
    const auto spelling = current_operator({"==", "!=", "<", "<=", ">", ">="});
    if (spelling.empty())
      return left;
    if (auto next = advance(); !next)
      return pass(next);
    auto right = parse_sum();
    if (!right)
      return right;
    if (!current_operator({"==", "!=", "<", "<=", ">", ">="}).empty())
      return refuse(now_.column, "comparisons do not chain; join them with `and`");
    return add_binary(spelling, *left, *right);
  }

  node_index parse_sum() {
    return parse_chain({"+", "-"}, [&] { return parse_term(); });
  }
  node_index parse_term() {
    return parse_chain({"*", "/", "//", "%"}, [&] { return parse_unary(); });
  }

  node_index parse_unary() {
    const auto sign = current_operator({"+", "-"});
    if (sign.empty())
      return parse_power();
    return parse_unary_with(sign, [&] { return parse_unary(); });
  }

  node_index parse_power() {
    auto base = parse_atom();
    if (!base || !is_symbol("**"))
      return base;
    if (++depth_ > depth_max)
      return refuse(now_.column, fmt::format("nested deeper than {}", depth_max));
    if (auto next = advance(); !next)
      return pass(next);
    auto power = parse_unary();
    --depth_;
    if (!power)
      return power;
    return add_binary("**", *base, *power);
  }

  node_index parse_atom() {
    expression_node node;
    if (now_.what == token::kind::integer || now_.what == token::kind::floating) {
      node.what = now_.what == token::kind::integer ? expression_node::kind::integer
                                                    : expression_node::kind::floating;
      node.integer = now_.integer;
      node.floating = now_.floating;
      if (auto next = advance(); !next)
        return pass(next);
      return add(std::move(node));
    }
    if (is_symbol("("))
      return parse_brackets();
    if (now_.what == token::kind::name)
      return parse_name();
    return refuse(
      now_.column, fmt::format("expected a number, a name or `(`, but found {}", shown(now_)));
  }

  node_index parse_brackets() {
    if (++depth_ > depth_max)
      return refuse(now_.column, fmt::format("nested deeper than {}", depth_max));
    if (auto next = advance(); !next)
      return pass(next);
    auto inner = axis_mode() ? parse_sum() : parse_or();
    if (!inner)
      return inner;
    if (auto closed = expect(")"); !closed)
      return pass(closed);
    --depth_;
    return inner;
  }

  result<void> expect(std::string_view symbol) {
    if (!is_symbol(symbol))
      return refuse(now_.column, fmt::format("expected `{}`, but found {}", symbol, shown(now_)));
    return advance();
  }

  node_index parse_name() {
    const token word = now_;
    const std::string_view yes = axis_mode() ? "True" : "true";
    const std::string_view no = axis_mode() ? "False" : "false";
    expression_node node;
    if (word.text == yes || word.text == no) {
      node.what = expression_node::kind::boolean;
      node.boolean = word.text == yes;
      if (auto next = advance(); !next)
        return pass(next);
      return add(std::move(node));
    }
    if (axis_mode()) {
      if (std::find(python_words.begin(), python_words.end(), word.text) != python_words.end())
        return refuse(
          word.column, fmt::format("{} is not part of an axis expression", shown(word)));
    } else if (word.text == "and" || word.text == "or" || word.text == "not") {
      return refuse(word.column, fmt::format("unexpected {}", shown(word)));
    }
    if (auto next = advance(); !next)
      return pass(next);
    if (is_symbol("(") && !axis_mode() && !is_kind(word.text))
      return parse_call(word);
    auto subject = parse_qualified(word);
    if (!subject)
      return pass(subject);
    node.what = expression_node::kind::name;
    node.subject = std::move(*subject);
    return add(std::move(node));
  }

  static bool is_kind(std::string_view word) {
    return word == "in" || word == "out" || word == "axis" || word == "scratch";
  }

  /// What may follow a name: `.name`, or `("odd name")` behind one of the four kinds.
  result<expression_name> parse_qualified(const token& word) {
    if (axis_mode() || !is_kind(word.text))
      return expression_name{{}, std::string{word.text}};
    expression_name out{std::string{word.text}, {}};
    if (is_symbol(".")) {
      if (auto next = advance(); !next)
        return pass(next);
      if (now_.what != token::kind::name)
        return refuse(now_.column, fmt::format("expected a name behind `{}.`", word.text));
      out.name = now_.text;
      if (auto next = advance(); !next)
        return pass(next);
      return out;
    }
    if (is_symbol("(")) {
      if (auto next = advance(); !next)
        return pass(next);
      if (now_.what != token::kind::string)
        return refuse(
          now_.column, fmt::format("expected a name in double quotes behind `{}(`", word.text));
      out.name = now_.text;
      if (auto next = advance(); !next)
        return pass(next);
      if (auto closed = expect(")"); !closed)
        return pass(closed);
      return out;
    }
    return expression_name{{}, std::string{word.text}};
  }

  static const function_row* find_function(std::string_view name) {
    if (name == occupancy_row.name)
      return &occupancy_row;
    for (const auto& row : expression_functions)
      if (row.name == name)
        return &row;
    return nullptr;
  }

  node_index parse_call(const token& word) {
    const auto* row = find_function(word.text);
    if (row == nullptr) {
      std::vector<std::string> known{"occupancy"};
      for (const auto& each : expression_functions)
        known.emplace_back(each.name);
      return refuse(word.column,
        fmt::format("there is no function {}{}", shown(word), suggestion(word.text, known)));
    }
    if (++depth_ > depth_max)
      return refuse(word.column, fmt::format("nested deeper than {}", depth_max));
    if (auto next = advance(); !next)
      return pass(next);
    expression_node node;
    node.what =
      row->takes_subject ? expression_node::kind::subject_call : expression_node::kind::call;
    node.spelling = row->name;
    size_t count = 0;
    while (!is_symbol(")")) {
      if (count > 0) {
        if (auto comma = expect(","); !comma)
          return pass(comma);
      }
      if (row->takes_subject && count == 0) {
        auto subject = parse_subject(*row);
        if (!subject)
          return pass(subject);
        node.subject = std::move(*subject);
      } else {
        auto argument = parse_or();
        if (!argument)
          return argument;
        node.children.push_back(*argument);
      }
      if (++count > row->arguments_max)
        break;
    }
    if (count < row->arguments_min || count > row->arguments_max)
      return refuse(word.column,
        row->arguments_min == row->arguments_max
          ? fmt::format("`{}` takes {} argument{}", row->name, row->arguments_min,
            row->arguments_min == 1 ? "" : "s")
          : fmt::format(
            "`{}` takes {} to {} arguments", row->name, row->arguments_min, row->arguments_max));
    if (auto closed = expect(")"); !closed)
      return pass(closed);
    --depth_;
    return add(std::move(node));
  }

  result<expression_name> parse_subject(const function_row& row) {
    if (now_.what != token::kind::name)
      return refuse(now_.column,
        fmt::format("`{}` takes the name of a {}, not {}", row.name,
          row.name == occupancy_row.name ? "step" : "tensor", shown(now_)));
    const token word = now_;
    if (auto next = advance(); !next)
      return pass(next);
    return parse_qualified(word);
  }

  std::string_view text_;
  expression_mode mode_;
  size_t at_ = 0;
  size_t depth_ = 0;
  size_t brackets_ = 0;
  bool started_ = false;
  bool ended_ = false;
  token now_;
  std::vector<expression_node> nodes_;
};

} // namespace

std::string name_text(const expression_name& name) {
  if (name.kind.empty())
    return name.name;
  const bool odd = name.name.empty()
    || !std::all_of(
      name.name.begin(), name.name.end(), [](char c) { return starts_name(c) || is_digit(c); });
  return odd ? fmt::format("{}(\"{}\")", name.kind, name.name)
             : fmt::format("{}.{}", name.kind, name.name);
}

expression::expression()
  : text_("true"),
    nodes_(std::make_shared<const std::vector<expression_node>>(size_t{1}, expression_node{})) {}

expression::expression(
  std::string text, std::shared_ptr<const std::vector<expression_node>> nodes, expression_mode mode)
  : text_(std::move(text)), nodes_(std::move(nodes)), mode_(mode) {}

std::optional<expression_name> expression::as_name() const {
  const auto& root = nodes_->back();
  if (root.what != expression_node::kind::name)
    return std::nullopt;
  return root.subject;
}

bool expression::calls(std::string_view function) const {
  return std::any_of(nodes_->begin(), nodes_->end(),
    [&](const expression_node& node) { return node.spelling == function; });
}

result<expression> parse_expression(std::string_view text, expression_mode mode) {
  return parser{text, mode}.run();
}

} // namespace gristmill
