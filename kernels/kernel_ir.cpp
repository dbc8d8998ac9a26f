#include "kernels/kernel_ir.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace gristmill {

namespace {

bool gives_bool(ir_op op) {
  switch (op) {
  case ir_op::less:
  case ir_op::less_equal:
  case ir_op::greater:
  case ir_op::greater_equal:
  case ir_op::equal:
  case ir_op::not_equal:
  case ir_op::logical_and:
  case ir_op::logical_or:
  case ir_op::logical_not:
    return true;
  default:
    return false;
  }
}

uint64_t cost(ir_op op) {
  switch (op) {
  case ir_op::load:
  case ir_op::constant:
  case ir_op::scalar:
  case ir_op::row_length:
  case ir_op::given:
  case ir_op::round_bf16:
  case ir_op::round_fp16:
  case ir_op::as_number:
  case ir_op::logical_not:
  case ir_op::logical_and:
  case ir_op::logical_or:
    return 0;
  case ir_op::div:
  case ir_op::sqrt:
  case ir_op::rsqrt:
  case ir_op::reciprocal:
    return 4;
  case ir_op::exp:
  case ir_op::exp2:
  case ir_op::expm1:
  case ir_op::log:
  case ir_op::log2:
  case ir_op::log1p:
  case ir_op::tanh:
  case ir_op::erf:
  case ir_op::sin:
  case ir_op::cos:
  case ir_op::pow:
    return 8;
  // An exponential, an addition and a division, and what stands around them.
  case ir_op::sigmoid:
  case ir_op::silu:
  case ir_op::gelu:
  case ir_op::gelu_tanh:
    return 13;
  default:
    return 1;
  }
}

} // namespace

bool is_transcendental(ir_op op) {
  return cost(op) >= 8;
}

int ir_builder::add(const ir_node& node) {
  const key id{node.op, node.args, std::bit_cast<uint64_t>(node.number), node.load, node.scalar,
    node.reduction};
  const auto [found, is_new] = known_.try_emplace(id, static_cast<int>(kernel_.nodes.size()));
  if (is_new)
    kernel_.nodes.push_back(node);
  return found->second;
}

int ir_builder::constant(double number) {
  return add({.op = ir_op::constant, .number = number});
}

int ir_builder::scalar(int input) {
  return add({.op = ir_op::scalar, .scalar = input});
}

int ir_builder::row_length() {
  return add({.op = ir_op::row_length});
}

int ir_builder::given() {
  return add({.op = ir_op::given});
}

int ir_builder::load(ir_load what) {
  const auto found = std::find_if(kernel_.loads.begin(), kernel_.loads.end(),
    [&](const ir_load& known) { return known.input == what.input && known.index == what.index; });
  const auto index = static_cast<int>(found - kernel_.loads.begin());
  const bool is_bool = what.type == dtype::boolean;
  if (found == kernel_.loads.end())
    kernel_.loads.push_back(std::move(what));
  return add({.op = ir_op::load, .load = index, .is_bool = is_bool});
}

void ir_builder::split_product(int node, const std::vector<ir_level>& levels,
  std::vector<int>& changing, std::vector<int>& fixed) const {
  const ir_node& what = kernel_.nodes[static_cast<size_t>(node)];
  if (levels[static_cast<size_t>(node)] != ir_level::element) {
    fixed.push_back(node);
  } else if (what.op == ir_op::mul) {
    split_product(what.args[0], levels, changing, fixed);
    split_product(what.args[1], levels, changing, fixed);
  } else {
    changing.push_back(node);
  }
}

int ir_builder::reduce(reduction_kind kind, int body) {
  std::vector<int> changing;
  std::vector<int> fixed;
  if (takes_factors_out_ && kind == reduction_kind::sum)
    split_product(body, levels_of(kernel_), changing, fixed);
  if (fixed.empty() || changing.empty())
    return add({.op = ir_op::reduce, .args = {body, -1, -1}, .reduction = kind});
  const auto product = [&](const std::vector<int>& factors) {
    int all = factors.front();
    for (size_t i = 1; i < factors.size(); ++i)
      all = apply(ir_op::mul, all, factors[i]);
    return all;
  };
  const int sum =
    add({.op = ir_op::reduce, .args = {product(changing), -1, -1}, .reduction = kind});
  return apply(ir_op::mul, sum, product(fixed));
}

int ir_builder::apply(ir_op op, int a, int b, int c) {
  const auto node_of = [&](int i) { return kernel_.nodes[static_cast<size_t>(i)]; };
  const ir_node first = node_of(a);
  if (op == ir_op::round_bf16 || op == ir_op::round_fp16) {
    const dtype held = op == ir_op::round_bf16 ? dtype::bfloat16 : dtype::float16;
    const bool is_rounded = first.op == op
      || (first.op == ir_op::load && kernel_.loads[static_cast<size_t>(first.load)].type == held);
    // Truth values and small constants such as 0 and 1 are exact in every float type.
    const bool is_exact = first.op == ir_op::as_number
      || (first.op == ir_op::constant
        && (first.number == 0 || std::abs(first.number) == 1 || std::isinf(first.number)));
    if (is_rounded || is_exact)
      return a;
  }
  if (op == ir_op::as_number && !first.is_bool)
    return a;
  const bool is_bool =
    gives_bool(op) || (op == ir_op::where && node_of(b).is_bool && node_of(c).is_bool);
  return add({.op = op, .args = {a, b, c}, .is_bool = is_bool});
}

std::vector<ir_level> levels_of(const fused_kernel& kernel) {
  std::vector<ir_level> levels;
  for (const ir_node& node : kernel.nodes) {
    ir_level level = ir_level::uniform;
    if (node.op == ir_op::load) {
      const ir_load& load = kernel.loads[static_cast<size_t>(node.load)];
      level = load.uses_last ? ir_level::element
        : load.uses_leading  ? ir_level::row
                             : ir_level::uniform;
    } else if (node.op == ir_op::reduce) {
      level = ir_level::row;
    } else if (node.op == ir_op::given) {
      level = ir_level::element;
    } else {
      for (int arg : node.args) {
        if (arg >= 0)
          level = std::max(level, levels[static_cast<size_t>(arg)]);
      }
    }
    levels.push_back(level);
  }
  return levels;
}

std::vector<int> needed_nodes(const fused_kernel& kernel, const std::vector<int>& roots) {
  std::vector<bool> needed(kernel.nodes.size(), false);
  for (int root : roots)
    needed[static_cast<size_t>(root)] = true;
  // Arguments stand before their users, so one walk from the back finds everything.
  for (size_t i = kernel.nodes.size(); i-- > 0;) {
    if (!needed[i] || kernel.nodes[i].op == ir_op::reduce)
      continue;
    for (int arg : kernel.nodes[i].args) {
      if (arg >= 0)
        needed[static_cast<size_t>(arg)] = true;
    }
  }
  std::vector<int> list;
  for (size_t i = 0; i < needed.size(); ++i) {
    if (needed[i])
      list.push_back(static_cast<int>(i));
  }
  return list;
}

std::vector<bool> reachable_nodes(const fused_kernel& kernel) {
  std::vector<bool> reached(kernel.nodes.size(), false);
  for (const ir_output& output : kernel.outputs)
    reached[static_cast<size_t>(output.node)] = true;
  for (size_t i = reached.size(); i-- > 0;) {
    if (!reached[i])
      continue;
    for (int arg : kernel.nodes[i].args) {
      if (arg >= 0)
        reached[static_cast<size_t>(arg)] = true;
    }
  }
  return reached;
}

uint64_t flops_per_element(const fused_kernel& kernel) {
  const auto levels = levels_of(kernel);
  const auto reached = reachable_nodes(kernel);
  uint64_t flops = 0;
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    const ir_node& node = kernel.nodes[i];
    if (!reached[i])
      continue;
    if (node.op == ir_op::reduce)
      flops += 1;
    else if (levels[i] == ir_level::element || kernel.family == template_family::elementwise)
      flops += cost(node.op);
  }
  return flops;
}

std::string to_string(ir_op op) {
  switch (op) {
  case ir_op::load:
    return "load";
  case ir_op::constant:
    return "constant";
  case ir_op::scalar:
    return "scalar";
  case ir_op::row_length:
    return "row_length";
  case ir_op::reduce:
    return "reduce";
  case ir_op::given:
    return "given";
  case ir_op::neg:
    return "neg";
  case ir_op::abs:
    return "abs";
  case ir_op::exp:
    return "exp";
  case ir_op::exp2:
    return "exp2";
  case ir_op::expm1:
    return "expm1";
  case ir_op::log:
    return "log";
  case ir_op::log2:
    return "log2";
  case ir_op::log1p:
    return "log1p";
  case ir_op::sqrt:
    return "sqrt";
  case ir_op::rsqrt:
    return "rsqrt";
  case ir_op::reciprocal:
    return "reciprocal";
  case ir_op::sigmoid:
    return "sigmoid";
  case ir_op::silu:
    return "silu";
  case ir_op::tanh:
    return "tanh";
  case ir_op::gelu:
    return "gelu";
  case ir_op::gelu_tanh:
    return "gelu_tanh";
  case ir_op::relu:
    return "relu";
  case ir_op::hardswish:
    return "hardswish";
  case ir_op::erf:
    return "erf";
  case ir_op::sin:
    return "sin";
  case ir_op::cos:
    return "cos";
  case ir_op::round_bf16:
    return "round_bf16";
  case ir_op::round_fp16:
    return "round_fp16";
  case ir_op::as_number:
    return "as_number";
  case ir_op::logical_not:
    return "logical_not";
  case ir_op::add:
    return "add";
  case ir_op::sub:
    return "sub";
  case ir_op::mul:
    return "mul";
  case ir_op::div:
    return "div";
  case ir_op::pow:
    return "pow";
  case ir_op::minimum:
    return "minimum";
  case ir_op::maximum:
    return "maximum";
  case ir_op::less:
    return "less";
  case ir_op::less_equal:
    return "less_equal";
  case ir_op::greater:
    return "greater";
  case ir_op::greater_equal:
    return "greater_equal";
  case ir_op::equal:
    return "equal";
  case ir_op::not_equal:
    return "not_equal";
  case ir_op::logical_and:
    return "logical_and";
  case ir_op::logical_or:
    return "logical_or";
  case ir_op::where:
    return "where";
  }
  return "unknown";
}

} // namespace gristmill
