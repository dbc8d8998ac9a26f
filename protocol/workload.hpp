#pragma once

#include "messages/result.hpp"
#include "protocol/definition.hpp"
#include "tensors/compare.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace gristmill {

/// Names with values, in the order in which they were written or resolved.
using axis_values = std::vector<std::pair<std::string, int64_t>>;

/// A Python number as JSON wrote it.
using python_number = std::variant<int64_t, double, bool>;

enum class input_kind : uint8_t { random, scalar, safetensors, custom };

struct input_spec {
  std::string name;
  input_kind kind = input_kind::random;
  /// Of a scalar.
  python_number value = int64_t{0};
  /// Of a safetensors input.
  std::string path;
  std::string tensor_key;

  friend bool operator==(const input_spec&, const input_spec&) = default;
};

/// One line of `workload.jsonl` (specification, section 2).
struct workload {
  std::string uuid;
  axis_values axes;
  /// As the line has them: an input of the definition that is missing here is random, and one that
  /// the definition lacks has no effect.
  std::vector<input_spec> inputs;
  tolerance allowed;

  const input_spec* find_input(std::string_view input_name) const;

  friend bool operator==(const workload&, const workload&) = default;
};

/// One line. Field errors are collected; `line` is counted from 1 and stands in every message.
result<workload> parse_workload(std::string_view json_line, const std::string& file_name,
  size_t line, std::vector<std::string>* warnings = nullptr);

/// A whole file; blank lines are skipped. Fails if any line does, with the messages of the first
/// twenty. A warning that repeats on other lines is given once, with their number.
result<std::vector<workload>> parse_workloads(std::string_view text, const std::string& file_name,
  std::vector<std::string>* warnings = nullptr);

/// All axes of a workload (specification 1.4): constants, then the workload's own (which may
/// override a constant or be unknown), then the expressions in order. A variable axis without a
/// value is no error here unless an expression needs it.
result<axis_values> resolve_axes(const definition& def, const axis_values& workload_axes);

/// The dimensions of a tensor; digits win over an axis of the same name. Refuses an axis without a
/// value and a negative one.
result<std::vector<int64_t>> resolve_shape(const tensor_spec& spec, const axis_values& axes);

/// The value of a name, or null.
const int64_t* find_axis_value(const axis_values& axes, std::string_view axis_name);

} // namespace gristmill
