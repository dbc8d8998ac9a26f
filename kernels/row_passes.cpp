#include "kernels/row_passes.hpp"

#include <algorithm>
#include <map>

namespace gristmill {

namespace {

const ir_node& node_at(const fused_kernel& kernel, int index) {
  return kernel.nodes[static_cast<size_t>(index)];
}

} // namespace

std::vector<online_pair> online_pairs(const fused_kernel& kernel) {
  std::vector<online_pair> pairs;
  const auto reached = reachable_nodes(kernel);
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    const ir_node& sum = kernel.nodes[i];
    if (!reached[i] || sum.op != ir_op::reduce || sum.reduction != reduction_kind::sum)
      continue;
    const ir_node& power = node_at(kernel, sum.args[0]);
    if (power.op != ir_op::exp)
      continue;
    const ir_node& shifted = node_at(kernel, power.args[0]);
    if (shifted.op != ir_op::sub)
      continue;
    const ir_node& top = node_at(kernel, shifted.args[1]);
    if (top.op == ir_op::reduce && top.reduction == reduction_kind::maximum
      && top.args[0] == shifted.args[0])
      pairs.push_back({shifted.args[1], static_cast<int>(i), shifted.args[0]});
  }
  return pairs;
}

std::vector<row_pass> passes_of(const fused_kernel& kernel, bool online) {
  std::map<int, online_pair> pair_of_sum;
  std::map<int, int> sum_of_maximum;
  if (online) {
    for (const online_pair& pair : online_pairs(kernel)) {
      // A maximum can be merged with one sum only.
      if (sum_of_maximum.try_emplace(pair.maximum, pair.sum).second)
        pair_of_sum[pair.sum] = pair;
    }
  }
  const auto reached = reachable_nodes(kernel);
  // Pass in which a node is known at the earliest: for a reduction the one after its walk.
  std::vector<size_t> known(kernel.nodes.size(), 0);
  std::vector<row_pass> passes;
  const auto pass_at = [&](size_t at) -> row_pass& {
    if (passes.size() <= at)
      passes.resize(at + 1);
    return passes[at];
  };
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    const ir_node& node = kernel.nodes[i];
    for (int arg : node.args) {
      if (arg >= 0)
        known[i] = std::max(known[i], known[static_cast<size_t>(arg)]);
    }
    if (node.op != ir_op::reduce || !reached[i])
      continue;
    const auto index = static_cast<int>(i);
    if (const auto pair = pair_of_sum.find(index); pair != pair_of_sum.end()) {
      const size_t walk = known[static_cast<size_t>(pair->second.maximum)] - 1;
      pass_at(walk).pairs.push_back(pair->second);
      known[i] = walk + 1;
      continue;
    }
    if (!sum_of_maximum.contains(index))
      pass_at(known[i]).reductions.push_back(index);
    ++known[i];
  }
  row_pass last;
  for (size_t i = 0; i < kernel.outputs.size(); ++i) {
    if (kernel.outputs[i].is_per_column)
      last.columns.push_back(static_cast<int>(i));
    else if (!kernel.outputs[i].is_per_row)
      last.outputs.push_back(static_cast<int>(i));
  }
  if (!last.outputs.empty() || !last.columns.empty())
    passes.push_back(std::move(last));
  return passes;
}

std::vector<int> roots_of(const fused_kernel& kernel, const row_pass& pass) {
  std::vector<int> roots;
  for (int reduction : pass.reductions)
    roots.push_back(node_at(kernel, reduction).args[0]);
  for (const online_pair& pair : pass.pairs)
    roots.push_back(pair.body);
  for (int output : pass.outputs)
    roots.push_back(kernel.outputs[static_cast<size_t>(output)].node);
  for (int output : pass.columns)
    roots.push_back(kernel.outputs[static_cast<size_t>(output)].node);
  return roots;
}

std::vector<int> reusable_nodes(const fused_kernel& kernel, const std::vector<row_pass>& passes) {
  const auto levels = levels_of(kernel);
  std::map<int, int> uses;
  for (const row_pass& pass : passes) {
    for (int node : needed_nodes(kernel, roots_of(kernel, pass))) {
      if (levels[static_cast<size_t>(node)] == ir_level::element
        && is_transcendental(node_at(kernel, node).op))
        ++uses[node];
    }
  }
  std::vector<int> nodes;
  for (const auto& [node, count] : uses) {
    if (count > 1)
      nodes.push_back(node);
  }
  return nodes;
}

std::vector<int> reads_per_load(const fused_kernel& kernel, const std::vector<row_pass>& passes) {
  std::vector<int> reads(kernel.loads.size(), 0);
  for (const row_pass& pass : passes) {
    for (int node : needed_nodes(kernel, roots_of(kernel, pass))) {
      const ir_node& what = node_at(kernel, node);
      if (what.op == ir_op::load && kernel.loads[static_cast<size_t>(what.load)].uses_last)
        ++reads[static_cast<size_t>(what.load)];
    }
  }
  return reads;
}

} // namespace gristmill
