#include "kernels/native/native_reference.hpp"

#include "kernels/builtin.hpp"
#include "tensors/codec.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <string>

namespace gristmill {

namespace {

using input_list = std::vector<std::span<const std::byte>>;
using output_list = std::vector<std::span<std::byte>>;

/// Elements of any float type, one at a time; memcpy because the bytes need not be aligned.
float read_bf16(std::span<const std::byte> bytes, size_t index) {
  uint16_t bits = 0;
  std::memcpy(&bits, bytes.data() + index * sizeof bits, sizeof bits);
  return float_from_bf16(bits);
}

void write_bf16(std::span<std::byte> bytes, size_t index, float value) {
  const uint16_t bits = bf16_from_float(value);
  std::memcpy(bytes.data() + index * sizeof bits, &bits, sizeof bits);
}

float read_float(std::span<const std::byte> bytes, size_t index) {
  float value = 0;
  std::memcpy(&value, bytes.data() + index * sizeof value, sizeof value);
  return value;
}

void write_float(std::span<std::byte> bytes, size_t index, float value) {
  std::memcpy(bytes.data() + index * sizeof value, &value, sizeof value);
}

void silu_and_mul(
  size_t tokens, size_t width, const input_list& inputs, const output_list& outputs) {
  for (size_t row = 0; row < tokens; ++row) {
    for (size_t column = 0; column < width; ++column) {
      const float gate = read_bf16(inputs[0], row * 2 * width + column);
      const float value = read_bf16(inputs[0], row * 2 * width + width + column);
      const float activated = gate / (1.0F + std::exp(-gate));
      write_bf16(outputs[0], row * width + column, activated * value);
    }
  }
}

void softmax(size_t rows, size_t classes, const input_list& inputs, const output_list& outputs) {
  for (size_t row = 0; row < rows; ++row) {
    const size_t start = row * classes;
    float top = -INFINITY;
    for (size_t i = 0; i < classes; ++i)
      top = std::max(top, read_float(inputs[0], start + i));
    double sum = 0;
    for (size_t i = 0; i < classes; ++i)
      sum += static_cast<double>(std::exp(read_float(inputs[0], start + i) - top));
    for (size_t i = 0; i < classes; ++i) {
      const float power = std::exp(read_float(inputs[0], start + i) - top);
      write_float(outputs[0], start + i, static_cast<float>(static_cast<double>(power) / sum));
    }
  }
}

void rmsnorm(size_t tokens, size_t hidden, const input_list& inputs, const output_list& outputs) {
  for (size_t row = 0; row < tokens; ++row) {
    const size_t start = row * hidden;
    double sum = 0;
    for (size_t i = 0; i < hidden; ++i) {
      const auto x = static_cast<double>(read_bf16(inputs[0], start + i));
      sum += x * x;
    }
    const double mean_square = sum / static_cast<double>(hidden);
    const auto inverse = static_cast<float>(1.0 / std::sqrt(mean_square + 1e-6));
    for (size_t i = 0; i < hidden; ++i) {
      const float x = read_bf16(inputs[0], start + i);
      write_bf16(outputs[0], start + i, x * inverse * read_bf16(inputs[1], i));
    }
  }
}

struct native_reference {
  std::string_view name;
  /// The axes that `run` is called with.
  std::string_view outer;
  std::string_view inner;
  void (*run)(size_t outer, size_t inner, const input_list& inputs, const output_list& outputs);
};

constexpr native_reference references[] = {
  {"rmsnorm", "tokens", "hidden", rmsnorm},
  {"silu_and_mul", "tokens", "width", silu_and_mul},
  {"softmax", "rows", "classes", softmax},
};

const native_reference* find_reference(std::string_view definition_text) {
  for (const embedded_file& file : builtin_files()) {
    if (!file.path.ends_with("/definition.json") || file.content != definition_text)
      continue;
    for (const native_reference& one : references) {
      if (file.path.starts_with(one.name) && file.path[one.name.size()] == '/')
        return &one;
    }
  }
  return nullptr;
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
  const native_reference* reference = find_reference(definition_text);
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
  // Both axes exist: the shapes above could not have been resolved without them.
  const int64_t* outer = find_axis_value(axes, reference->outer);
  const int64_t* inner = find_axis_value(axes, reference->inner);
  if (outer == nullptr || inner == nullptr)
    return fail(errc::invalid_input, fmt::format("{}: an axis has no value", def->name));
  reference->run(static_cast<size_t>(*outer), static_cast<size_t>(*inner), inputs, outputs);
  return {};
}

} // namespace gristmill
