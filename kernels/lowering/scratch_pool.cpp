#include "kernels/lowering/scratch_pool.hpp"

#include "protocol/plan.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace gristmill {

namespace {

/// A plan has 64; stages bring some of their own.
constexpr size_t slots_max = 40;

struct lifetime {
  int64_t value = 0;
  dtype type = dtype::float32;
  std::vector<symbolic_size> sizes;
  size_t written = 0;
  size_t last_read = 0;
};

std::vector<lifetime> lifetimes_of(const program_graph& program, const program_code& code) {
  std::vector<lifetime> out;
  std::map<int64_t, size_t> known;
  for (size_t s = 0; s < code.stages.size(); ++s) {
    const sub_problem& stage = *code.stages[s].stage;
    for (const stage_tensor& tensor : stage.inputs) {
      if (const auto found = known.find(tensor.base); found != known.end())
        out[found->second].last_read = s;
    }
    for (size_t i = 0; i < stage.outputs.size(); ++i) {
      const stage_tensor& tensor = stage.outputs[i];
      if (program.output_of(tensor.base))
        continue;
      known[tensor.base] = out.size();
      out.push_back({tensor.base, stage.target.def.outputs[i].type, tensor.sizes, s, s});
    }
  }
  return out;
}

/// Bytes at a workload; a size that has no value there counts nothing, and is refused elsewhere.
uint64_t bytes_at(const lifetime& value, const axis_values& axes) {
  uint64_t bits = element_bits(value.type);
  for (const auto& size : value.sizes) {
    const auto number = size.value_at(axes);
    if (!number || *number < 0
      || __builtin_mul_overflow(bits, static_cast<uint64_t>(*number), &bits))
      return 0;
  }
  return bits / 8;
}

bool fits_limits(const program_graph& program, const std::vector<lifetime>& values) {
  if (values.size() > slots_max)
    return false;
  const problem& target = program.target();
  for (const workload& work : target.workloads) {
    const auto axes = resolve_axes(target.def, work.axes);
    if (!axes)
      continue;
    uint64_t total = 0;
    for (const auto& value : values)
      total += bytes_at(value, *axes);
    uint64_t problem_bytes = 0;
    for (const auto* list : {&target.def.inputs, &target.def.outputs}) {
      for (const auto& spec : *list) {
        const auto shape = resolve_shape(spec, *axes);
        const auto bytes = shape ? storage_bytes(spec.type, *shape) : result<uint64_t>{0};
        problem_bytes += spec.is_scalar || !bytes ? 0 : *bytes;
      }
    }
    if (total > std::max(plan_limits::scratch_floor, problem_bytes * plan_limits::scratch_factor))
      return false;
  }
  return true;
}

} // namespace

scratch_layout lay_out_scratch(const program_graph& program, const program_code& code) {
  const auto values = lifetimes_of(program, code);
  const bool has_own = fits_limits(program, values);
  scratch_layout out;
  std::vector<size_t> busy_until;
  for (const lifetime& value : values) {
    size_t chosen = out.slots.size();
    for (size_t i = 0; i < out.slots.size() && !has_own; ++i) {
      if (out.slots[i].type != value.type || busy_until[i] >= value.written)
        continue;
      // One that held the same shape is as large as it must be.
      const auto& shapes = out.slots[i].shapes;
      const bool is_alike = std::find(shapes.begin(), shapes.end(), value.sizes) != shapes.end();
      if (is_alike || chosen == out.slots.size())
        chosen = i;
      if (is_alike)
        break;
    }
    if (chosen == out.slots.size()) {
      out.slots.push_back({value.type, {}});
      busy_until.push_back(0);
    }
    auto& shapes = out.slots[chosen].shapes;
    if (std::find(shapes.begin(), shapes.end(), value.sizes) == shapes.end())
      shapes.push_back(value.sizes);
    busy_until[chosen] = value.last_read;
    out.slot_of[value.value] = chosen;
  }
  return out;
}

} // namespace gristmill
