#include "kernels/naive/naive_formula.hpp"
#include "kernels/naive/naive_operators.hpp"
#include "kernels/naive/naive_types.hpp"

#include <array>
#include <cstdlib>
#include <fmt/format.h>

namespace gristmill {

namespace {

constexpr std::string_view pair = "self other";

constexpr naive_formula formulas[] = {
  {"neg", "-$a"},
  {"positive", "$a"},
  {"abs", "($a < $T(0) ? -$a : $a)"},
  {"exp", "exp($a)"},
  {"exp2", "exp2($a)"},
  {"expm1", "expm1($a)"},
  {"log", "log($a)"},
  {"log2", "log2($a)"},
  {"log10", "log10($a)"},
  {"log1p", "log1p($a)"},
  {"sqrt", "sqrt($a)"},
  {"rsqrt", "$T(1) / sqrt($a)"},
  {"reciprocal", "$T(1) / $a"},
  {"square", "$a * $a"},
  {"sin", "sin($a)"},
  {"cos", "cos($a)"},
  {"tan", "tan($a)"},
  {"asin", "asin($a)"},
  {"acos", "acos($a)"},
  {"atan", "atan($a)"},
  {"sinh", "sinh($a)"},
  {"cosh", "cosh($a)"},
  {"tanh", "tanh($a)"},
  {"asinh", "asinh($a)"},
  {"acosh", "acosh($a)"},
  {"atanh", "atanh($a)"},
  {"erf", "erf($a)"},
  {"erfc", "erfc($a)"},
  {"sigmoid", "$T(1) / ($T(1) + exp(-$a))"},
  {"silu", "$a / ($T(1) + exp(-$a))"},
  {"mish", "$a * tanh(log1p(exp($a)))"},
  {"relu", "($a < $T(0) ? $T(0) : $a)"},
  {"relu6", "($a < $T(0) ? $T(0) : $a > $T(6) ? $T(6) : $a)"},
  {"hardswish", "$a * ($a < $T(-3) ? $T(0) : $a > $T(3) ? $T(6) : $a + $T(3)) / $T(6)"},
  {"hardsigmoid", "($a < $T(-3) ? $T(0) : $a > $T(3) ? $T(6) : $a + $T(3)) / $T(6)"},
  {"sign", "$T(int($a > $T(0)) - int($a < $T(0)))"},
  {"sgn", "$T(int($a > $T(0)) - int($a < $T(0)))"},
  {"sinc",
    "($a == $T(0) ? $T(1) : sin($T(3.14159265358979323846) * $a) / "
    "($T(3.14159265358979323846) * $a))"},
  {"deg2rad", "$a * $T(0.017453292519943295)"},
  {"rad2deg", "$a * $T(57.29577951308232)"},
  {"log_sigmoid_forward", "($a < $T(0) ? $a : $T(0)) - log1p(exp($a < $T(0) ? $a : -$a))"},
  {"softplus", "($a * $b > $c ? $a : log1p(exp($a * $b)) / $b)", "self beta=1 threshold=20"},
  {"leaky_relu", "($a > $T(0) ? $a : $a * $b)", "self negative_slope=0.01"},
  {"elu", "($a > $T(0) ? $a * $c : $b * $c * expm1($a * $d))",
    "self alpha=1 scale=1 input_scale=1"},
  {"celu", "($a > $T(0) ? $a : $b * expm1($a / $b))", "self alpha=1"},
  {"selu",
    "$T(1.0507009873554804934) * ($a > $T(0) ? $a : $T(1.6732632423543772848) * "
    "expm1($a))"},
  {"hardtanh", "($a < $b ? $b : $a > $c ? $c : $a)", "self min_val=-1 max_val=1"},
  {"hardshrink", "($a >= -$b && $a <= $b ? $T(0) : $a)", "self lambd=0.5"},
  {"softshrink", "($a > $b ? $a - $b : $a < -$b ? $a + $b : $T(0) * $a)", "self lambd=0.5"},
  {"threshold", "($a <= $b ? $c : $a)", "self threshold value"},
  {"add", "$a + $c * $b", "self other alpha=1"},
  {"sub", "$a - $c * $b", "self other alpha=1"},
  {"rsub", "$b - $c * $a", "self other alpha=1"},
  {"mul", "$a * $b", pair},
  {"true_divide", "$a / $b", pair},
  {"maximum", "($a != $a ? $a : $b != $b ? $b : $a > $b ? $a : $b)", pair},
  {"minimum", "($a != $a ? $a : $b != $b ? $b : $a < $b ? $a : $b)", pair},
  {"fmax", "($a != $a ? $b : $b != $b ? $a : $a > $b ? $a : $b)", pair},
  {"fmin", "($a != $a ? $b : $b != $b ? $a : $a < $b ? $a : $b)", pair},
  {"atan2", "atan2($a, $b)", pair},
  {"hypot", "hypot($a, $b)", pair},
  {"copysign", "copysign($a, $b)", pair},
  {"xlogy", "($b != $b ? $b : $a == $T(0) ? $T(0) : $a * log($b))", pair},
  {"logaddexp", "($a > $b ? $a : $b) + log1p(exp($a > $b ? $b - $a : $a - $b))", pair},
  {"heaviside", "($a == $T(0) ? $b : $a > $T(0) ? $T(1) : $T(0))", "self values"},
  {"lerp", "$a + $c * ($b - $a)", "self end weight"},
  {"addcmul", "$a + $d * $b * $c", "self tensor1 tensor2 value=1"},
  {"addcdiv", "$a + $d * $b / $c", "self tensor1 tensor2 value=1"},
  {"where", "($a ? $b : $c)", "?condition self other"},
  {"masked_fill", "($b ? $c : $a)", "self ?mask value"},
  {"bitwise_and", "$a & $b", pair},
  {"bitwise_or", "$a | $b", pair},
  {"bitwise_xor", "$a ^ $b", pair},
  {"__and__", "$a & $b", pair},
  {"__or__", "$a | $b", pair},
  {"__xor__", "$a ^ $b", pair},
  {"bitwise_left_shift", "$a << $b", pair},
  {"bitwise_right_shift", "$a >> $b", pair},
  {"__lshift__", "$a << $b", pair},
  {"__rshift__", "$a >> $b", pair},
  {"eq", "$a == $b", pair, formula_type::common},
  {"ne", "$a != $b", pair, formula_type::common},
  {"lt", "$a < $b", pair, formula_type::common},
  {"le", "$a <= $b", pair, formula_type::common},
  {"gt", "$a > $b", pair, formula_type::common},
  {"ge", "$a >= $b", pair, formula_type::common},
  {"isnan", "$a != $a", "self", formula_type::common},
  {"isinf", "$a - $a != $a - $a && $a == $a", "self", formula_type::common},
  {"isfinite", "$a - $a == $a - $a", "self", formula_type::common},
  {"isposinf", "$a > $T(0) && $a - $a != $a - $a", "self", formula_type::common},
  {"isneginf", "$a < $T(0) && $a - $a != $a - $a", "self", formula_type::common},
  {"logical_not", "!$a", "self", formula_type::truth},
  {"logical_and", "$a && $b", pair, formula_type::truth},
  {"logical_or", "$a || $b", pair, formula_type::truth},
  {"logical_xor", "$a != $b", pair, formula_type::truth},
  // Copies: the conversion is that of the argument to the result's type.
  {"_to_copy", "$a"},
  {"clone", "$a"},
  {"contiguous", "$a"},
  {"lift_fresh_copy", "$a"},
  {"copy", "$b", "self src"},
};

const naive_formula& formula_of(const naive_call& call) {
  const std::string op = call.op();
  for (const naive_formula& one : formulas) {
    if (one.op == op)
      return one;
  }
  call.refuse("has no formula");
}

std::string by_formula(const naive_call& call, const naive_index& index) {
  return formula_text(formula_of(call), call, index);
}

bool is_floating(std::string_view type) {
  return type == "float" || type == "double";
}

/// floor, ceil, trunc and their kin, which leave integers as they are.
std::string whole(const naive_call& call, const naive_index& index) {
  const std::string type = call.type();
  const std::string x = call.argument(0, "self", index, type);
  const std::string op = call.op();
  if (!is_floating(type))
    return op == "frac" ? naive_literal(0, type) : x;
  if (op == "round") {
    if (call.integer(1, "decimals", 0) != 0)
      call.refuse("to decimals has no naive kernel");
    return fmt::format("rint({})", x);
  }
  if (op == "frac")
    return fmt::format("{0} - trunc({0})", x);
  return fmt::format("{}({})", op, x);
}

std::string bitwise_not(const naive_call& call, const naive_index& index) {
  const std::string type = call.type();
  return (type == "bool" ? "!" : "~") + call.argument(0, "self", index, type);
}

/// The quotient's integer part towards minus infinity, or towards zero.
std::string divided(const naive_call& call, const std::string& type, const std::string& a,
  const std::string& b, bool is_floor) {
  if (is_floating(type))
    return fmt::format("{}({} / {})", is_floor ? "floor" : "trunc", a, b);
  // By zero a CPU faults and a GPU gives anything: 0 here.
  const std::string quotient =
    call.w.let(type, fmt::format("{1} == 0 ? {2}(0) : {2}({0} / {1})", a, b, type));
  if (!is_floor)
    return quotient;
  return fmt::format(
    "{0} - {3}({1} != 0 && {0} * {1} != {2} && ({1} < 0) != ({2} < 0))", quotient, b, a, type);
}

std::string div(const naive_call& call, const naive_index& index) {
  const std::string type = call.type();
  const std::string a = call.w.let(type, call.argument(0, "self", index, type));
  const std::string b = call.w.let(type, call.argument(1, "other", index, type));
  const std::string mode = call.text(2, "rounding_mode");
  if (call.op() == "floor_divide" || mode == "floor")
    return divided(call, type, a, b, true);
  return mode == "trunc" ? divided(call, type, a, b, false) : fmt::format("{} / {}", a, b);
}

std::string remainder(const naive_call& call, const naive_index& index) {
  const std::string type = call.type();
  const std::string a = call.w.let(type, call.argument(0, "self", index, type));
  const std::string b = call.w.let(type, call.argument(1, "other", index, type));
  const std::string rest = call.w.let(type,
    is_floating(type) ? fmt::format("fmod({}, {})", a, b)
                      : fmt::format("{1} == 0 ? {2}(0) : {2}({0} % {1})", a, b, type));
  if (call.op() == "fmod")
    return rest;
  return fmt::format(
    "({0} != {2}(0) && ({0} < {2}(0)) != ({1} < {2}(0)) ? {0} + {1} : {0})", rest, b, type);
}

std::string power(const naive_call& call, const naive_index& index) {
  const std::string type = call.type();
  const std::string x = call.w.let(type, call.argument(0, "self", index, type));
  const graph_operand* exponent = call.find(1, "exponent");
  if (exponent == nullptr)
    call.refuse("lacks its exponent");
  const auto is = [&](double number) {
    if (exponent->varies)
      return false;
    return (exponent->kind == operand_kind::number && exponent->number == number)
      || (exponent->kind == operand_kind::integer
        && static_cast<double>(exponent->integer) == number);
  };
  if (is(2))
    return fmt::format("{0} * {0}", x);
  if (is(3))
    return fmt::format("{0} * {0} * {0}", x);
  if (is_floating(type)) {
    if (is(0.5))
      return fmt::format("sqrt({})", x);
    if (is(-0.5))
      return fmt::format("{}(1) / sqrt({})", type, x);
    if (is(-1))
      return fmt::format("{}(1) / {}", type, x);
    return fmt::format("pow({}, {})", x, call.argument(1, "exponent", index, type));
  }
  const std::string times = call.w.let("int64_t", call.argument(1, "exponent", index, "int64_t"));
  // A negative exponent: only 1 and -1 have an integer power.
  const std::string out = call.w.variable(type,
    fmt::format("{0} >= 0 || {1} == 1 ? {2}(1) : {1} == -1 ? {2}({0} % 2 == 0 ? 1 : -1) : {2}(0)",
      times, x, type));
  call.w.loop(times);
  call.w.line(fmt::format("{} *= {};", out, x));
  call.w.close();
  return out;
}

std::string clamp(const naive_call& call, const naive_index& index) {
  const std::string type = call.type();
  const std::string op = call.op();
  const std::string x = call.w.variable(type, call.argument(0, "self", index, type));
  const size_t high = op == "clamp_max" ? 1 : 2;
  if (op != "clamp_max" && call.has(1, "min")) {
    const std::string low = call.w.let(type, call.argument(1, "min", index, type));
    call.w.line(fmt::format("{0} = {0} < {1} || {1} != {1} ? {1} : {0};", x, low));
  }
  if (op != "clamp_min" && call.has(high, "max")) {
    const std::string top = call.w.let(type, call.argument(high, "max", index, type));
    call.w.line(fmt::format("{0} = {0} > {1} || {1} != {1} ? {1} : {0};", x, top));
  }
  return x;
}

std::string gelu(const naive_call& call, const naive_index& index) {
  const std::string type = call.type();
  const std::string x = call.w.let(type, call.argument(0, "self", index, type));
  if (call.text(1, "approximate") == "tanh")
    return fmt::format("{1}(0.5) * {0} * ({1}(1) + tanh({1}(0.79788456080286535588) * ({0} + "
                       "{1}(0.044715) * {0} * {0} * {0})))",
      x, type);
  return fmt::format("{1}(0.5) * {0} * ({1}(1) + erf({0} * {1}(0.70710678118654752440)))", x, type);
}

/// One slope for each channel, dimension 1, or one for all.
std::string prelu(const naive_call& call, const naive_index& index) {
  const std::string type = call.type();
  const std::string x = call.w.let(type, call.argument(0, "self", index, type));
  const int64_t weight = call.tensor(1);
  const auto& shape = call.value(weight).shape;
  naive_index at(shape.size(), "int64_t(0)");
  if (shape.size() == 1 && shape[0] != 1)
    at[0] = index.size() < 2 ? "int64_t(0)" : index[1];
  else if (shape.size() > 1)
    return fmt::format(
      "({0} > {2}(0) ? {0} : {0} * {1})", x, call.argument(1, "weight", index, type), type);
  return fmt::format("({0} > {2}(0) ? {0} : {0} * {1})", x, call.read(weight, at, type), type);
}

/// Without training every element is kept.
std::string dropout(const naive_call& call, const naive_index& index) {
  if (call.flag(2, "train", true))
    call.refuse("draws random numbers in training, which no kernel repeats");
  return call.output == 1 ? "true" : call.argument(0, "input", index, call.type());
}

std::string nan_to_num(const naive_call& call, const naive_index& index) {
  const std::string type = call.type();
  const std::string x = call.w.let(type, call.argument(0, "self", index, type));
  if (!is_floating(type))
    return x;
  const std::string dtype_name = call.result().dtype;
  const double largest = dtype_name == "float16" ? 65504.0
    : dtype_name == "bfloat16"                   ? 3.3895313892515355e38
    : dtype_name == "float64"                    ? 1.7976931348623157e308
                                                 : 3.4028234663852886e38;
  return fmt::format("({0} != {0} ? {1} : {0} > {4} ? {2} : {0} < -{4} ? {3} : {0})", x,
    call.number(1, "nan", type, 0), call.number(2, "posinf", type, largest),
    call.number(3, "neginf", type, -largest), naive_literal(largest, type));
}

std::string logit(const naive_call& call, const naive_index& index) {
  const std::string type = call.type();
  const std::string x = call.w.variable(type, call.argument(0, "self", index, type));
  if (call.has(1, "eps")) {
    const std::string eps = call.w.let(type, call.number(1, "eps", type, 0));
    call.w.line(fmt::format(
      "{0} = {0} < {1} ? {1} : {0} > {2}(1) - {1} ? {2}(1) - {1} : {0};", x, eps, type));
  }
  return fmt::format("log({0} / ({1}(1) - {0}))", x, type);
}

} // namespace

std::string formula_text(
  const naive_formula& formula, const naive_call& call, const naive_index& index) {
  const std::string result_type = call.type();
  size_t count = 1;
  for (char c : formula.arguments)
    count += c == ' ' ? 1 : 0;
  const std::string type = formula.type == formula_type::result ? result_type
    : formula.type == formula_type::truth                       ? "bool"
                                                                : call.common_type(0, count);
  std::vector<std::string> arguments;
  size_t begin = 0;
  for (size_t place = 0; place < count; ++place) {
    const size_t end = std::min(formula.arguments.find(' ', begin), formula.arguments.size());
    std::string_view word = formula.arguments.substr(begin, end - begin);
    begin = end + 1;
    const bool is_truth = word.starts_with('?');
    if (is_truth)
      word.remove_prefix(1);
    std::string fallback;
    if (const size_t equals = word.find('='); equals != std::string_view::npos) {
      fallback = naive_literal(std::atof(std::string{word.substr(equals + 1)}.c_str()), type);
      word = word.substr(0, equals);
    }
    const std::string argument_type = is_truth ? "bool" : type;
    arguments.push_back(
      call.w.let(argument_type, call.argument(place, word, index, argument_type, fallback)));
  }
  std::string text;
  for (size_t i = 0; i < formula.text.size(); ++i) {
    if (formula.text[i] != '$' || i + 1 == formula.text.size()) {
      text += formula.text[i];
      continue;
    }
    const char letter = formula.text[++i];
    text += letter == 'T' ? type : arguments.at(static_cast<size_t>(letter - 'a'));
  }
  return formula.type == formula_type::result
    ? text
    : naive_converted(fmt::format("({})", text), "bool", result_type);
}

void add_naive_pointwise(naive_operator_table& table) {
  for (const naive_formula& one : formulas)
    table[std::string{one.op}] = {by_formula};
  for (const char* op : {"floor", "ceil", "trunc", "round", "frac"})
    table[op] = {whole};
  for (const char* op : {"div", "floor_divide"})
    table[op] = {div};
  for (const char* op : {"remainder", "fmod"})
    table[op] = {remainder};
  for (const char* op : {"clamp", "clamp_min", "clamp_max"})
    table[op] = {clamp};
  table["bitwise_not"] = {bitwise_not};
  table["pow"] = {power};
  table["gelu"] = {gelu};
  table["prelu"] = {prelu};
  table["native_dropout"] = {dropout};
  table["nan_to_num"] = {nan_to_num};
  table["logit"] = {logit};
}

} // namespace gristmill
