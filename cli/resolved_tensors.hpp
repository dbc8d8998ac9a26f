#pragma once

#include "messages/result.hpp"
#include "protocol/definition.hpp"
#include "protocol/workload.hpp"
#include "tensors/generate.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gristmill {

/// A tensor or a number of a definition, as one workload has it.
struct resolved_tensor {
  const tensor_spec* spec = nullptr;
  /// "inputs.x" or "outputs.y".
  std::string field;
  std::vector<int64_t> shape;
  /// Of the contiguous tensor; 0 for a Python number.
  uint64_t bytes = 0;
  /// Why there are no bytes: too many for an address, or a packed type with an odd last dimension.
  std::string bytes_problem;
  /// Of an input: what the workload says, random where it says nothing.
  input_spec source;
  /// Of a random input: how its values are drawn.
  std::optional<input_distribution> drawn;
};

struct resolved_tensors {
  axis_values axes;
  std::vector<resolved_tensor> inputs;
  std::vector<resolved_tensor> outputs;
  /// Of all inputs and of all outputs; at most 2^64 - 1.
  uint64_t input_bytes = 0;
  uint64_t output_bytes = 0;
};

/// Axes, shapes, sizes and sources of a workload. The failure begins with the field: an expression
/// that cannot be evaluated, an axis without a value or with a negative one.
result<resolved_tensors> resolve_tensors(const definition& def, const workload& work);

/// "random", "scalar", "safetensors" or "custom".
std::string_view kind_name(input_kind kind);

/// How values are drawn, in a few words: "uniform integers -128..127".
std::string distribution_text(const input_distribution& drawn);

/// A number as Python writes it.
std::string number_text(const python_number& value);

} // namespace gristmill
