#include "kernels/expression_writer.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <set>

namespace gristmill {

namespace {

struct helper {
  ir_op op;
  std::string_view text;
};

constexpr std::string_view fast_exp = "__expf";

/// x (1 + tanh(u)) / 2 is x / (1 + exp(-2 u)), which has no cancellation and a fast quotient. Its
/// few units in the last place vanish in an output of 16 bits.
constexpr std::string_view fast_gelu_tanh =
  R"(// The approximation of gelu by a hyperbolic tangent, written with an exponential.
__device__ __forceinline__ float gelu_tanh(float x) {
  const float doubled = 1.5957691f * (x + 0.044715f * x * x * x);
  return __fdividef(x, 1.0f + __expf(-doubled));
}
)";

/// `EXP` stands for the exponential that the point asks for.
constexpr helper helpers[] = {
  {ir_op::sigmoid, R"(__device__ __forceinline__ float sigmoid(float x) {
  return 1.0f / (1.0f + EXP(-x));
}
)"},
  {ir_op::silu, R"(__device__ __forceinline__ float silu(float x) {
  return x / (1.0f + EXP(-x));
}
)"},
  {ir_op::gelu, R"(// x times the normal distribution function.
__device__ __forceinline__ float gelu(float x) {
  return 0.5f * x * (1.0f + erff(x * 0.70710678f));
}
)"},
  {ir_op::gelu_tanh, R"(// The approximation of gelu by a hyperbolic tangent.
__device__ __forceinline__ float gelu_tanh(float x) {
  const float inner = 0.79788456f * (x + 0.044715f * x * x * x);
  return 0.5f * x * (1.0f + tanhf(inner));
}
)"},
  {ir_op::hardswish, R"(__device__ __forceinline__ float hardswish(float x) {
  return x * fminf(fmaxf(x + 3.0f, 0.0f), 6.0f) / 6.0f;
}
)"},
  {ir_op::round_bf16, R"(// The reference holds this value in bfloat16.
__device__ __forceinline__ float round_bf16(float x) {
  return __bfloat162float(__float2bfloat16_rn(x));
}
)"},
  {ir_op::round_fp16, R"(// The reference holds this value in float16.
__device__ __forceinline__ float round_fp16(float x) {
  return __half2float(__float2half_rn(x));
}
)"},
};

bool uses_operator(const fused_kernel& kernel, ir_op op) {
  const auto reached = reachable_nodes(kernel);
  for (size_t i = 0; i < reached.size(); ++i) {
    if (reached[i] && kernel.nodes[i].op == op)
      return true;
  }
  return false;
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

} // namespace

std::string float_literal(double number) {
  const auto rounded = static_cast<float>(number);
  if (std::isnan(rounded))
    return "NAN";
  if (std::isinf(rounded))
    return rounded > 0 ? "INFINITY" : "(-INFINITY)";
  std::string text = fmt::format("{:.9g}", rounded);
  // The shortest text that reads back equal keeps the source readable.
  for (int digits = 1; digits < 9; ++digits) {
    const std::string shorter = fmt::format("{:.{}g}", rounded, digits);
    if (std::strtof(shorter.c_str(), nullptr) == rounded) {
      text = shorter;
      break;
    }
  }
  if (text.find_first_of(".e") == std::string::npos)
    text += ".0";
  text += "f";
  return std::signbit(rounded) ? "(" + text + ")" : text;
}

std::string_view element_type(dtype type) {
  switch (type) {
  case dtype::bfloat16:
    return "__nv_bfloat16";
  case dtype::float16:
    return "__half";
  case dtype::boolean:
    return "bool";
  default:
    return "float";
  }
}

int element_bytes(dtype type) {
  switch (type) {
  case dtype::bfloat16:
  case dtype::float16:
    return 2;
  case dtype::boolean:
    return 1;
  default:
    return 4;
  }
}

expression_writer::expression_writer(
  const fused_kernel& kernel, std::vector<std::string> scalar_names, bool uses_fast_math)
  : kernel_(&kernel), levels_(levels_of(kernel)), scalars_(std::move(scalar_names)),
    fast_(uses_fast_math) {}

void expression_writer::define(int node, std::string text) {
  names_[node] = std::move(text);
}

std::string expression_writer::text_of(int node) const {
  if (const auto found = names_.find(node); found != names_.end())
    return found->second;
  const ir_node& what = kernel_->nodes[static_cast<size_t>(node)];
  if (what.op == ir_op::constant)
    return float_literal(what.number);
  assert(what.op == ir_op::scalar);
  return scalars_[static_cast<size_t>(what.scalar)];
}

std::vector<int> expression_writer::undefined_nodes(const std::vector<int>& roots) const {
  std::vector<bool> needed(kernel_->nodes.size(), false);
  for (int root : roots)
    needed[static_cast<size_t>(root)] = true;
  std::vector<int> list;
  for (size_t i = needed.size(); i-- > 0;) {
    const ir_node& node = kernel_->nodes[i];
    if (!needed[i] || is_defined(static_cast<int>(i)) || node.op == ir_op::constant
      || node.op == ir_op::scalar)
      continue;
    list.push_back(static_cast<int>(i));
    if (node.op == ir_op::reduce)
      continue;
    for (int arg : node.args) {
      if (arg >= 0)
        needed[static_cast<size_t>(arg)] = true;
    }
  }
  std::reverse(list.begin(), list.end());
  return list;
}

std::vector<int> expression_writer::undefined_leaves(const std::vector<int>& roots) const {
  std::vector<int> leaves;
  for (int node : undefined_nodes(roots)) {
    const ir_op op = kernel_->nodes[static_cast<size_t>(node)].op;
    if (op == ir_op::load || op == ir_op::reduce || op == ir_op::row_length || op == ir_op::given)
      leaves.push_back(node);
  }
  return leaves;
}

std::vector<std::string> expression_writer::statements(
  const std::vector<int>& roots, ir_level level) {
  std::vector<std::string> lines;
  for (int node : undefined_nodes(roots)) {
    const ir_node& what = kernel_->nodes[static_cast<size_t>(node)];
    if (levels_[static_cast<size_t>(node)] > level)
      continue;
    assert(what.op != ir_op::load && what.op != ir_op::reduce);
    const std::string name = fmt::format("v{}", node);
    lines.push_back(
      fmt::format("const {} {} = {};", what.is_bool ? "bool" : "float", name, operation(what)));
    names_[node] = name;
  }
  return lines;
}

std::vector<std::string> expression_writer::reciprocals(const std::vector<int>& roots) {
  std::vector<std::string> lines;
  for (int index : undefined_nodes(roots)) {
    const ir_node& node = kernel_->nodes[static_cast<size_t>(index)];
    if (node.op != ir_op::div)
      continue;
    const int divisor = node.args[1];
    const bool is_constant = kernel_->nodes[static_cast<size_t>(divisor)].op == ir_op::constant;
    if (is_constant || levels_[static_cast<size_t>(divisor)] == ir_level::element
      || reciprocals_.contains(divisor))
      continue;
    const std::string name = fmt::format("inv{}", divisor);
    lines.push_back(fmt::format("const float {} = 1.0f / {};", name, text_of(divisor)));
    reciprocals_[divisor] = name;
  }
  return lines;
}

std::string expression_writer::operation(const ir_node& node) const {
  const auto arg = [&](size_t i) { return text_of(node.args[i]); };
  const auto call = [&](std::string_view function) {
    return fmt::format("{}({})", function, arg(0));
  };
  const auto infix = [&](std::string_view sign) {
    return fmt::format("{} {} {}", arg(0), sign, arg(1));
  };
  switch (node.op) {
  case ir_op::neg:
    return "-" + arg(0);
  case ir_op::abs:
    return call("fabsf");
  case ir_op::exp:
    return call(fast_ ? fast_exp : "expf");
  case ir_op::exp2:
    return call("exp2f");
  case ir_op::expm1:
    return call("expm1f");
  case ir_op::log:
    return call("logf");
  case ir_op::log2:
    return call("log2f");
  case ir_op::log1p:
    return call("log1pf");
  case ir_op::sqrt:
    return call("sqrtf");
  case ir_op::rsqrt:
    return call("rsqrtf");
  case ir_op::reciprocal:
    return "1.0f / " + arg(0);
  case ir_op::tanh:
    return call("tanhf");
  case ir_op::relu:
    return fmt::format("fmaxf({}, 0.0f)", arg(0));
  case ir_op::erf:
    return call("erff");
  case ir_op::sin:
    return call("sinf");
  case ir_op::cos:
    return call("cosf");
  case ir_op::sigmoid:
  case ir_op::silu:
  case ir_op::gelu:
  case ir_op::gelu_tanh:
  case ir_op::hardswish:
  case ir_op::round_bf16:
  case ir_op::round_fp16:
    return call(to_string(node.op));
  case ir_op::as_number:
    return fmt::format("{} ? 1.0f : 0.0f", arg(0));
  case ir_op::logical_not:
    return "!" + arg(0);
  case ir_op::add:
    return infix("+");
  case ir_op::sub:
    return infix("-");
  case ir_op::mul:
    return infix("*");
  case ir_op::div:
    if (const auto found = reciprocals_.find(node.args[1]); found != reciprocals_.end())
      return fmt::format("{} * {}", arg(0), found->second);
    return fast_ ? fmt::format("__fdividef({}, {})", arg(0), arg(1)) : infix("/");
  case ir_op::pow:
    return fmt::format("powf({}, {})", arg(0), arg(1));
  case ir_op::minimum:
    return fmt::format("fminf({}, {})", arg(0), arg(1));
  case ir_op::maximum:
    return fmt::format("fmaxf({}, {})", arg(0), arg(1));
  case ir_op::less:
    return infix("<");
  case ir_op::less_equal:
    return infix("<=");
  case ir_op::greater:
    return infix(">");
  case ir_op::greater_equal:
    return infix(">=");
  case ir_op::equal:
    return infix("==");
  case ir_op::not_equal:
    return infix("!=");
  case ir_op::logical_and:
    return infix("&&");
  case ir_op::logical_or:
    return infix("||");
  case ir_op::where:
    return fmt::format("{} ? {} : {}", arg(0), arg(1), arg(2));
  case ir_op::load:
  case ir_op::constant:
  case ir_op::scalar:
  case ir_op::row_length:
  case ir_op::reduce:
  case ir_op::given:
    break;
  }
  assert(false && "leaves are defined by the template");
  return {};
}

std::string helper_functions(const fused_kernel& kernel, bool uses_fast_math) {
  std::string text;
  for (const helper& one : helpers) {
    if (!uses_operator(kernel, one.op))
      continue;
    const auto written = uses_fast_math && one.op == ir_op::gelu_tanh ? fast_gelu_tanh : one.text;
    text += replaced(std::string{written}, "EXP", uses_fast_math ? fast_exp : "expf") + "\n";
  }
  return text;
}

std::string include_lines(const fused_kernel& kernel) {
  std::set<dtype> types;
  for (const auto& load : kernel.loads)
    types.insert(load.type);
  for (const auto& output : kernel.outputs)
    types.insert(output.type);
  std::string text;
  if (types.contains(dtype::bfloat16) || uses_operator(kernel, ir_op::round_bf16))
    text += "#include <cuda_bf16.h>\n";
  if (types.contains(dtype::float16) || uses_operator(kernel, ir_op::round_fp16))
    text += "#include <cuda_fp16.h>\n";
  return text + "#include <cstdint>\n#include <math.h>\n";
}

} // namespace gristmill
