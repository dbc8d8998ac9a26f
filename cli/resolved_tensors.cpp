#include "cli/resolved_tensors.hpp"

#include <fmt/format.h>
#include <limits>

namespace gristmill {

namespace {

uint64_t saturated_sum(uint64_t a, uint64_t b) {
  return a > std::numeric_limits<uint64_t>::max() - b ? std::numeric_limits<uint64_t>::max()
                                                      : a + b;
}

result<resolved_tensor> resolve_one(
  const tensor_spec& spec, const char* part, const axis_values& axes) {
  resolved_tensor out;
  out.spec = &spec;
  out.field = fmt::format("{}.{}", part, spec.name);
  auto shape = resolve_shape(spec, axes);
  if (!shape)
    return fail(shape.error().code, fmt::format("{}.{}", part, shape.error().what));
  out.shape = std::move(*shape);
  if (spec.is_scalar)
    return out;
  if (const auto bytes = storage_bytes(spec.type, out.shape))
    out.bytes = *bytes;
  else
    out.bytes_problem = bytes.error().what;
  return out;
}

} // namespace

result<resolved_tensors> resolve_tensors(const definition& def, const workload& work) {
  resolved_tensors out;
  auto axes = resolve_axes(def, work.axes);
  if (!axes)
    return pass(axes);
  out.axes = std::move(*axes);
  for (const auto& spec : def.inputs) {
    auto one = resolve_one(spec, "inputs", out.axes);
    if (!one)
      return pass(one);
    if (const auto* source = work.find_input(spec.name))
      one->source = *source;
    one->source.name = spec.name;
    if (one->source.kind == input_kind::random)
      one->drawn =
        choose_distribution(spec.name, spec.description, spec.type, one->shape, def.op_type);
    out.input_bytes = saturated_sum(out.input_bytes, one->bytes);
    out.inputs.push_back(std::move(*one));
  }
  for (const auto& spec : def.outputs) {
    auto one = resolve_one(spec, "outputs", out.axes);
    if (!one)
      return pass(one);
    out.output_bytes = saturated_sum(out.output_bytes, one->bytes);
    out.outputs.push_back(std::move(*one));
  }
  return out;
}

std::string_view kind_name(input_kind kind) {
  switch (kind) { // no default: the compiler reports a missing case
  case input_kind::random:
    return "random";
  case input_kind::scalar:
    return "scalar";
  case input_kind::safetensors:
    return "safetensors";
  case input_kind::custom:
    return "custom";
  }
  return "?";
}

std::string distribution_text(const input_distribution& drawn) {
  switch (drawn.kind) { // no default: the compiler reports a missing case
  case distribution::normal:
    return "standard normal";
  case distribution::uniform_int:
    return fmt::format("uniform integers {}..{}", drawn.lo, drawn.hi);
  case distribution::uniform_bool:
    return "uniform bools";
  case distribution::ones:
    return "ones";
  case distribution::zeros:
    return "zeros";
  case distribution::causal_mask:
    return "causal mask";
  case distribution::binary_mask:
    return "binary mask";
  case distribution::cosine:
    return "cosine of a normal";
  case distribution::sine:
    return "sine of a normal";
  case distribution::positive:
    return "positive: |normal| + 0.1";
  case distribution::cumsum_negative:
    return "running sum of uniform [-0.1, 0)";
  case distribution::uniform_range:
    return fmt::format("uniform [{}, {})", drawn.lo, drawn.hi);
  case distribution::softmax_rows:
    return "softmax of a normal";
  case distribution::scaled_normal:
    return "normal / sqrt(last dimension)";
  case distribution::clamped_normal:
    return fmt::format("normal clamped to [{}, {}]", drawn.lo, drawn.hi);
  case distribution::fp4_normal:
    return "normal rounded to E2M1";
  case distribution::scattered_mask:
    return "scattered mask";
  case distribution::mostly_ones:
    return "binary mask, mostly ones";
  case distribution::zipf_int:
    return fmt::format("integers {}..{} by Zipf's law", drawn.lo, drawn.hi);
  case distribution::stretched_normal:
    return fmt::format("normal times {}", drawn.lo);
  case distribution::constant_rows:
    return "normal, the same in each row";
  case distribution::nan_rows:
    return "normal, with a NaN in every eighth row";
  }
  return "?";
}

std::string number_text(const python_number& value) {
  if (const auto* flag = std::get_if<bool>(&value))
    return *flag ? "True" : "False";
  if (const auto* whole = std::get_if<int64_t>(&value))
    return std::to_string(*whole);
  return fmt::format("{}", std::get<double>(value));
}

} // namespace gristmill
