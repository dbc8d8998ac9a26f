#include "kernels/lowering/expression_rewriter.hpp"

#include "protocol/expression_node.hpp"

#include <fmt/format.h>

namespace gristmill {

namespace {

/// How tightly an operator binds; the grammar of `parse_expression`.
enum precedence : int {
  disjunction,
  conjunction,
  negation,
  comparison,
  sum,
  term,
  sign,
  power,
  atom
};

int precedence_of(std::string_view spelling, bool is_unary) {
  if (is_unary)
    return spelling == "not" ? negation : sign;
  if (spelling == "or")
    return disjunction;
  if (spelling == "and")
    return conjunction;
  if (spelling == "+" || spelling == "-")
    return sum;
  if (spelling == "*" || spelling == "/" || spelling == "//" || spelling == "%")
    return term;
  if (spelling == "**")
    return power;
  return comparison;
}

struct written {
  std::string text;
  int binds = atom;
};

class writer {
public:
  writer(const expression& from, const name_rewriter& names) : from_(from), names_(names) {}

  result<written> write(uint32_t index) const {
    const expression_node& node = from_.nodes()[index];
    switch (node.what) {
    case expression_node::kind::integer:
      return written{fmt::format("{}", node.integer)};
    case expression_node::kind::floating: {
      std::string text = fmt::format("{}", node.floating);
      if (text.find_first_of(".e") == std::string::npos)
        text += ".0";
      return written{std::move(text)};
    }
    case expression_node::kind::boolean:
      return written{node.boolean ? "true" : "false"};
    case expression_node::kind::name:
      return operand(names_.name(node.subject));
    case expression_node::kind::subject_call:
      return subject_call(node);
    case expression_node::kind::unary: {
      const int binds = precedence_of(node.spelling, true);
      auto inner = bracketed(node.children[0], binds);
      if (!inner)
        return pass(inner);
      return written{
        fmt::format("{}{}{}", node.spelling, node.spelling == "not" ? " " : "", *inner), binds};
    }
    case expression_node::kind::binary:
      return binary(node);
    case expression_node::kind::call:
      break;
    }
    std::string arguments;
    for (uint32_t child : node.children) {
      auto part = write(child);
      if (!part)
        return part;
      arguments += (arguments.empty() ? "" : ", ") + part->text;
    }
    return written{fmt::format("{}({})", node.spelling, arguments)};
  }

private:
  static result<written> operand(result<std::string> text) {
    if (!text)
      return pass(text);
    return written{std::move(*text)};
  }

  result<std::string> bracketed(uint32_t index, int at_least) const {
    auto part = write(index);
    if (!part)
      return pass(part);
    return part->binds < at_least ? "(" + part->text + ")" : std::move(part->text);
  }

  result<written> binary(const expression_node& node) const {
    const int binds = precedence_of(node.spelling, false);
    // Chains group to the left; a power groups to the right; comparisons do not chain.
    const bool is_chain = binds != comparison && binds != power;
    auto left = bracketed(node.children[0], is_chain ? binds : binds + 1);
    if (!left)
      return pass(left);
    auto right = bracketed(node.children[1], binds == power ? int{sign} : binds + 1);
    if (!right)
      return pass(right);
    return written{fmt::format("{} {} {}", *left, node.spelling, *right), binds};
  }

  result<written> subject_call(const expression_node& node) const {
    std::optional<int64_t> index;
    std::string text;
    if (!node.children.empty()) {
      const expression_node& child = from_.nodes()[node.children[0]];
      if (child.what == expression_node::kind::integer)
        index = child.integer;
      else if (child.what == expression_node::kind::unary && child.spelling == "-"
        && from_.nodes()[child.children[0]].what == expression_node::kind::integer)
        index = -from_.nodes()[child.children[0]].integer;
      auto part = write(node.children[0]);
      if (!part)
        return part;
      text = std::move(part->text);
    }
    return operand(names_.call(node.spelling, node.subject, index, text));
  }

  const expression& from_;
  const name_rewriter& names_;
};

} // namespace

result<std::string> rewritten(const expression& from, const name_rewriter& names) {
  auto out = writer(from, names).write(static_cast<uint32_t>(from.nodes().size() - 1));
  if (!out)
    return pass(out);
  return std::move(out->text);
}

result<std::string> rewritten(std::string_view text, const name_rewriter& names) {
  if (text.empty())
    return std::string{};
  const auto parsed = parse_expression(text, expression_mode::plan);
  if (!parsed)
    return pass(parsed);
  return rewritten(*parsed, names);
}

bool is_truth(const expression& of) {
  const expression_node& root = of.nodes().back();
  switch (root.what) {
  case expression_node::kind::boolean:
    return true;
  case expression_node::kind::unary:
    return root.spelling == "not";
  case expression_node::kind::binary: {
    const int binds = precedence_of(root.spelling, false);
    return binds == disjunction || binds == conjunction || binds == comparison;
  }
  default:
    return false;
  }
}

} // namespace gristmill
