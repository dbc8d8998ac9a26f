#include "kernels/work_count.hpp"

#include "kernels/fusion.hpp"
#include "kernels/graph_work.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

namespace gristmill {

namespace {

/// Sizes of the iteration space. Empty when no tensor of the definition has them all.
result<std::vector<int64_t>> space_shape(
  const fused_kernel& kernel, const definition& def, const axis_values& axes) {
  for (const ir_output& output : kernel.outputs) {
    if (!output.is_per_row)
      return resolve_shape(def.outputs[static_cast<size_t>(output.output)], axes);
  }
  for (const ir_load& load : kernel.loads) {
    bool is_whole = load.index.size() == kernel.space.size();
    for (size_t i = 0; is_whole && i < load.index.size(); ++i)
      is_whole = load.is_full[i] && load.index[i].dim == static_cast<int>(i);
    if (is_whole)
      return resolve_shape(def.inputs[static_cast<size_t>(load.input)], axes);
  }
  return std::vector<int64_t>{};
}

/// Elements of an input that a fused kernel reads, at most.
uint64_t elements_read(
  const fused_kernel& kernel, size_t input, const std::vector<int64_t>& space, uint64_t all) {
  if (space.empty())
    return all;
  uint64_t sum = 0;
  for (const ir_load& load : kernel.loads) {
    if (load.input != static_cast<int>(input))
      continue;
    uint64_t part = 1;
    for (const index_term& term : load.index) {
      const auto size =
        term.dim >= 0 ? static_cast<uint64_t>(space[static_cast<size_t>(term.dim)]) : 1;
      if (__builtin_mul_overflow(part, size, &part))
        return all;
    }
    if (__builtin_add_overflow(sum, part, &sum))
      return all;
  }
  return std::min(sum, all);
}

result<uint64_t> elements_of(const tensor_spec& spec, const axis_values& axes) {
  const auto shape = resolve_shape(spec, axes);
  if (!shape)
    return pass(shape);
  return element_count(*shape);
}

} // namespace

result<work_count> count_work(
  const definition& def, const op_graph* graph, const axis_values& resolved_axes) {
  work_count work;
  work.method =
    graph != nullptr ? "inputs that are read and outputs once" : "inputs and outputs once";
  graph_work traced;
  if (graph != nullptr) {
    auto counted = count_graph(*graph, def, resolved_axes);
    if (!counted)
      return pass(counted);
    traced = std::move(*counted);
    work.macs = traced.macs;
  }
  result<fused_kernel> kernel = fail(errc::unsupported, "no graph");
  if (graph != nullptr)
    kernel = fuse(*graph, def);
  std::vector<int64_t> space;
  if (kernel) {
    auto shape = space_shape(*kernel, def, resolved_axes);
    if (!shape)
      return pass(shape);
    space = std::move(*shape);
  }
  const auto add = [&](const tensor_spec& spec, uint64_t elements) -> result<void> {
    // element_count stays below 2^62, and an element has 64 bits at most.
    const uint64_t bits = element_bits(spec.type);
    const uint64_t bytes = elements / 8 * bits + (elements % 8 * bits + 7) / 8;
    if (__builtin_add_overflow(work.bytes, bytes, &work.bytes))
      return fail(
        errc::invalid_input, fmt::format("{}: more than 2^64 bytes of tensors", spec.name));
    return {};
  };
  for (size_t i = 0; i < def.inputs.size(); ++i) {
    const tensor_spec& spec = def.inputs[i];
    const auto read = traced.elements_read.find(spec.name);
    if (spec.is_scalar || (graph != nullptr && read == traced.elements_read.end()))
      continue;
    auto elements = elements_of(spec, resolved_axes);
    if (!elements)
      return pass(elements);
    if (graph != nullptr)
      *elements = std::min(*elements, read->second);
    if (kernel)
      *elements = elements_read(*kernel, i, space, *elements);
    if (auto added = add(spec, *elements); !added)
      return pass(added);
  }
  for (const auto& spec : def.outputs) {
    const auto elements = elements_of(spec, resolved_axes);
    if (!elements)
      return pass(elements);
    if (auto added = add(spec, *elements); !added)
      return pass(added);
  }
  if (traced.mac_nodes > 0)
    work.method += fmt::format(", multiply-adds of {} operators from the graph", traced.mac_nodes);
  if (!traced.uncounted.empty())
    work.method += fmt::format("; not counted: {}", fmt::join(traced.uncounted, ", "));
  if (!kernel)
    return work;
  const auto elements = element_count(space);
  if (!elements)
    return pass(elements);
  if (__builtin_mul_overflow(*elements, flops_per_element(*kernel), &work.flops))
    return fail(errc::invalid_input, "more than 2^64 operations");
  work.method += ", operations from the graph";
  return work;
}

} // namespace gristmill
