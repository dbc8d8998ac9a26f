#include "protocol/exporter/expression_code.hpp"

#include "protocol/expression_node.hpp"
#include "protocol/json_document.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gristmill {

namespace {

class writer {
public:
  writer(const expression& parsed, const code_names& names)
    : parsed_(parsed), names_(names), axis_(parsed.mode() == expression_mode::axis) {}

  result<std::string> code_of(uint32_t index) const {
    const auto& node = parsed_.nodes()[index];
    switch (node.what) {
    case expression_node::kind::integer:
      return fmt::format("gm::integer(INT64_C({}))", node.integer);
    case expression_node::kind::floating:
      // Hexadecimal: exactly the number, whoever reads it.
      return fmt::format("gm::real({:a})", node.floating);
    case expression_node::kind::boolean:
      // In axis mode a bool is the number 0 or 1.
      return axis_ ? fmt::format("gm::integer({})", node.boolean ? 1 : 0)
                   : fmt::format("gm::flag({})", node.boolean);
    case expression_node::kind::name:
      return located(names_.value_code(node.subject));
    case expression_node::kind::subject_call:
      return subject_call(node);
    case expression_node::kind::unary:
    case expression_node::kind::binary:
    case expression_node::kind::call:
      break;
    }
    std::vector<std::string> parts;
    for (uint32_t child : node.children) {
      auto part = code_of(child);
      if (!part)
        return part;
      parts.push_back(std::move(*part));
    }
    if (node.what == expression_node::kind::unary)
      return unary(node.spelling, parts[0]);
    if (node.what == expression_node::kind::binary)
      return binary(node.spelling, parts[0], parts[1]);
    return call(node.spelling, parts);
  }

private:
  result<std::string> located(result<std::string> code) const {
    if (!code)
      return fail(code.error().code,
        fmt::format("expression {}: {}", excerpt(parsed_.text()), code.error().what));
    return code;
  }

  result<std::string> subject_call(const expression_node& node) const {
    std::string index;
    if (!node.children.empty()) {
      auto code = code_of(node.children[0]);
      if (!code)
        return code;
      index = std::move(*code);
    }
    return located(names_.call_code(node.spelling, node.subject, index));
  }

  static std::string unary(std::string_view spelling, const std::string& a) {
    if (spelling == "not")
      return fmt::format("gm::flag(!gm::to_flag({}))", a);
    return fmt::format("gm::{}({})", spelling == "-" ? "negate" : "plus", a);
  }

  std::string binary(std::string_view spelling, const std::string& a, const std::string& b) const {
    if (spelling == "and" || spelling == "or")
      return fmt::format(
        "gm::flag(gm::to_flag({}) {} gm::to_flag({}))", a, spelling == "and" ? "&&" : "||", b);
    if (spelling == "==")
      return fmt::format("gm::flag(gm::equal({}, {}))", a, b);
    if (spelling == "!=")
      return fmt::format("gm::flag(!gm::equal({}, {}))", a, b);
    if (spelling == "<")
      return fmt::format("gm::flag(gm::less({}, {}))", a, b);
    if (spelling == "<=")
      return fmt::format("gm::flag(gm::less_equal({}, {}))", a, b);
    if (spelling == ">")
      return fmt::format("gm::flag(gm::less({}, {}))", b, a);
    if (spelling == ">=")
      return fmt::format("gm::flag(gm::less_equal({}, {}))", b, a);
    const char* name = spelling == "+" ? "add"
      : spelling == "-"                ? "subtract"
      : spelling == "*"                ? "multiply"
      : spelling == "//"               ? "floor_divide"
      : spelling == "%"                ? "modulo"
      : spelling == "/"                ? (axis_ ? "axis_divide" : "divide")
                                       : (axis_ ? "axis_power" : "power");
    return fmt::format("gm::{}({}, {})", name, a, b);
  }

  static std::string call(std::string_view spelling, const std::vector<std::string>& parts) {
    if (spelling == "select")
      return fmt::format("(gm::to_flag({}) ? {} : {})", parts[0], parts[1], parts[2]);
    if (spelling == "min" || spelling == "max")
      return fmt::format(
        "gm::{}({{{}}})", spelling == "min" ? "minimum" : "maximum", fmt::join(parts, ", "));
    const std::string_view name = spelling == "abs" ? "absolute"
      : spelling == "int"                           ? "as_int"
      : spelling == "float"                         ? "as_real"
      : spelling == "sqrt"                          ? "square_root"
      : spelling == "rsqrt"                         ? "reciprocal_root"
      : spelling == "exp2"                          ? "exp2_of"
      : spelling == "log2"                          ? "log2_of"
                                                    : spelling;
    return fmt::format("gm::{}({})", name, fmt::join(parts, ", "));
  }

  const expression& parsed_;
  const code_names& names_;
  bool axis_;
};

} // namespace

result<std::string> expression_code(const expression& parsed, const code_names& names) {
  return writer{parsed, names}.code_of(static_cast<uint32_t>(parsed.nodes().size() - 1));
}

} // namespace gristmill
