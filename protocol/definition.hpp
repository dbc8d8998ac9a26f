#pragma once

#include "messages/result.hpp"
#include "tensors/dtype.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

enum class axis_kind : uint8_t { constant, variable, expression };

struct axis {
  std::string name;
  axis_kind kind = axis_kind::variable;
  /// Of a constant.
  int64_t value = 0;
  /// Of an expression; read when a workload resolves it, not before.
  std::string expression;
  std::string description;

  friend bool operator==(const axis&, const axis&) = default;
};

struct tensor_spec {
  std::string name;
  dtype type = dtype::float32;
  /// The file says `"shape": null`: a Python number, not a tensor.
  bool is_scalar = false;
  /// Axis names or literals made of digits only; empty for a 0-dimensional tensor.
  std::vector<std::string> shape;
  std::string description;

  friend bool operator==(const tensor_spec&, const tensor_spec&) = default;
};

/// A problem as `definition.json` states it (specification, section 1). Vectors keep the order of
/// the file: it is the order of the call. A text that is null in the file is empty here.
struct definition {
  std::string name;
  std::string op_type;
  std::vector<axis> axes;
  std::string custom_inputs_entrypoint;
  std::vector<tensor_spec> inputs;
  std::vector<tensor_spec> outputs;
  std::string reference;
  std::string description;
  std::string hf_id;

  const axis* find_axis(std::string_view axis_name) const;
  const tensor_spec* find_input(std::string_view input_name) const;
  const tensor_spec* find_output(std::string_view output_name) const;

  friend bool operator==(const definition&, const definition&) = default;
};

/// Reads and checks a definition. All field errors come in one message, a line each
/// ("file:line: field: rule"); the cross-field rules 1.3 run only when no field failed, and stop at
/// the first. Of rule 1 (the reference is Python) only what `scan_python` sees is checked. Ignored
/// keys and the published `"hf_id": ""` become warnings.
result<definition> parse_definition(std::string_view text, const std::string& file_name,
  std::vector<std::string>* warnings = nullptr);

} // namespace gristmill
