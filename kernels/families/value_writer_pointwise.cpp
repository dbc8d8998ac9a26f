#include "kernels/families/value_writer.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

// What `value_writer` writes for operators that work element by element.
namespace gristmill {

namespace {

/// Operators of one float; {0} is the argument.
const std::map<std::string_view, std::string_view>& float_functions() {
  static const std::map<std::string_view, std::string_view> table = {{"exp", "expf({0})"},
    {"exp2", "exp2f({0})"}, {"expm1", "expm1f({0})"}, {"log", "logf({0})"}, {"log2", "log2f({0})"},
    {"log10", "log2f({0}) * 0.30102999566f"}, {"log1p", "log1pf({0})"}, {"sqrt", "sqrtf({0})"},
    {"rsqrt", "rsqrtf({0})"}, {"reciprocal", "1.0f / {0}"}, {"sigmoid", "sigmoid({0})"},
    {"silu", "{0} * sigmoid({0})"}, {"tanh", "tanhf({0})"}, {"erf", "erff({0})"},
    {"sin", "sinf({0})"}, {"cos", "cosf({0})"}, {"floor", "floorf({0})"}, {"ceil", "ceilf({0})"},
    {"round", "rintf({0})"}, {"trunc", "truncf({0})"},
    {"hardswish", "{0} * fminf(fmaxf({0} + 3.0f, 0.0f), 6.0f) / 6.0f"},
    {"hardsigmoid", "fminf(fmaxf({0} + 3.0f, 0.0f), 6.0f) / 6.0f"},
    {"mish", "{0} * tanhf(softplus({0}, 1.0f, 20.0f))"},
    {"log_sigmoid_forward", "fminf({0}, 0.0f) - log1pf(expf(-fabsf({0})))"},
    {"sign", "{0} > 0.0f ? 1.0f : {0} < 0.0f ? -1.0f : 0.0f"}};
  return table;
}

const std::map<std::string_view, std::string_view>& comparisons() {
  static const std::map<std::string_view, std::string_view> table = {
    {"lt", "<"}, {"le", "<="}, {"gt", ">"}, {"ge", ">="}, {"eq", "=="}, {"ne", "!="}};
  return table;
}

const std::set<std::string_view>& others() {
  static const std::set<std::string_view> table = {"neg", "abs", "relu", "square", "add", "sub",
    "rsub", "mul", "div", "floor_divide", "remainder", "fmod", "pow", "minimum", "maximum", "clamp",
    "clamp_min", "clamp_max", "hardtanh", "where", "masked_fill", "logical_and", "logical_or",
    "logical_xor", "logical_not", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not",
    "isnan", "isinf", "gelu", "leaky_relu", "softplus", "elu", "threshold", "lerp", "addcmul",
    "addcdiv", "sigmoid_backward", "tanh_backward", "silu_backward", "gelu_backward",
    "threshold_backward", "_to_copy", "clone", "detach", "alias", "contiguous", "lift_fresh",
    "lift_fresh_copy", "nan_to_num", "copy"};
  return table;
}

bool is_constant_number(const graph_operand& operand, double number) {
  return !operand.varies
    && ((operand.kind == operand_kind::number && operand.number == number)
      || (operand.kind == operand_kind::integer && static_cast<double>(operand.integer) == number));
}

} // namespace

bool is_written_operator(std::string_view op) {
  static const std::set<std::string_view> moved = {"view", "_unsafe_view", "reshape",
    "_reshape_alias", "unsqueeze", "squeeze", "expand", "slice", "split", "split_with_sizes",
    "chunk", "narrow", "select", "unbind", "permute", "transpose", "t", "flip", "roll", "repeat",
    "unfold", "diagonal", "cat", "stack", "constant_pad_nd", "index_select", "embedding", "gather",
    "index", "repeat_interleave", "arange", "full", "zeros", "ones", "empty", "scalar_tensor",
    "new_zeros", "new_ones", "new_full", "full_like", "zeros_like", "ones_like", "eye", "tril",
    "triu", "max_pool2d_with_indices", "avg_pool2d", "max_pool1d", "avg_pool1d", "fill", "zero",
    "slice_backward", "select_backward", "upsample_nearest2d", "upsample_nearest1d", "one_hot"};
  const std::string_view plain = plain_op(op);
  return moved.contains(plain) || others().contains(plain) || float_functions().contains(plain)
    || comparisons().contains(plain);
}

written_value value_writer::read_pointwise(
  const graph_node& node, const graph_value& what, const index_list& index) {
  const std::string_view op = plain_op(node.op);
  const number_kind kind = kind_of(what.dtype);
  const auto operand = [&](size_t position) -> const graph_operand& {
    if (position >= node.inputs.size())
      refuse_node(node, fmt::format("lacks its argument {}", position));
    return node.inputs[position];
  };
  const auto any = [&](size_t position) { return read_operand(operand(position), what, index); };
  const auto as = [&](size_t position, number_kind wanted) {
    return named("v", {converted(any(position), wanted), wanted}).text;
  };
  const auto number = [&](size_t position) { return as(position, number_kind::number); };
  const auto truth = [&](size_t position) { return as(position, number_kind::truth); };
  const auto number_or = [&](size_t position, std::string_view keyword, std::string fallback) {
    const graph_operand* found = argument_of(node, position, keyword);
    return found == nullptr ? fallback
                            : converted(read_operand(*found, what, index), number_kind::number);
  };
  const auto is_given = [&](size_t position, std::string_view keyword) {
    return argument_of(node, position, keyword) != nullptr;
  };
  const auto made = [&](std::string text) { return written_value{std::move(text), kind}; };
  const auto made_number = [&](std::string text) {
    return written_value{std::move(text), number_kind::number};
  };
  const auto made_truth = [&](std::string text) {
    return written_value{std::move(text), number_kind::truth};
  };

  if (const auto found = float_functions().find(op); found != float_functions().end()) {
    const written_value x = any(0);
    if (x.kind != number_kind::number && (op == "floor" || op == "ceil" || op == "round"))
      return x;
    return made_number(fmt::format(fmt::runtime(found->second), number(0)));
  }
  if (const auto found = comparisons().find(op); found != comparisons().end()) {
    const written_value a = any(0);
    const written_value b = any(1);
    const number_kind common = std::max({a.kind, b.kind, number_kind::integer});
    return made_truth(
      fmt::format("{} {} {}", converted(a, common), found->second, converted(b, common)));
  }
  if (op == "neg")
    return made("-" + as(0, kind));
  if (op == "abs")
    return kind == number_kind::number ? made(fmt::format("fabsf({})", number(0)))
                                       : made(fmt::format("{0} < 0 ? -{0} : {0}", as(0, kind)));
  if (op == "relu")
    return kind == number_kind::number ? made(fmt::format("fmaxf({}, 0.0f)", number(0)))
                                       : made(fmt::format("{0} < 0 ? 0 : {0}", as(0, kind)));
  if (op == "square")
    return made(fmt::format("{0} * {0}", as(0, kind)));
  if (op == "mul")
    return kind == number_kind::truth ? made(fmt::format("{} && {}", truth(0), truth(1)))
                                      : made(fmt::format("{} * {}", as(0, kind), as(1, kind)));
  if (op == "add" || op == "sub" || op == "rsub") {
    if (kind == number_kind::truth)
      return made(fmt::format("{} || {}", truth(0), truth(1)));
    std::string a = as(0, kind);
    std::string b = as(1, kind);
    if (op == "rsub")
      std::swap(a, b);
    const graph_operand* alpha = argument_of(node, 2, "alpha");
    if (alpha != nullptr && !is_constant_number(*alpha, 1))
      b = fmt::format("{} * {}", b, converted(read_operand(*alpha, what, index), kind));
    return made(fmt::format("{} {} {}", a, op == "add" ? "+" : "-", b));
  }
  if (op == "div" || op == "floor_divide") {
    const graph_operand* mode = find_attr(node, "rounding_mode");
    const bool is_floor = op == "floor_divide"
      || (mode != nullptr && mode->kind == operand_kind::text && mode->text == "floor");
    const bool is_trunc =
      mode != nullptr && mode->kind == operand_kind::text && mode->text == "trunc";
    if (kind == number_kind::integer && is_floor)
      return made(fmt::format("floor_over({}, {})", as(0, kind), as(1, kind)));
    if (kind == number_kind::integer)
      return made(fmt::format("{} / {}", as(0, kind), as(1, kind)));
    const std::string quotient = fmt::format("{} / {}", number(0), number(1));
    return made_number(is_floor ? fmt::format("floorf({})", quotient)
        : is_trunc              ? fmt::format("truncf({})", quotient)
                                : quotient);
  }
  if (op == "remainder")
    return kind == number_kind::integer
      ? made(fmt::format("{0} - floor_over({0}, {1}) * {1}", as(0, kind), as(1, kind)))
      : made(fmt::format("python_rest({}, {})", number(0), number(1)));
  if (op == "fmod")
    return kind == number_kind::integer ? made(fmt::format("{} % {}", as(0, kind), as(1, kind)))
                                        : made(fmt::format("fmodf({}, {})", number(0), number(1)));
  if (op == "pow") {
    const graph_operand& exponent = operand(1);
    if (kind == number_kind::integer && !is_constant_number(exponent, 2))
      refuse_node(node, "of integers belongs to no template family yet");
    if (is_constant_number(exponent, 2))
      return made(fmt::format("{0} * {0}", as(0, kind)));
    const auto is = [&](double value) { return is_constant_number(exponent, value); };
    if (is(3))
      return made_number(fmt::format("{0} * {0} * {0}", number(0)));
    if (is(0.5))
      return made_number(fmt::format("sqrtf({})", number(0)));
    if (is(-0.5))
      return made_number(fmt::format("rsqrtf({})", number(0)));
    if (is(-1))
      return made_number(fmt::format("1.0f / {}", number(0)));
    return made_number(fmt::format("powf({}, {})", number(0), number(1)));
  }
  if (op == "minimum" || op == "maximum") {
    const bool is_max = op == "maximum";
    if (kind == number_kind::number)
      return made(fmt::format("{}({}, {})", is_max ? "fmaxf" : "fminf", number(0), number(1)));
    return made(
      fmt::format("{0} {2} {1} ? {0} : {1}", as(0, kind), as(1, kind), is_max ? ">" : "<"));
  }
  if (op == "clamp" || op == "clamp_min" || op == "clamp_max" || op == "hardtanh") {
    std::string x = as(0, kind);
    const auto bound = [&](const graph_operand* by, bool is_low) {
      if (by == nullptr)
        return;
      const std::string limit = converted(read_operand(*by, what, index), kind);
      x = kind == number_kind::number
        ? fmt::format("{}({}, {})", is_low ? "fmaxf" : "fminf", x, limit)
        : fmt::format("({0} {2} {1} ? {1} : {0})", x, limit, is_low ? "<" : ">");
    };
    if (op != "clamp_max")
      bound(argument_of(node, 1, op == "hardtanh" ? "min_val" : "min"), true);
    if (op != "clamp_min")
      bound(
        argument_of(node, op == "clamp_max" ? 1 : 2, op == "hardtanh" ? "max_val" : "max"), false);
    return made(x);
  }
  if (op == "where")
    return made(fmt::format("{} ? {} : {}", truth(0), as(1, kind), as(2, kind)));
  if (op == "masked_fill")
    return made(fmt::format("{} ? {} : {}", truth(1), as(2, kind), as(0, kind)));
  if (op == "logical_and" || (op == "bitwise_and" && kind == number_kind::truth))
    return made_truth(fmt::format("{} && {}", truth(0), truth(1)));
  if (op == "logical_or" || (op == "bitwise_or" && kind == number_kind::truth))
    return made_truth(fmt::format("{} || {}", truth(0), truth(1)));
  if (op == "logical_xor" || (op == "bitwise_xor" && kind == number_kind::truth))
    return made_truth(fmt::format("{} != {}", truth(0), truth(1)));
  if (op == "logical_not" || (op == "bitwise_not" && kind == number_kind::truth))
    return made_truth("!" + truth(0));
  if (op == "bitwise_and" || op == "bitwise_or" || op == "bitwise_xor")
    return made(fmt::format("{} {} {}", as(0, kind),
      op == "bitwise_and"    ? "&"
        : op == "bitwise_or" ? "|"
                             : "^",
      as(1, kind)));
  if (op == "bitwise_not")
    return made("~" + as(0, kind));
  if (op == "isnan")
    return made_truth(fmt::format("{0} != {0}", number(0)));
  if (op == "isinf")
    return made_truth(fmt::format("fabsf({}) == INFINITY", number(0)));
  if (op == "gelu") {
    const graph_operand* form = argument_of(node, 1, "approximate");
    const bool is_tanh =
      form != nullptr && form->kind == operand_kind::text && form->text == "tanh";
    return made_number(fmt::format("{}({})", is_tanh ? "gelu_tanh" : "gelu", number(0)));
  }
  if (op == "leaky_relu")
    return made_number(fmt::format(
      "{0} > 0.0f ? {0} : {0} * {1}", number(0), number_or(1, "negative_slope", "0.01f")));
  if (op == "elu") {
    const std::string x = number(0);
    return made_number(fmt::format("({0} > 0.0f ? {0} : {1} * expm1f({0} * {3})) * {2}", x,
      number_or(1, "alpha", "1.0f"), number_or(2, "scale", "1.0f"),
      number_or(3, "input_scale", "1.0f")));
  }
  if (op == "softplus")
    return made_number(fmt::format("softplus({}, {}, {})", number(0), number_or(1, "beta", "1.0f"),
      number_or(2, "threshold", "20.0f")));
  if (op == "threshold")
    return made(fmt::format("{0} > {1} ? {0} : {2}", as(0, kind), as(1, kind), as(2, kind)));
  if (op == "lerp")
    return made_number(fmt::format("{0} + {2} * ({1} - {0})", number(0), number(1), number(2)));
  if (op == "addcmul" || op == "addcdiv")
    return made_number(fmt::format("{} + {} * {} {} {}", number(0), number_or(3, "value", "1.0f"),
      number(1), op == "addcmul" ? "*" : "/", number(2)));
  if (op == "sigmoid_backward")
    return made_number(fmt::format("{0} * (1.0f - {1}) * {1}", number(0), number(1)));
  if (op == "tanh_backward")
    return made_number(fmt::format("{0} * (1.0f - {1} * {1})", number(0), number(1)));
  if (op == "silu_backward") {
    const std::string s =
      named("v", {fmt::format("sigmoid({})", number(1)), number_kind::number}).text;
    return made_number(
      fmt::format("{0} * {2} * (1.0f + {1} * (1.0f - {2}))", number(0), number(1), s));
  }
  if (op == "gelu_backward") {
    const graph_operand* form = argument_of(node, 2, "approximate");
    const std::string x = number(1);
    if (form != nullptr && form->kind == operand_kind::text && form->text == "tanh") {
      const std::string t = named("v",
        {fmt::format("tanhf(0.79788456f * ({0} + 0.044715f * {0} * {0} * {0}))", x),
          number_kind::number})
                              .text;
      return made_number(fmt::format("{0} * (0.5f * (1.0f + {2}) + 0.5f * {1} * (1.0f - {2} * {2}) "
                                     "* 0.79788456f * (1.0f + 0.134145f * {1} * {1}))",
        number(0), x, t));
    }
    return made_number(fmt::format("{0} * (0.5f * (1.0f + erff({1} * 0.70710678f)) + {1} * "
                                   "0.39894228f * expf(-0.5f * {1} * {1}))",
      number(0), x));
  }
  if (op == "threshold_backward")
    return made(fmt::format("{1} > {2} ? {0} : {3}", as(0, kind), as(1, kind), as(2, kind),
      kind == number_kind::number ? "0.0f" : "int64_t(0)"));
  if (op == "nan_to_num" && !is_given(2, "posinf") && !is_given(3, "neginf"))
    return made_number(
      fmt::format("{0} != {0} ? {1} : fminf(fmaxf({0}, -3.402823466e38f), 3.402823466e38f)",
        number(0), number_or(1, "nan", "0.0f")));
  if (op == "copy")
    return made(as(1, kind));
  if (op == "_to_copy" || op == "clone" || op == "detach" || op == "alias" || op == "contiguous"
    || op == "lift_fresh" || op == "lift_fresh_copy") {
    const written_value x = any(0);
    // What becomes an integer loses its fraction first.
    if (kind == number_kind::integer && x.kind == number_kind::number)
      return made(fmt::format("int64_t(truncf({}))", x.text));
    return {converted(x, kind), kind};
  }
  refuse_node(node, "belongs to no template family yet");
}

} // namespace gristmill
