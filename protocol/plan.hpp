#pragma once

#include "messages/result.hpp"
#include "protocol/expression.hpp"
#include "tensors/dtype.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gristmill {

/// What no plan may exceed (contracts, section 4).
struct plan_limits {
  static constexpr size_t text_bytes = 65536;
  static constexpr size_t variants = 16;
  /// Distinct compile units over all workloads of a problem.
  static constexpr size_t units = 64;
  /// Executed in one call, after `repeat` is unrolled.
  static constexpr size_t steps = 256;
  static constexpr size_t tensor_maps = 64;
  /// Maps of one by-value array.
  static constexpr int64_t maps_in_array = 255;
  /// Parameters of one launch.
  static constexpr size_t parameter_bytes = 32764;
  /// Scratch bytes for one byte of inputs and outputs.
  static constexpr uint64_t scratch_factor = 8;
  /// Scratch bytes that every plan may have, however small its problem.
  static constexpr uint64_t scratch_floor = uint64_t{64} << 20;
  static constexpr size_t repeat_depth = 4;
};

/// Names with expressions, in the order of the file.
using named_expressions = std::vector<std::pair<std::string, expression>>;

struct plan_options {
  std::string standard = "c++20";
  bool fast_math = false;
  /// 0 leaves it to the compiler.
  uint32_t max_registers = 0;
  /// Subset of "cutlass", "cccl".
  std::vector<std::string> headers;

  friend bool operator==(const plan_options&, const plan_options&) = default;
};

enum class scratch_init : uint8_t {
  /// Random bytes before each call, untimed.
  undefined,
  /// Zero at load, and all zero again after every call, which is checked.
  restored,
  /// A timed memset in each call.
  zero,
};

std::string_view name(scratch_init init);

struct plan_scratch {
  std::string name;
  dtype type = dtype::float32;
  std::vector<expression> shape;
  scratch_init init = scratch_init::undefined;
  /// A power of two.
  uint64_t align = 256;
};

struct plan_im2col {
  std::vector<expression> lower;
  std::vector<expression> upper;
  expression channels;
  expression pixels;
};

/// A tensor map, kept as written: `resolve` evaluates those that a launch passes.
struct plan_tensor_map {
  std::string name;
  expression_name of;
  expression offset;
  std::string type = "auto";
  std::vector<expression> dims;
  std::vector<expression> strides;
  std::vector<expression> box;
  std::vector<expression> element_strides;
  std::string swizzle = "none";
  std::string interleave = "none";
  std::string l2 = "none";
  std::string oob = "zero";
  std::optional<plan_im2col> im2col;
  expression count;
};

struct plan_argument {
  enum class form : uint8_t {
    /// A buffer's name, or an expression with an optional type behind a colon.
    value,
    /// {"ptr": buffer, "offset": bytes}
    pointer,
    /// {"map": name}
    map,
    /// {"struct": [...]}
    structure,
    /// "null"
    null,
  };

  form what = form::value;
  /// As written, for messages.
  std::string text;
  expression value;
  /// "i64", "f32", ... or empty.
  std::string type;
  expression_name buffer;
  expression offset;
  std::string map;
  std::vector<plan_argument> fields;
};

struct plan_step {
  enum class op : uint8_t { launch, memset, copy, read, repeat };

  op what = op::launch;
  std::string id;
  expression when;
  /// Ids of earlier steps; absent means the previous step.
  std::optional<std::vector<std::string>> after;

  // launch
  std::string entry;
  std::array<expression, 3> grid;
  std::array<expression, 3> block;
  std::optional<std::array<expression, 3>> cluster;
  expression shared;
  bool cooperative = false;
  bool pdl = false;
  int carveout = -1;
  std::vector<plan_argument> args;

  // memset (dst, dst_offset, bytes, width, value) and copy (dst, src, both offsets, bytes)
  expression_name dst;
  expression_name src;
  expression dst_offset;
  expression src_offset;
  expression bytes;
  /// 1, 2 or 4.
  uint32_t width = 1;
  uint32_t value = 0;

  // read
  expression_name from;
  std::vector<expression> at;
  std::vector<std::string> as;

  // repeat
  std::string variable;
  expression count;
  std::vector<plan_step> steps;
};

/// The name of the operation, as in the file.
std::string_view name(plan_step::op op);

struct plan_variant {
  /// As written, or "variant 0" and so on.
  std::string name;
  expression when;
  named_expressions defines;
  std::vector<plan_step> steps;
};

/// A launch plan, schema `gristmill.plan/1` (contracts, section 4), parsed but bound to nothing.
struct plan {
  plan_options options;
  expression domain;
  named_expressions let;
  std::vector<plan_scratch> scratch;
  std::vector<plan_tensor_map> tensor_maps;
  std::vector<plan_variant> variants;
};

/// Reads a plan. Every unknown key is an error that names the nearest known one; a failure says
/// where in the document it stands. What depends on the problem is left to `resolve`.
result<plan> parse_plan(std::string_view text);

} // namespace gristmill
