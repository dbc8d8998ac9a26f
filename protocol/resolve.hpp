#pragma once

#include "messages/result.hpp"
#include "messages/tensor_map.hpp"
#include "protocol/definition.hpp"
#include "protocol/plan.hpp"
#include "protocol/workload.hpp"
#include "tensors/dtype.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace gristmill {

/// What a plan may know of the device. Nothing here names its kind.
struct device_facts {
  uint32_t sm_count = 0;
  uint32_t smem_per_block = 0;
  uint32_t smem_per_sm = 0;
  uint64_t l2_bytes = 0;
  /// 90 for sm_90.
  uint32_t arch = 0;

  friend bool operator==(const device_facts&, const device_facts&) = default;
};

/// A scalar input (`"shape": null`) with its declared type. `number` always holds the value;
/// `integer` too when `is_integer`. A bool is the integer 0 or 1.
struct scalar_value {
  dtype type = dtype::float32;
  double number = 0;
  int64_t integer = 0;
  bool is_integer = false;

  friend bool operator==(const scalar_value&, const scalar_value&) = default;
};

/// A Python number as an input of that declared type. Refuses a fraction for an integer type and
/// a value out of its range.
result<scalar_value> make_scalar(dtype type, const python_number& value);

struct resolved_buffer {
  enum class role : uint8_t { input, output, scratch };

  role kind = role::input;
  std::string name;
  dtype type = dtype::float32;
  std::vector<int64_t> shape;
  uint64_t bytes = 0;
  /// Of scratch: "undefined", "restored", "zero"; else empty.
  std::string init;
  uint64_t align = 256;

  friend bool operator==(const resolved_buffer&, const resolved_buffer&) = default;
};

/// A tensor map over a buffer, to be encoded once the buffer has an address.
struct resolved_map {
  /// Bytes from the base of the buffer.
  uint64_t offset = 0;
  tensor_map_spec spec;

  friend bool operator==(const resolved_map&, const resolved_map&) = default;
};

struct resolved_argument {
  enum class kind : uint8_t {
    /// The address of a buffer plus an offset.
    buffer,
    /// A value, little-endian; a null pointer is eight zero bytes.
    bytes,
    /// Tensor maps of one buffer, by value, one behind the other.
    maps,
  };

  kind what = kind::buffer;
  /// Index into `resolved_workload::buffers`.
  uint32_t buffer = 0;
  uint64_t offset = 0;
  std::vector<uint8_t> bytes;
  std::vector<resolved_map> maps;
  /// "ptr", "map", or b8 i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f64.
  std::string abi;
  /// As the plan writes it.
  std::string name;

  friend bool operator==(const resolved_argument&, const resolved_argument&) = default;
};

struct resolved_step {
  enum class op : uint8_t { launch, memset, copy };

  op what = op::launch;
  /// As the plan says, or empty.
  std::string id;
  /// Indices of the steps that must be complete before this one; all are smaller than its own, so
  /// running the steps one after the other is always right.
  std::vector<uint32_t> after;

  // launch
  /// C++ name or template-id, before macro expansion; also found in the unit's entries.
  std::string entry;
  std::array<uint32_t, 3> grid{1, 1, 1};
  std::array<uint32_t, 3> block{1, 1, 1};
  /// All 1 when the plan names none.
  std::array<uint32_t, 3> cluster{1, 1, 1};
  uint32_t shared_bytes = 0;
  bool cooperative = false;
  bool pdl = false;
  int carveout = -1;
  std::vector<resolved_argument> args;

  // memset and copy: the destination is `buffer` at `offset`
  uint32_t buffer = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  /// Of a memset: 1, 2 or 4 bytes of `value`, over and over.
  uint32_t width = 1;
  uint32_t value = 0;
  uint32_t src_buffer = 0;
  uint64_t src_offset = 0;

  friend bool operator==(const resolved_step&, const resolved_step&) = default;
};

/// A kernel of a unit and what the plan passes to it, for the signature check. The three vectors
/// have one element a parameter.
struct entry_use {
  std::string expression;
  /// C++ type: "const __nv_bfloat16*", "float*", "int32_t", "float", "bool". A pointer ends in
  /// `*`; any pointer type may stand in the kernel, scalars must match exactly. "void*" is null,
  /// "tensor_map" and "tensor_map[3]" stand for any class of 128 bytes a map.
  std::vector<std::string> parameter_abi;
  /// As the plan writes them.
  std::vector<std::string> argument_names;
  /// True for a pointer into an input, which the kernel must not write.
  std::vector<bool> parameter_const;

  friend bool operator==(const entry_use&, const entry_use&) = default;
};

/// What is compiled once and shared by all workloads that come to the same values.
struct compile_unit {
  /// Variant and defines in one stable line; equal keys mean equal units.
  std::string key;
  /// Macro name -> literal: integers decimal, bools 0 or 1, floats shortest round trip plus `f`,
  /// `ctype` a C++ type.
  std::vector<std::pair<std::string, std::string>> defines;
  std::vector<entry_use> entries;

  friend bool operator==(const compile_unit&, const compile_unit&) = default;
};

/// A plan bound to one workload: nothing is left to evaluate.
struct resolved_workload {
  std::string variant;
  compile_unit unit;
  /// Tensor inputs, outputs, then scratch, each in the order of its document.
  std::vector<resolved_buffer> buffers;
  std::vector<resolved_step> steps;

  friend bool operator==(const resolved_workload&, const resolved_workload&) = default;
};

/// What `occupancy(step)` needs to know of a launch.
struct occupancy_query {
  std::string step;
  std::string entry;
  std::array<uint32_t, 3> block{1, 1, 1};
  uint32_t shared_bytes = 0;
};

/// Resident blocks per SM.
using occupancy_function = std::function<result<int64_t>(const occupancy_query&)>;

/// Binds a plan to a workload. `axes` are resolved ones; `scalar_inputs` hold every input without
/// a shape. Failures name variant, step, field and the nearest valid name. `unsupported` for what
/// this build's devices cannot do (im2col maps, struct arguments, `read`), and for `occupancy`
/// when no function is given; `refused` outside the plan's domain and beyond a limit.
result<resolved_workload> resolve(const plan& source, const definition& def,
  const axis_values& axes, const std::vector<std::pair<std::string, scalar_value>>& scalar_inputs,
  const device_facts& device, const occupancy_function& occupancy = nullptr);

/// The C++ element type that kernels see for a type (contracts, section 5): "__nv_bfloat16".
std::string_view cpp_type(dtype type);

} // namespace gristmill
