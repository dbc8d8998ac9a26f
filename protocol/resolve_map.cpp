#include "protocol/resolve_map.hpp"

#include <fmt/format.h>

#include <limits>

namespace gristmill {

namespace {

result<tensor_map_type> type_of(const plan_tensor_map& map, dtype tensor) {
  if (map.type == "tf32")
    return tensor_map_type::tfloat32;
  if (map.type.starts_with("fp4"))
    return fail(errc::unsupported,
      fmt::format("dtype: {} needs architecture 100; no device of this build has it", map.type));
  dtype type = tensor;
  if (map.type != "auto")
    type = parse_dtype(map.type).value_or(tensor);
  switch (type) {
  case dtype::float64:
    return tensor_map_type::float64;
  case dtype::float32:
    return tensor_map_type::float32;
  case dtype::float16:
    return tensor_map_type::float16;
  case dtype::bfloat16:
    return tensor_map_type::bfloat16;
  case dtype::int64:
    return tensor_map_type::int64;
  case dtype::int32:
    return tensor_map_type::int32;
  case dtype::int16:
    return tensor_map_type::uint16;
  case dtype::float8_e4m3fn:
  case dtype::float8_e5m2:
  case dtype::int8:
  case dtype::boolean:
    return tensor_map_type::uint8;
  case dtype::float4_e2m1:
  case dtype::float4_e2m1fn_x2:
    break;
  }
  return fail(errc::invalid_input,
    "dtype: a packed fp4 tensor needs `fp4_align8` or `fp4_align16` in its map");
}

template <class T>
result<std::vector<T>> numbers(
  const std::vector<expression>& from, const char* field, const plan_scope& scope) {
  std::vector<T> out;
  for (size_t i = 0; i < from.size(); ++i) {
    auto value = evaluate_int(from[i], scope);
    if (!value)
      return fail(value.error().code, fmt::format("{}.{}: {}", field, i, value.error().what));
    if (*value < 0 || static_cast<uint64_t>(*value) > std::numeric_limits<T>::max())
      return fail(errc::invalid_input,
        fmt::format(
          "{}.{}: {} is not from 0 to {}", field, i, *value, std::numeric_limits<T>::max()));
    out.push_back(static_cast<T>(*value));
  }
  return out;
}

/// Of a tensor that is stored without gaps.
result<void> add_strides(tensor_map_spec& spec) {
  uint64_t stride = bytes_of(spec.type);
  for (size_t i = 0; i + 1 < spec.dims.size(); ++i) {
    if (__builtin_mul_overflow(stride, spec.dims[i], &stride))
      return fail(errc::invalid_input, fmt::format("dims.{}: the stride is beyond 2^64", i));
    spec.strides.push_back(stride);
  }
  return {};
}

template <class Enum>
Enum choice(const std::string& text, std::initializer_list<std::string_view> names) {
  uint8_t index = 0;
  for (const std::string_view each : names) {
    if (each == text)
      return static_cast<Enum>(index);
    ++index;
  }
  return Enum{}; // The parser lets no other text through.
}

result<resolved_map> one_map(
  const plan_tensor_map& map, const plan_scope& scope, const resolved_buffer& buffer) {
  resolved_map out;
  tensor_map_spec& spec = out.spec;
  auto type = type_of(map, buffer.type);
  if (!type)
    return pass(type);
  spec.type = *type;
  auto offset = evaluate_int(map.offset, scope);
  if (!offset)
    return fail(offset.error().code, "offset: " + offset.error().what);
  if (*offset < 0 || static_cast<uint64_t>(*offset) > buffer.bytes)
    return fail(errc::invalid_input,
      fmt::format(
        "offset: {} is outside of {}, which has {} bytes", *offset, buffer.name, buffer.bytes));
  out.offset = static_cast<uint64_t>(*offset);
  auto dims = numbers<uint64_t>(map.dims, "dims", scope);
  if (!dims)
    return pass(dims);
  auto strides = numbers<uint64_t>(map.strides, "strides", scope);
  if (!strides)
    return pass(strides);
  auto box = numbers<uint32_t>(map.box, "box", scope);
  if (!box)
    return pass(box);
  auto steps = numbers<uint32_t>(map.element_strides, "element_strides", scope);
  if (!steps)
    return pass(steps);
  spec.dims = std::move(*dims);
  if (spec.dims.empty())
    spec.dims.assign(buffer.shape.rbegin(), buffer.shape.rend());
  spec.strides = std::move(*strides);
  if (spec.strides.empty())
    if (auto added = add_strides(spec); !added)
      return pass(added);
  spec.box = std::move(*box);
  spec.element_strides = std::move(*steps);
  if (spec.element_strides.empty())
    spec.element_strides.assign(spec.dims.size(), 1);
  spec.swizzle = choice<tensor_map_swizzle>(map.swizzle, {"none", "32B", "64B", "128B"});
  spec.l2 = choice<tensor_map_l2>(map.l2, {"none", "64B", "128B", "256B"});
  spec.oob_nan = map.oob == "nan";
  // Every base address is a multiple of 256, so the offset alone decides.
  if (std::string broken = broken_rule(spec, out.offset); !broken.empty())
    return fail(errc::invalid_input, std::move(broken));
  if (const uint64_t reach = reach_of(spec); reach > buffer.bytes - out.offset)
    return fail(errc::invalid_input,
      fmt::format("dims: the map reaches {} bytes from offset {} on; {} has {} bytes", reach,
        out.offset, buffer.name, buffer.bytes));
  return out;
}

} // namespace

result<resolved_argument> resolve_map(const plan_tensor_map& map, const plan_scope& scope,
  const std::vector<resolved_buffer>& buffers) {
  if (map.im2col)
    return fail(
      errc::unsupported, "im2col: such maps are not supported by the devices of this build");
  if (map.interleave != "none")
    return fail(errc::unsupported,
      "interleave: " + map.interleave + " is not supported by the devices of this build");
  auto index = scope.buffer(map.of);
  if (!index)
    return fail(index.error().code, "of: " + index.error().what);
  auto count = evaluate_int(map.count, scope);
  if (!count)
    return fail(count.error().code, "count: " + count.error().what);
  if (*count < 1 || *count > plan_limits::maps_in_array)
    return fail(errc::invalid_input,
      fmt::format("count: {} is not from 1 to {}", *count, plan_limits::maps_in_array));
  resolved_argument out;
  out.what = resolved_argument::kind::maps;
  out.abi = "map";
  out.buffer = *index;
  plan_scope inner = scope;
  // Where the problem has an `i` of its own, that one is meant.
  const bool counted = !inner.knows("i");
  if (counted)
    inner.add_value("", "i", int64_t{0});
  for (int64_t i = 0; i < *count; ++i) {
    if (counted)
      inner.set_value("i", i);
    auto one = one_map(map, inner, buffers[*index]);
    if (!one)
      return pass(one);
    out.maps.push_back(std::move(*one));
  }
  return out;
}

} // namespace gristmill
