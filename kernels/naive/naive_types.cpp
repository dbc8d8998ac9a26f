#include "kernels/naive/naive_types.hpp"

#include "kernels/expression_writer.hpp"
#include "kernels/pointwise_operators.hpp"

#include <array>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <utility>

namespace gristmill {

namespace {

struct type_row {
  std::string_view dtype_name;
  std::string_view register_type;
  std::string_view storage;
};

constexpr std::array<type_row, 12> type_rows{{
  {"float64", "double", "double"},
  {"float32", "float", "float"},
  {"float16", "float", "__half"},
  {"bfloat16", "float", "__nv_bfloat16"},
  {"float8_e4m3fn", "float", "__nv_fp8_e4m3"},
  {"float8_e5m2", "float", "__nv_fp8_e5m2"},
  {"int64", "int64_t", "int64_t"},
  {"int32", "int32_t", "int32_t"},
  {"int16", "int16_t", "int16_t"},
  {"int8", "int8_t", "int8_t"},
  {"uint8", "uint8_t", "uint8_t"},
  {"bool", "bool", "bool"},
}};

const type_row& row_of(std::string_view dtype_name) {
  for (const type_row& row : type_rows) {
    if (row.dtype_name == dtype_name)
      return row;
  }
  throw no_template{fmt::format("elements of type {} have no naive kernel", dtype_name)};
}

bool is_floating(std::string_view type) {
  return type == "float" || type == "double";
}

} // namespace

std::string naive_register(std::string_view dtype_name) {
  return std::string{row_of(dtype_name).register_type};
}

bool naive_is_float(std::string_view dtype_name) {
  return is_floating(row_of(dtype_name).register_type);
}

std::string naive_storage(dtype type) {
  return std::string{row_of(name(type)).storage};
}

std::string naive_converted(const std::string& text, std::string_view from, std::string_view to) {
  if (from == to)
    return text;
  if (to == "bool")
    return fmt::format("({} != {}(0))", text, from);
  // Through a wide integer: a float out of a narrow type's range then wraps as on a CPU.
  if (is_floating(from) && !is_floating(to) && to != "int64_t" && to != "int32_t")
    return fmt::format("{}(int64_t({}))", to, text);
  return fmt::format("{}({})", to, text);
}

std::string naive_rounded(const std::string& text, std::string_view dtype_name) {
  if (dtype_name == "bfloat16")
    return fmt::format("__bfloat162float(__float2bfloat16_rn({}))", text);
  if (dtype_name == "float16")
    return fmt::format("__half2float(__float2half_rn({}))", text);
  const type_row& row = row_of(dtype_name);
  if (dtype_name == "float8_e4m3fn" || dtype_name == "float8_e5m2")
    return fmt::format("float({}({}))", row.storage, text);
  return text;
}

std::string naive_stored(const std::string& text, dtype type) {
  if (type == dtype::bfloat16)
    return fmt::format("__float2bfloat16_rn({})", text);
  if (type == dtype::float16)
    return fmt::format("__float2half_rn({})", text);
  return fmt::format("{}({})", row_of(name(type)).storage, text);
}

std::string naive_literal(double number, std::string_view type) {
  if (type == "float")
    return float_literal(number);
  if (type == "double") {
    if (std::isnan(number))
      return "double(NAN)";
    if (std::isinf(number))
      return number > 0 ? "double(INFINITY)" : "double(-INFINITY)";
    const std::string text = fmt::format("{:.17g}", number);
    return fmt::format("double({})", text);
  }
  if (type == "bool")
    return number != 0 ? "true" : "false";
  if (std::isnan(number))
    throw no_template{"a number that is not finite stands where an integer belongs"};
  if (number >= 0x1p63)
    return naive_highest(type);
  if (number <= -0x1p63)
    return naive_lowest(type);
  const auto whole = static_cast<int64_t>(number);
  if (whole == std::numeric_limits<int64_t>::min())
    return naive_lowest(type);
  return fmt::format("{}({})", type, whole);
}

std::string naive_lowest(std::string_view type) {
  if (type == "float")
    return "(-INFINITY)";
  if (type == "double")
    return "double(-INFINITY)";
  if (type == "int64_t")
    return "(int64_t(-9223372036854775807ll) - int64_t(1))";
  if (type == "int32_t")
    return "int32_t(-2147483647 - 1)";
  if (type == "int16_t")
    return "int16_t(-32768)";
  if (type == "int8_t")
    return "int8_t(-128)";
  return type == "bool" ? "false" : "uint8_t(0)";
}

std::string naive_highest(std::string_view type) {
  if (type == "float")
    return "INFINITY";
  if (type == "double")
    return "double(INFINITY)";
  if (type == "int64_t")
    return "int64_t(9223372036854775807ll)";
  if (type == "int32_t")
    return "int32_t(2147483647)";
  if (type == "int16_t")
    return "int16_t(32767)";
  if (type == "int8_t")
    return "int8_t(127)";
  return type == "bool" ? "true" : "uint8_t(255)";
}

} // namespace gristmill
