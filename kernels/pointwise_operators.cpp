#include "kernels/pointwise_operators.hpp"

#include <fmt/format.h>
#include <map>
#include <set>

namespace gristmill {

namespace {

/// Operators with one tensor and nothing else.
const std::map<std::string_view, ir_op>& unary_operators() {
  static const std::map<std::string_view, ir_op> table = {{"neg", ir_op::neg}, {"abs", ir_op::abs},
    {"exp", ir_op::exp}, {"exp2", ir_op::exp2}, {"expm1", ir_op::expm1}, {"log", ir_op::log},
    {"log2", ir_op::log2}, {"log1p", ir_op::log1p}, {"sqrt", ir_op::sqrt}, {"rsqrt", ir_op::rsqrt},
    {"reciprocal", ir_op::reciprocal}, {"sigmoid", ir_op::sigmoid}, {"silu", ir_op::silu},
    {"tanh", ir_op::tanh}, {"relu", ir_op::relu}, {"hardswish", ir_op::hardswish},
    {"erf", ir_op::erf}, {"sin", ir_op::sin}, {"cos", ir_op::cos}};
  return table;
}

const std::map<std::string_view, ir_op>& comparison_operators() {
  static const std::map<std::string_view, ir_op> table = {{"lt", ir_op::less},
    {"le", ir_op::less_equal}, {"gt", ir_op::greater}, {"ge", ir_op::greater_equal},
    {"eq", ir_op::equal}, {"ne", ir_op::not_equal}};
  return table;
}

/// One call: its arguments as nodes and its build steps in short form.
class pointwise_call {
public:
  pointwise_call(const graph_node& node, ir_builder& build, const fused_kernel& kernel,
    const operand_reader& read)
    : node_(node), build_(build), kernel_(kernel), read_(read) {}

  int result() {
    const std::string_view op = node_.op;
    if (const auto unary = unary_operators().find(op); unary != unary_operators().end())
      return build_.apply(unary->second, number(0));
    if (const auto comparison = comparison_operators().find(op);
        comparison != comparison_operators().end())
      return build_.apply(comparison->second, number(0), number(1));
    if (op == "add" || op == "sub" || op == "rsub" || op == "mul" || op == "div")
      return arithmetic(op);
    if (op == "pow")
      return power();
    if (op == "square") {
      const int x = number(0);
      return build_.apply(ir_op::mul, x, x);
    }
    if (op == "minimum" || op == "maximum")
      return build_.apply(op == "minimum" ? ir_op::minimum : ir_op::maximum, number(0), number(1));
    if (op == "clamp" || op == "clamp_min" || op == "clamp_max" || op == "hardtanh")
      return clamp(op);
    if (op == "where")
      return build_.apply(ir_op::where, truth(0), number(1), number(2));
    if (op == "masked_fill")
      return build_.apply(ir_op::where, truth(1), number(2), number(0));
    if (op == "logical_and" || op == "bitwise_and")
      return build_.apply(ir_op::logical_and, truth(0), truth(1));
    if (op == "logical_or" || op == "bitwise_or")
      return build_.apply(ir_op::logical_or, truth(0), truth(1));
    if (op == "logical_not" || op == "bitwise_not")
      return build_.apply(ir_op::logical_not, truth(0));
    if (op == "full_like")
      return number(1);
    if (op == "zeros_like")
      return build_.constant(0);
    if (op == "ones_like")
      return build_.constant(1);
    if (op == "gelu" || op == "leaky_relu" || op == "softplus" || op == "elu")
      return activation(op);
    // _to_copy, clone and their kin: the rounding to the output type is the caller's.
    return read_(argument(0));
  }

private:
  /// A positional argument, or the keyword argument of that name.
  const graph_operand* find(size_t position, std::string_view name) const {
    if (position < node_.inputs.size())
      return &node_.inputs[position];
    return find_attr(node_, name);
  }

  const graph_operand& argument(size_t position) const {
    if (position >= node_.inputs.size())
      throw no_template{fmt::format("operator '{}' lacks its argument {}", node_.op, position)};
    return node_.inputs[position];
  }

  bool is_bool(int node) const { return kernel_.nodes[static_cast<size_t>(node)].is_bool; }

  int number(size_t position) { return build_.apply(ir_op::as_number, read_(argument(position))); }

  int truth(size_t position) {
    const int node = read_(argument(position));
    return is_bool(node) ? node : build_.apply(ir_op::not_equal, node, build_.constant(0));
  }

  /// The number of an optional argument.
  int number_or(size_t position, std::string_view name, double fallback) {
    const graph_operand* operand = find(position, name);
    if (operand == nullptr || operand->kind == operand_kind::none)
      return build_.constant(fallback);
    return build_.apply(ir_op::as_number, read_(*operand));
  }

  /// True when the argument is that constant number.
  static bool is_constant(const graph_operand& operand, double number) {
    if (operand.varies)
      return false;
    return (operand.kind == operand_kind::number && operand.number == number)
      || (operand.kind == operand_kind::integer && static_cast<double>(operand.integer) == number);
  }

  int arithmetic(std::string_view op) {
    int a = number(0);
    int b = number(1);
    if (op == "mul")
      return build_.apply(ir_op::mul, a, b);
    if (op == "div") {
      const graph_operand* mode = find_attr(node_, "rounding_mode");
      if (mode != nullptr && mode->kind != operand_kind::none)
        throw no_template{"operator 'div' with a rounding mode belongs to no template family yet"};
      return build_.apply(ir_op::div, a, b);
    }
    const graph_operand* alpha = find(2, "alpha");
    const bool has_alpha =
      alpha != nullptr && alpha->kind != operand_kind::none && !is_constant(*alpha, 1);
    if (op == "rsub")
      std::swap(a, b);
    // alpha belongs to the second term of `add` and `sub` and to the first argument of `rsub`,
    // which stands second by now.
    if (has_alpha)
      b = build_.apply(ir_op::mul, b, read_(*alpha));
    return build_.apply(op == "add" ? ir_op::add : ir_op::sub, a, b);
  }

  int power() {
    const graph_operand& exponent = argument(1);
    const auto is = [&](double value) { return is_constant(exponent, value); };
    if (is(0))
      return build_.constant(1);
    const int x = number(0);
    if (is(1))
      return x;
    if (is(2))
      return build_.apply(ir_op::mul, x, x);
    if (is(3))
      return build_.apply(ir_op::mul, build_.apply(ir_op::mul, x, x), x);
    if (is(0.5))
      return build_.apply(ir_op::sqrt, x);
    if (is(-0.5))
      return build_.apply(ir_op::rsqrt, x);
    if (is(-1))
      return build_.apply(ir_op::reciprocal, x);
    if (is(-2))
      return build_.apply(ir_op::reciprocal, build_.apply(ir_op::mul, x, x));
    return build_.apply(ir_op::pow, x, number(1));
  }

  int clamp(std::string_view op) {
    int x = number(0);
    if (op == "hardtanh") {
      x = build_.apply(ir_op::maximum, x, number_or(1, "min_val", -1));
      return build_.apply(ir_op::minimum, x, number_or(2, "max_val", 1));
    }
    const graph_operand* low = op == "clamp_max" ? nullptr : find(1, "min");
    const graph_operand* high =
      op == "clamp_min" ? nullptr : find(op == "clamp_max" ? 1 : 2, "max");
    if (low != nullptr && low->kind != operand_kind::none)
      x = build_.apply(ir_op::maximum, x, build_.apply(ir_op::as_number, read_(*low)));
    if (high != nullptr && high->kind != operand_kind::none)
      x = build_.apply(ir_op::minimum, x, build_.apply(ir_op::as_number, read_(*high)));
    return x;
  }

  int activation(std::string_view op) {
    const int x = number(0);
    const int zero = build_.constant(0);
    if (op == "gelu") {
      const graph_operand* form = find(1, "approximate");
      const bool is_tanh =
        form != nullptr && form->kind == operand_kind::text && form->text == "tanh";
      return build_.apply(is_tanh ? ir_op::gelu_tanh : ir_op::gelu, x);
    }
    if (op == "leaky_relu") {
      const int slope = number_or(1, "negative_slope", 0.01);
      return build_.apply(
        ir_op::where, build_.apply(ir_op::greater, x, zero), x, build_.apply(ir_op::mul, x, slope));
    }
    if (op == "elu") {
      const int alpha = number_or(1, "alpha", 1);
      const int scale = number_or(2, "scale", 1);
      const int input_scale = number_or(3, "input_scale", 1);
      const int low = build_.apply(
        ir_op::mul, alpha, build_.apply(ir_op::expm1, build_.apply(ir_op::mul, x, input_scale)));
      const int value = build_.apply(ir_op::where, build_.apply(ir_op::greater, x, zero), x, low);
      return build_.apply(ir_op::mul, value, scale);
    }
    const int beta = number_or(1, "beta", 1);
    const int threshold = number_or(2, "threshold", 20);
    const int scaled = build_.apply(ir_op::mul, x, beta);
    const int soft =
      build_.apply(ir_op::div, build_.apply(ir_op::log1p, build_.apply(ir_op::exp, scaled)), beta);
    return build_.apply(ir_op::where, build_.apply(ir_op::greater, scaled, threshold), x, soft);
  }

  const graph_node& node_;
  ir_builder& build_;
  const fused_kernel& kernel_;
  const operand_reader& read_;
};

} // namespace

bool is_pointwise(std::string_view op) {
  static const std::set<std::string_view> others = {"add", "sub", "rsub", "mul", "div", "pow",
    "square", "minimum", "maximum", "clamp", "clamp_min", "clamp_max", "hardtanh", "where",
    "masked_fill", "logical_and", "logical_or", "logical_not", "bitwise_and", "bitwise_or",
    "bitwise_not", "full_like", "zeros_like", "ones_like", "gelu", "leaky_relu", "softplus", "elu",
    "_to_copy", "clone", "detach", "alias", "contiguous", "lift_fresh", "lift_fresh_copy"};
  return unary_operators().contains(op) || comparison_operators().contains(op)
    || others.contains(op);
}

int build_pointwise(const graph_node& node, ir_builder& build, const fused_kernel& kernel,
  const operand_reader& read) {
  return pointwise_call(node, build, kernel, read).result();
}

} // namespace gristmill
