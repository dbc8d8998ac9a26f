#pragma once

#include "tensors/codec.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace gristmill {

/// A tensor of a native reference, decoded: floats for every float type, integers for the others.
struct native_tensor {
  std::vector<size_t> shape;
  std::vector<float> numbers;
  std::vector<int64_t> integers;

  size_t last() const { return shape.back(); }
  /// Product of all dimensions but the last.
  size_t rows() const {
    size_t product = 1;
    for (size_t d = 0; d + 1 < shape.size(); ++d)
      product *= shape[d];
    return product;
  }
};

/// Inputs and outputs in declared order; outputs have their shapes and room for their elements,
/// which are rounded to the declared type afterwards.
struct native_call {
  std::vector<native_tensor> inputs;
  std::vector<native_tensor> outputs;

  /// Elements of a float input.
  const std::vector<float>& in(size_t index) const { return inputs[index].numbers; }
  std::vector<float>& out(size_t index) { return outputs[index].numbers; }
};

/// The reference of one built-in problem.
struct native_entry {
  std::string_view name;
  void (*run)(native_call& call);
};

/// The references by family, each in a file of its own.
std::span<const native_entry> native_row_references();
std::span<const native_entry> native_map_references();
std::span<const native_entry> native_product_references();
std::span<const native_entry> native_attention_references();

/// What is left of a number in bfloat16, for results that the reference rounds on the way.
inline float rounded_to_bf16(float value) {
  return float_from_bf16(bf16_from_float(value));
}

} // namespace gristmill
