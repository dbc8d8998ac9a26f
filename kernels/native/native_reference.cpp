#include "kernels/native/native_reference.hpp"

#include "kernels/builtin.hpp"
#include "kernels/native/native_call.hpp"
#include "tensors/codec.hpp"
#include "tensors/dtype.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <fmt/format.h>
#include <string>

namespace gristmill {

namespace {

using input_list = std::vector<std::span<const std::byte>>;
using output_list = std::vector<std::span<std::byte>>;

const native_entry* find_entry(std::string_view name) {
  for (const auto& family : {native_row_references(), native_map_references(),
         native_product_references(), native_attention_references()})
    for (const native_entry& one : family)
      if (one.name == name)
        return &one;
  return nullptr;
}

const native_entry* find_reference(std::string_view definition_text) {
  for (const embedded_file& file : builtin_files())
    if (file.path.ends_with("/definition.json") && file.content == definition_text)
      return find_entry(file.path.substr(0, file.path.find('/')));
  return nullptr;
}

template <class Stored>
void decode_as(std::span<const std::byte> bytes, std::vector<int64_t>& out) {
  for (size_t i = 0; i < out.size(); ++i) {
    Stored one{};
    std::memcpy(&one, bytes.data() + i * sizeof one, sizeof one); // They need not be aligned.
    out[i] = static_cast<int64_t>(one);
  }
}

template <class Stored>
void encode_as(const std::vector<int64_t>& numbers, std::span<std::byte> out) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto one = static_cast<Stored>(numbers[i]);
    std::memcpy(out.data() + i * sizeof one, &one, sizeof one);
  }
}

void decode(dtype type, std::span<const std::byte> bytes, native_tensor& out) {
  if (is_float(type))
    return decode_to_float(type, bytes, out.numbers);
  switch (element_bits(type)) {
  case 64:
    return decode_as<int64_t>(bytes, out.integers);
  case 32:
    return decode_as<int32_t>(bytes, out.integers);
  case 16:
    return decode_as<int16_t>(bytes, out.integers);
  default:
    return decode_as<int8_t>(bytes, out.integers);
  }
}

void encode(dtype type, const native_tensor& from, std::span<std::byte> bytes) {
  if (is_float(type))
    return encode_from_float(type, from.numbers, bytes);
  switch (element_bits(type)) {
  case 64:
    return encode_as<int64_t>(from.integers, bytes);
  case 32:
    return encode_as<int32_t>(from.integers, bytes);
  case 16:
    return encode_as<int16_t>(from.integers, bytes);
  default:
    return encode_as<int8_t>(from.integers, bytes);
  }
}

/// A tensor of the declared shape with room for its elements.
result<native_tensor> room_for(const tensor_spec& spec, const axis_values& axes) {
  const auto shape = resolve_shape(spec, axes);
  if (!shape)
    return pass(shape);
  const auto count = element_count(*shape);
  if (!count)
    return pass(count);
  native_tensor tensor;
  tensor.shape.assign(shape->begin(), shape->end());
  if (is_float(spec.type))
    tensor.numbers.resize(*count);
  else
    tensor.integers.resize(*count);
  return tensor;
}

result<void> check_size(const tensor_spec& spec, const axis_values& axes, size_t given) {
  const auto shape = resolve_shape(spec, axes);
  if (!shape)
    return pass(shape);
  const auto bytes = storage_bytes(spec.type, *shape);
  if (!bytes)
    return pass(bytes);
  if (*bytes != given)
    return fail(
      errc::invalid_input, fmt::format("{}: {} bytes given, {} needed", spec.name, given, *bytes));
  return {};
}

} // namespace

bool has_native_reference(std::string_view definition_text) {
  return find_reference(definition_text) != nullptr;
}

result<void> run_native_reference(std::string_view definition_text, const axis_values& axes,
  const input_list& inputs, const output_list& outputs) {
  const native_entry* reference = find_reference(definition_text);
  if (reference == nullptr)
    return fail(errc::not_found, "this definition is none of the built-in problems");
  const auto def = parse_definition(definition_text, "definition.json");
  if (!def)
    return pass(def);
  if (inputs.size() != def->inputs.size() || outputs.size() != def->outputs.size())
    return fail(errc::invalid_input,
      fmt::format("{}: {} inputs and {} outputs are needed", def->name, def->inputs.size(),
        def->outputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (auto checked = check_size(def->inputs[i], axes, inputs[i].size()); !checked)
      return checked;
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (auto checked = check_size(def->outputs[i], axes, outputs[i].size()); !checked)
      return checked;
  }
  native_call call;
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto tensor = room_for(def->inputs[i], axes);
    if (!tensor)
      return pass(tensor);
    decode(def->inputs[i].type, inputs[i], *tensor);
    call.inputs.push_back(std::move(*tensor));
  }
  for (const auto& spec : def->outputs) {
    auto tensor = room_for(spec, axes);
    if (!tensor)
      return pass(tensor);
    call.outputs.push_back(std::move(*tensor));
  }
  reference->run(call);
  for (size_t i = 0; i < outputs.size(); ++i)
    encode(def->outputs[i].type, call.outputs[i], outputs[i]);
  return {};
}

} // namespace gristmill
