#include "kernels/lowering/stage_names.hpp"

#include "kernels/plan_text.hpp"
#include "tensors/dtype.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace gristmill {

namespace {

constexpr std::array<std::string_view, 5> device_names{
  "sm_count", "smem_per_block", "smem_per_sm", "l2_bytes", "arch"};

} // namespace

const stage_tensor* stage_names::tensor(const expression_name& name) const {
  const auto in = [&](const std::vector<stage_tensor>& list) -> const stage_tensor* {
    const auto found = std::find_if(
      list.begin(), list.end(), [&](const stage_tensor& one) { return one.name == name.name; });
    return found == list.end() ? nullptr : &*found;
  };
  if (name.kind == "in")
    return in(stage_.inputs);
  if (name.kind == "out")
    return in(stage_.outputs);
  if (!name.kind.empty())
    return nullptr;
  const stage_tensor* found = in(stage_.inputs);
  return found != nullptr ? found : in(stage_.outputs);
}

bool stage_names::is_scalar(const expression_name& name) const {
  return std::any_of(stage_.target.def.inputs.begin(), stage_.target.def.inputs.end(),
    [&](const tensor_spec& spec) { return spec.is_scalar && spec.name == name.name; });
}

std::optional<std::string> stage_names::buffer(const expression_name& name) const {
  if (name.kind.empty() && values_.contains(name.name))
    return std::nullopt;
  if (const stage_tensor* found = tensor(name))
    return buffers_.at(found->base).text;
  if (name.kind == "scratch" || name.kind.empty()) {
    if (const auto found = scratch_.find(name.name); found != scratch_.end())
      return "scratch." + found->second;
  }
  return std::nullopt;
}

result<std::string> stage_names::name(const expression_name& from) const {
  if (from.kind.empty()) {
    if (const auto found = values_.find(from.name); found != values_.end())
      return found->second;
    if (std::find(device_names.begin(), device_names.end(), from.name) != device_names.end())
      return from.name;
  }
  if (from.kind == "axis" || from.kind.empty()) {
    for (const auto& [axis_name, size] : stage_.sizes) {
      if (axis_name == from.name)
        return size_text_(size);
    }
    const auto& axes = stage_.target.def.axes;
    if (std::any_of(
          axes.begin(), axes.end(), [&](const axis& one) { return one.name == from.name; }))
      return qualified_name("axis", from.name);
  }
  if ((from.kind == "in" || from.kind.empty()) && is_scalar(from))
    return qualified_name("in", from.name);
  return fail(errc::unsupported,
    fmt::format("the plan of a stage names {}, which its problem does not have", name_text(from)));
}

result<std::string> stage_names::call(std::string_view function, const expression_name& subject,
  std::optional<int64_t> index, const std::string& index_text) const {
  if (function == "occupancy") {
    const auto found = steps_.find(subject.name);
    if (found == steps_.end())
      return fail(errc::unsupported,
        fmt::format("the plan of a stage takes the occupancy of the step {} before it is there",
          subject.name));
    return fmt::format("occupancy({})", found->second);
  }
  const auto where = buffer(subject);
  if (!where)
    return fail(errc::unsupported,
      fmt::format("the plan of a stage takes {} of {}, which is no tensor of its problem", function,
        name_text(subject)));
  const stage_tensor* of = tensor(subject);
  if (of == nullptr || function == "ctype")
    return index_text.empty() ? fmt::format("{}({})", function, *where)
                              : fmt::format("{}({}, {})", function, *where, index_text);
  if (function == "dim") {
    const auto rank = static_cast<int64_t>(of->sizes.size());
    if (!index || *index < -rank || *index >= rank)
      return fail(errc::unsupported,
        fmt::format("the plan of a stage takes dim({}, {}); the tensor has {} dimensions",
          name_text(subject), index_text, rank));
    return size_text_(of->sizes[static_cast<size_t>(*index < 0 ? *index + rank : *index)]);
  }
  symbolic_size elements = symbolic_size::number(1);
  for (const auto& size : of->sizes)
    elements = elements * size;
  if (function == "numel")
    return size_text_(elements);
  const tensor_spec* spec = nullptr;
  for (const auto* list : {&stage_.target.def.inputs, &stage_.target.def.outputs}) {
    for (const auto& one : *list) {
      if (one.name == of->name)
        spec = &one;
    }
  }
  const auto bits = static_cast<int64_t>(element_bits(spec->type));
  return size_text_((elements * symbolic_size::number(bits)).quotient(8));
}

} // namespace gristmill
