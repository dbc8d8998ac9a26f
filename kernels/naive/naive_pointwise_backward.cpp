#include "kernels/naive/naive_formula.hpp"
#include "kernels/naive/naive_operators.hpp"

#include <fmt/format.h>

namespace gristmill {

namespace {

constexpr naive_formula formulas[] = {
  {"threshold_backward", "($b <= $c ? $T(0) : $a)", "grad_output self threshold"},
  {"sigmoid_backward", "$a * ($T(1) - $b) * $b", "grad_output output"},
  {"tanh_backward", "$a * ($T(1) - $b * $b)", "grad_output output"},
  {"silu_backward", "$a / ($T(1) + exp(-$b)) * ($T(1) + $b * ($T(1) - $T(1) / ($T(1) + exp(-$b))))",
    "grad_output self"},
  {"leaky_relu_backward", "($b > $T(0) ? $a : $a * $c)", "grad_output self negative_slope=0.01"},
  // The fifth argument says whether the sixth is the result rather than the input.
  {"elu_backward",
    "($f > $T(0) ? $a * $c : $e != $T(0) ? $a * $d * ($f + $b * $c) : $a * $d * $b * $c * "
    "exp($f * $d))",
    "grad_output alpha scale input_scale is_result self_or_result"},
  {"hardtanh_backward", "($b <= $c || $b >= $d ? $T(0) : $a)",
    "grad_output self min_val=-1 max_val=1"},
  {"hardswish_backward", "($b < $T(-3) ? $T(0) : $b <= $T(3) ? $a * ($b / $T(3) + $T(0.5)) : $a)",
    "grad_output self"},
  {"hardsigmoid_backward", "($b > $T(-3) && $b < $T(3) ? $a / $T(6) : $T(0))", "grad_output self"},
  {"softplus_backward", "($b * $c > $d ? $a : $a / ($T(1) + exp(-$b * $c)))",
    "grad_output self beta=1 threshold=20"},
  {"mish_backward",
    "$a * (tanh(log1p(exp($b))) + $b / ($T(1) + exp(-$b)) * ($T(1) - tanh(log1p(exp($b))) * "
    "tanh(log1p(exp($b)))))",
    "grad_output self"},
  {"log_sigmoid_backward", "$a / ($T(1) + exp($b))", "grad_output self"},
  {"hardshrink_backward", "($b >= -$c && $b <= $c ? $T(0) : $a)", "grad_out self lambd=0.5"},
  {"softshrink_backward", "($b >= -$c && $b <= $c ? $T(0) : $a)", "grad_output self lambd=0.5"},
  {"native_dropout_backward", "($b ? $a * $c : $T(0))", "grad_output ?mask scale"},
};

std::string by_formula(const naive_call& call, const naive_index& index) {
  const std::string op = call.op();
  for (const naive_formula& one : formulas) {
    if (one.op == op)
      return formula_text(one, call, index);
  }
  call.refuse("has no formula");
}

std::string gelu_backward(const naive_call& call, const naive_index& index) {
  const std::string type = call.type();
  const std::string grad = call.w.let(type, call.argument(0, "grad_output", index, type));
  const std::string x = call.w.let(type, call.argument(1, "self", index, type));
  if (call.text(2, "approximate") == "tanh") {
    const std::string inner = call.w.let(type,
      fmt::format(
        "{1}(0.79788456080286535588) * ({0} + {1}(0.044715) * {0} * {0} * {0})", x, type));
    const std::string t = call.w.let(type, fmt::format("tanh({})", inner));
    return fmt::format("{0} * ({3}(0.5) * ({3}(1) + {2}) + {3}(0.5) * {1} * ({3}(1) - {2} * {2}) * "
                       "{3}(0.79788456080286535588) * ({3}(1) + {3}(0.134145) * {1} * {1}))",
      grad, x, t, type);
  }
  return fmt::format("{0} * ({2}(0.5) * ({2}(1) + erf({1} * {2}(0.70710678118654752440))) + {1} * "
                     "{2}(0.39894228040143267794) * exp({2}(-0.5) * {1} * {1}))",
    grad, x, type);
}

} // namespace

void add_naive_pointwise_backward(naive_operator_table& table) {
  for (const naive_formula& one : formulas)
    table[std::string{one.op}] = {by_formula};
  table["gelu_backward"] = {gelu_backward};
}

} // namespace gristmill
