#include "protocol/expression.hpp"
#include "protocol/expression_node.hpp"
#include "protocol/json_document.hpp"
#include "protocol/nearest.hpp"

#include <bit>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace gristmill {

namespace {

using value_result = result<expression_value>;

std::string_view kind_of(const expression_value& value) {
  switch (value.index()) {
  case 0:
    return "an integer";
  case 1:
    return "a float";
  case 2:
    return "a bool";
  default:
    return "a C++ type";
  }
}

int64_t floor_divide(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

/// Not by the quotient: 1 % -2^63 has one that overflows when it is multiplied back.
int64_t floor_modulo(int64_t a, int64_t b) {
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

double floor_modulo(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/// Walks the nodes of one expression.
class walker {
public:
  walker(const expression& parsed, const expression_scope& scope)
    : parsed_(parsed), scope_(scope), axis_(parsed.mode() == expression_mode::axis) {}

  value_result value_of(uint32_t index) const {
    const auto& node = parsed_.nodes()[index];
    switch (node.what) {
    case expression_node::kind::integer:
      return node.integer;
    case expression_node::kind::floating:
      return node.floating;
    case expression_node::kind::boolean:
      return node.boolean;
    case expression_node::kind::name:
      return located(scope_.lookup(node.subject));
    case expression_node::kind::unary:
      return unary(node);
    case expression_node::kind::binary:
      return binary(node);
    case expression_node::kind::call:
      return call(node);
    case expression_node::kind::subject_call:
      return subject_call(node);
    }
    return refuse("an unknown node");
  }

private:
  tl::unexpected<failure> refuse(const std::string& why, errc code = errc::invalid_input) const {
    return fail(code, fmt::format("expression {}: {}", excerpt(parsed_.text()), why));
  }

  value_result located(value_result value) const {
    if (!value)
      return refuse(value.error().what, value.error().code);
    return value;
  }

  value_result finite(double value, std::string_view operation) const {
    if (!std::isfinite(value))
      return refuse(fmt::format("`{}` does not give a finite number", operation));
    return value;
  }

  value_result overflowed(std::string_view operation) const {
    return refuse(fmt::format("`{}` overflows 64-bit integers", operation));
  }

  // In axis mode a bool is the number 0 or 1, as in Python.
  value_result number(expression_value value, std::string_view operation) const {
    if (const auto* flag = std::get_if<bool>(&value)) {
      if (axis_)
        return int64_t{*flag ? 1 : 0};
      return refuse(fmt::format("`{}` takes numbers, not a bool; write int(…)", operation));
    }
    if (std::holds_alternative<type_name>(value))
      return refuse(fmt::format("`{}` takes numbers, not a C++ type", operation));
    return value;
  }

  result<bool> boolean(uint32_t index, std::string_view operation) const {
    auto value = value_of(index);
    if (!value)
      return pass(value);
    if (const auto* flag = std::get_if<bool>(&*value))
      return *flag;
    return refuse(fmt::format("`{}` takes bools, not {}", operation, kind_of(*value)));
  }

  static double as_double(const expression_value& value) {
    const auto* whole = std::get_if<int64_t>(&value);
    return whole != nullptr ? static_cast<double>(*whole) : std::get<double>(value);
  }

  value_result unary(const expression_node& node) const {
    if (node.spelling == "not") {
      auto flag = boolean(node.children[0], "not");
      if (!flag)
        return pass(flag);
      return !*flag;
    }
    auto inner = value_of(node.children[0]);
    if (!inner)
      return inner;
    auto operand = number(*inner, node.spelling);
    if (!operand || node.spelling == "+")
      return operand;
    if (const auto* whole = std::get_if<int64_t>(&*operand)) {
      if (*whole == std::numeric_limits<int64_t>::min())
        return overflowed("-");
      return -*whole;
    }
    return -std::get<double>(*operand);
  }

  value_result binary(const expression_node& node) const {
    const auto spelling = node.spelling;
    if (spelling == "and" || spelling == "or") {
      auto left = boolean(node.children[0], spelling);
      if (!left)
        return pass(left);
      if (*left == (spelling == "or"))
        return *left;
      auto right = boolean(node.children[1], spelling);
      if (!right)
        return pass(right);
      return *right;
    }
    auto left = value_of(node.children[0]);
    if (!left)
      return left;
    auto right = value_of(node.children[1]);
    if (!right)
      return right;
    if (spelling == "==" || spelling == "!=") {
      const bool same_kind = left->index() == right->index();
      // Equality is for bools and types too, but never across kinds.
      if (left->index() >= 2 || right->index() >= 2) {
        if (!same_kind)
          return refuse(
            fmt::format("`{}` compares {} with {}", spelling, kind_of(*left), kind_of(*right)));
        return (*left == *right) == (spelling == "==");
      }
    }
    auto a = number(*left, spelling);
    if (!a)
      return a;
    auto b = number(*right, spelling);
    if (!b)
      return b;
    const auto* x = std::get_if<int64_t>(&*a);
    const auto* y = std::get_if<int64_t>(&*b);
    return x != nullptr && y != nullptr ? integers(spelling, *x, *y)
                                        : doubles(spelling, as_double(*a), as_double(*b));
  }

  value_result integers(std::string_view spelling, int64_t a, int64_t b) const {
    int64_t out = 0;
    if (spelling == "==")
      return a == b;
    if (spelling == "!=")
      return a != b;
    if (spelling == "<")
      return a < b;
    if (spelling == "<=")
      return a <= b;
    if (spelling == ">")
      return a > b;
    if (spelling == ">=")
      return a >= b;
    if (spelling == "+")
      return __builtin_add_overflow(a, b, &out) ? overflowed(spelling) : value_result{out};
    if (spelling == "-")
      return __builtin_sub_overflow(a, b, &out) ? overflowed(spelling) : value_result{out};
    if (spelling == "*")
      return __builtin_mul_overflow(a, b, &out) ? overflowed(spelling) : value_result{out};
    if (spelling == "**")
      return power(a, b);
    if (b == 0)
      return refuse(fmt::format("`{}` by zero", spelling));
    if (spelling == "/" && axis_)
      return static_cast<double>(a) / static_cast<double>(b);
    if (b == -1) {
      // The one quotient that does not fit, and a hardware trap.
      if (spelling == "%")
        return int64_t{0};
      return a == std::numeric_limits<int64_t>::min() ? overflowed(spelling) : value_result{-a};
    }
    if (spelling == "//")
      return floor_divide(a, b);
    if (spelling == "%")
      return floor_modulo(a, b);
    if (a % b != 0)
      return refuse(fmt::format("{} / {} is not an integer; use // or float(…)", a, b));
    return a / b;
  }

  value_result power(int64_t base, int64_t exponent) const {
    if (exponent < 0) {
      if (!axis_)
        return refuse("an integer to a negative power; use float(…)");
      if (base == 0)
        return refuse("zero to a negative power");
      return finite(std::pow(static_cast<double>(base), static_cast<double>(exponent)), "**");
    }
    // Ends after 63 rounds: a base above 1 overflows, and the others have a period.
    if (base == 0 || base == 1)
      return exponent == 0 ? int64_t{1} : base;
    if (base == -1)
      return int64_t{exponent % 2 == 0 ? 1 : -1};
    int64_t out = 1;
    for (int64_t i = 0; i < exponent; ++i)
      if (__builtin_mul_overflow(out, base, &out))
        return overflowed("**");
    return out;
  }

  value_result doubles(std::string_view spelling, double a, double b) const {
    if (spelling == "==")
      return a == b;
    if (spelling == "!=")
      return a != b;
    if (spelling == "<")
      return a < b;
    if (spelling == "<=")
      return a <= b;
    if (spelling == ">")
      return a > b;
    if (spelling == ">=")
      return a >= b;
    if (spelling == "+")
      return finite(a + b, spelling);
    if (spelling == "-")
      return finite(a - b, spelling);
    if (spelling == "*")
      return finite(a * b, spelling);
    if (spelling == "**")
      return finite(std::pow(a, b), spelling);
    if (b == 0)
      return refuse(fmt::format("`{}` by zero", spelling));
    if (spelling == "/")
      return finite(a / b, spelling);
    const double rest = floor_modulo(a, b);
    if (spelling == "%")
      return finite(rest, spelling);
    return finite(std::round((a - rest) / b), spelling);
  }

  value_result call(const expression_node& node) const {
    const auto name = node.spelling;
    if (name == "select") {
      auto condition = boolean(node.children[0], name);
      if (!condition)
        return pass(condition);
      return value_of(node.children[*condition ? 1 : 2]);
    }
    std::vector<expression_value> values;
    bool all_integers = true;
    for (uint32_t child : node.children) {
      auto value = value_of(child);
      if (!value)
        return value;
      if (name == "int" && std::holds_alternative<bool>(*value))
        return int64_t{std::get<bool>(*value) ? 1 : 0};
      auto numeric = number(*value, name);
      if (!numeric)
        return numeric;
      all_integers = all_integers && std::holds_alternative<int64_t>(*numeric);
      values.push_back(*numeric);
    }
    if (name == "min" || name == "max" || name == "clamp" || name == "abs")
      return all_integers ? ordered<int64_t>(name, values) : ordered<double>(name, values);
    if (name == "int")
      return to_integer(values[0]);
    if (name == "float")
      return as_double(values[0]);
    if (name == "sqrt" || name == "rsqrt" || name == "exp2" || name == "log2") {
      const double x = as_double(values[0]);
      return finite(name == "sqrt" ? std::sqrt(x)
          : name == "rsqrt"        ? 1 / std::sqrt(x)
          : name == "exp2"         ? std::exp2(x)
                                   : std::log2(x),
        name);
    }
    if (!all_integers)
      return refuse(fmt::format("`{}` takes integers only", name));
    const int64_t x = std::get<int64_t>(values[0]);
    if (name == "next_pow2" || name == "ilog2")
      return powers_of_two(name, x);
    return rounded_up(name, x, std::get<int64_t>(values[1]));
  }

  template <class Number>
  value_result ordered(std::string_view name, const std::vector<expression_value>& values) const {
    const auto get = [](const expression_value& value) {
      if constexpr (std::is_same_v<Number, double>)
        return as_double(value);
      else
        return std::get<int64_t>(value);
    };
    Number out = get(values[0]);
    if (name == "abs") {
      if constexpr (std::is_same_v<Number, int64_t>) {
        if (out == std::numeric_limits<int64_t>::min())
          return overflowed(name);
      }
      return out < 0 ? -out : out;
    }
    if (name == "clamp") {
      const Number low = get(values[1]);
      const Number high = get(values[2]);
      if (low > high)
        return refuse("`clamp` with a lower limit above the upper one");
      return out < low ? low : out > high ? high : out;
    }
    for (const auto& each : values) {
      const Number value = get(each);
      if (name == "min" ? value < out : value > out)
        out = value;
    }
    return out;
  }

  value_result to_integer(const expression_value& value) const {
    if (std::holds_alternative<int64_t>(value))
      return value;
    const double whole = std::trunc(std::get<double>(value));
    if (!(whole >= -0x1p63 && whole < 0x1p63))
      return overflowed("int");
    return static_cast<int64_t>(whole);
  }

  value_result powers_of_two(std::string_view name, int64_t x) const {
    if (name == "ilog2") {
      if (x < 1)
        return refuse(fmt::format("`ilog2` of {}, which has no logarithm", x));
      return static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(x))) - 1;
    }
    if (x <= 1)
      return int64_t{1};
    if (x > int64_t{1} << 62)
      return overflowed(name);
    return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(x)));
  }

  value_result rounded_up(std::string_view name, int64_t x, int64_t by) const {
    if (by <= 0)
      return refuse(fmt::format("`{}` by {}; it takes a positive divisor", name, by));
    const int64_t below = floor_divide(x, by);
    const int64_t quotient = x % by == 0 ? below : below + 1;
    if (name == "ceil_div")
      return quotient;
    int64_t out = 0;
    return __builtin_mul_overflow(quotient, by, &out) ? overflowed(name) : value_result{out};
  }

  value_result subject_call(const expression_node& node) const {
    std::optional<int64_t> index;
    if (!node.children.empty()) {
      auto value = value_of(node.children[0]);
      if (!value)
        return value;
      const auto* whole = std::get_if<int64_t>(&*value);
      if (whole == nullptr)
        return refuse(
          fmt::format("`{}` takes an integer index, not {}", node.spelling, kind_of(*value)));
      index = *whole;
    }
    return located(scope_.call(node.spelling, node.subject, index));
  }

  const expression& parsed_;
  const expression_scope& scope_;
  bool axis_;
};

/// The axes that are known so far.
class axis_scope : public expression_scope {
public:
  explicit axis_scope(const std::vector<std::pair<std::string, int64_t>>& axes) : axes_(axes) {}

  value_result lookup(const expression_name& name) const override {
    std::vector<std::string> known;
    for (const auto& [axis_name, value] : axes_) {
      if (axis_name == name.name)
        return value;
      known.push_back(axis_name);
    }
    return fail(errc::not_found,
      fmt::format("there is no axis {} here{}", excerpt(name.name), suggestion(name.name, known)));
  }

private:
  const std::vector<std::pair<std::string, int64_t>>& axes_;
};

} // namespace

std::string value_text(const expression_value& value) {
  if (const auto* whole = std::get_if<int64_t>(&value))
    return fmt::format("{}", *whole);
  if (const auto* fraction = std::get_if<double>(&value))
    return fmt::format("{}", *fraction);
  if (const auto* flag = std::get_if<bool>(&value))
    return *flag ? "true" : "false";
  return std::get<type_name>(value).text;
}

result<expression_value> expression_scope::call(
  std::string_view function, const expression_name& subject, std::optional<int64_t>) const {
  return fail(
    errc::invalid_input, fmt::format("`{}({})` has no meaning here", function, name_text(subject)));
}

result<expression_value> evaluate(const expression& parsed, const expression_scope& scope) {
  return walker{parsed, scope}.value_of(static_cast<uint32_t>(parsed.nodes().size() - 1));
}

result<int64_t> evaluate_int(const expression& parsed, const expression_scope& scope) {
  auto value = evaluate(parsed, scope);
  if (!value)
    return pass(value);
  if (const auto* whole = std::get_if<int64_t>(&*value))
    return *whole;
  if (parsed.mode() == expression_mode::axis) {
    if (const auto* flag = std::get_if<bool>(&*value))
      return *flag ? 1 : 0;
    const double number = std::get<double>(*value);
    if (number >= -0x1p63 && number < 0x1p63 && std::trunc(number) == number)
      return static_cast<int64_t>(number);
  }
  return fail(errc::invalid_input,
    fmt::format("expression {}: {} where an integer is needed", excerpt(parsed.text()),
      std::holds_alternative<double>(*value) ? value_text(*value) : std::string{kind_of(*value)}));
}

result<bool> evaluate_bool(const expression& parsed, const expression_scope& scope) {
  auto value = evaluate(parsed, scope);
  if (!value)
    return pass(value);
  if (const auto* flag = std::get_if<bool>(&*value))
    return *flag;
  return fail(errc::invalid_input,
    fmt::format(
      "expression {}: {} where a bool is needed", excerpt(parsed.text()), kind_of(*value)));
}

result<int64_t> evaluate_axis(
  std::string_view text, const std::vector<std::pair<std::string, int64_t>>& axes) {
  auto parsed = parse_expression(text, expression_mode::axis);
  if (!parsed)
    return pass(parsed);
  return evaluate_int(*parsed, axis_scope{axes});
}

} // namespace gristmill
