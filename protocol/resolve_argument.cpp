#include "protocol/resolve_argument.hpp"

#include "protocol/json_document.hpp"
#include "protocol/nearest.hpp"
#include "protocol/resolve_map.hpp"
#include "tensors/codec.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <limits>

namespace gristmill {

namespace {

struct scalar_row {
  std::string_view abi;
  std::string_view cpp;
  size_t bytes;
  /// Of an integer type; both 0 for the others.
  int64_t lowest;
  uint64_t highest;
};

constexpr std::array<scalar_row, 13> scalar_rows{{
  {"b8", "bool", 1, 0, 0},
  {"i8", "int8_t", 1, INT8_MIN, INT8_MAX},
  {"u8", "uint8_t", 1, 0, UINT8_MAX},
  {"i16", "int16_t", 2, INT16_MIN, INT16_MAX},
  {"u16", "uint16_t", 2, 0, UINT16_MAX},
  {"i32", "int32_t", 4, INT32_MIN, INT32_MAX},
  {"u32", "uint32_t", 4, 0, UINT32_MAX},
  {"i64", "int64_t", 8, INT64_MIN, INT64_MAX},
  {"u64", "uint64_t", 8, 0, UINT64_MAX},
  {"f16", "__half", 2, 0, 0},
  {"bf16", "__nv_bfloat16", 2, 0, 0},
  {"f32", "float", 4, 0, 0},
  {"f64", "double", 8, 0, 0},
}};

const scalar_row& row_of(std::string_view abi) {
  for (const auto& row : scalar_rows)
    if (row.abi == abi)
      return row;
  return scalar_rows[5]; // The parser lets no other text through.
}

/// The parameter type of a scalar input that the plan passes without a type.
std::string_view default_abi(dtype type) {
  switch (type) {
  case dtype::float64:
    return "f64";
  case dtype::float32:
  case dtype::float16:
  case dtype::bfloat16:
  case dtype::float8_e4m3fn:
  case dtype::float8_e5m2:
  case dtype::float4_e2m1:
  case dtype::float4_e2m1fn_x2:
    return "f32";
  case dtype::int64:
    return "i64";
  case dtype::int32:
    return "i32";
  case dtype::int16:
    return "i16";
  case dtype::int8:
    return "i8";
  case dtype::boolean:
    return "b8";
  }
  return "f32";
}

template <class T>
std::vector<uint8_t> bytes_of(T value) {
  std::vector<uint8_t> out(sizeof value);
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}

result<std::vector<uint8_t>> encode_integer(int64_t value, const scalar_row& row) {
  const bool fits =
    value >= row.lowest && (value < 0 || static_cast<uint64_t>(value) <= row.highest);
  if (!fits)
    return fail(errc::invalid_input,
      fmt::format("{} does not fit into {}{}", value, row.cpp,
        row.abi == "i32" ? "; write `:i64` behind it" : ""));
  auto out = bytes_of(value);
  out.resize(row.bytes); // Little-endian: the low bytes come first.
  return out;
}

result<std::vector<uint8_t>> encode_float(double value, const scalar_row& row) {
  if (row.abi == "f64")
    return bytes_of(value);
  const auto single = static_cast<float>(value);
  float stored = single;
  std::vector<uint8_t> out = bytes_of(single);
  if (row.abi == "f16") {
    out = bytes_of(fp16_from_float(single));
    stored = float_from_fp16(fp16_from_float(single));
  } else if (row.abi == "bf16") {
    out = bytes_of(bf16_from_float(single));
    stored = float_from_bf16(bf16_from_float(single));
  }
  if (std::isfinite(value) && !std::isfinite(stored))
    return fail(errc::invalid_input, fmt::format("{} is out of the range of {}", value, row.cpp));
  return out;
}

result<std::vector<uint8_t>> encode_value(const expression_value& value, const scalar_row& row) {
  if (std::holds_alternative<type_name>(value))
    return fail(errc::invalid_input, "a C++ type is not an argument; use it in a define");
  if (row.abi == "b8") {
    if (const auto* flag = std::get_if<bool>(&value))
      return std::vector<uint8_t>{static_cast<uint8_t>(*flag ? 1 : 0)};
    return fail(errc::invalid_input, "`:b8` takes a bool");
  }
  if (std::holds_alternative<bool>(value))
    return fail(errc::invalid_input, fmt::format("a bool is not {}; write int(…)", row.cpp));
  const auto* whole = std::get_if<int64_t>(&value);
  const bool floating = row.abi[0] == 'f' || row.abi == "bf16";
  if (floating)
    return encode_float(
      whole != nullptr ? static_cast<double>(*whole) : std::get<double>(value), row);
  if (whole == nullptr)
    return fail(errc::invalid_input, fmt::format("a float is not {}; write int(…)", row.cpp));
  return encode_integer(*whole, row);
}

bound_argument bind_pointer(
  const plan_argument& argument, uint32_t index, uint64_t offset, const resolved_buffer& buffer) {
  bound_argument out;
  out.passed.what = resolved_argument::kind::buffer;
  out.passed.buffer = index;
  out.passed.offset = offset;
  out.passed.abi = "ptr";
  out.passed.name = argument.text;
  out.is_const = buffer.kind == resolved_buffer::role::input;
  out.parameter = fmt::format("{}{}*", out.is_const ? "const " : "", cpp_type(buffer.type));
  return out;
}

result<bound_argument> bind_value(
  const plan_argument& argument, const plan_scope& scope, const named_scalars& scalars) {
  auto value = evaluate(argument.value, scope);
  if (!value)
    return pass(value);
  std::string_view abi = argument.type;
  if (abi.empty()) {
    const auto name = argument.value.as_name();
    if (name && scope.is_scalar_input(*name)) {
      for (const auto& [scalar_name, scalar] : scalars)
        if (scalar_name == name->name)
          abi = default_abi(scalar.type);
    } else if (std::holds_alternative<int64_t>(*value)) {
      abi = "i32";
    } else {
      return fail(errc::invalid_input,
        std::holds_alternative<double>(*value)
          ? "a float needs its type: write `:f32` or `:f64` behind it"
          : std::holds_alternative<bool>(*value)
          ? "a bool needs its type: write `:b8` behind it"
          : "a C++ type is not an argument; use it in a define");
    }
  }
  const auto& row = row_of(abi);
  auto bytes = encode_value(*value, row);
  if (!bytes)
    return pass(bytes);
  bound_argument out;
  out.passed.what = resolved_argument::kind::bytes;
  out.passed.bytes = std::move(*bytes);
  out.passed.abi = row.abi;
  out.passed.name = argument.text;
  out.parameter = row.cpp;
  return out;
}

result<bound_argument> bind_map(const plan_argument& argument, const plan_scope& scope,
  const std::vector<resolved_buffer>& buffers, const std::vector<plan_tensor_map>& maps) {
  std::vector<std::string> names;
  for (const plan_tensor_map& map : maps) {
    if (map.name != argument.map) {
      names.push_back(map.name);
      continue;
    }
    auto passed = resolve_map(map, scope, buffers);
    if (!passed)
      return fail(
        passed.error().code, fmt::format("tensor_maps.{}: {}", map.name, passed.error().what));
    bound_argument out;
    out.passed = std::move(*passed);
    out.passed.name = argument.text;
    out.parameter = out.passed.maps.size() == 1
      ? "tensor_map"
      : fmt::format("tensor_map[{}]", out.passed.maps.size());
    return out;
  }
  return fail(errc::not_found,
    fmt::format(
      "there is no tensor map {}{}", excerpt(argument.map), suggestion(argument.map, names)));
}

result<bound_argument> bind_offset_pointer(const plan_argument& argument, const plan_scope& scope,
  const std::vector<resolved_buffer>& buffers) {
  auto index = scope.buffer(argument.buffer);
  if (!index)
    return pass(index);
  auto offset = evaluate_int(argument.offset, scope);
  if (!offset)
    return pass(offset);
  const auto& buffer = buffers[*index];
  if (*offset < 0 || static_cast<uint64_t>(*offset) > buffer.bytes)
    return fail(errc::invalid_input,
      fmt::format(
        "offset {} is outside of {}, which has {} bytes", *offset, buffer.name, buffer.bytes));
  const uint64_t element = std::max<uint64_t>(1, element_bits(buffer.type) / 8);
  if (static_cast<uint64_t>(*offset) % element != 0)
    return fail(errc::invalid_input,
      fmt::format(
        "offset {} is not a multiple of the {} bytes of {}", *offset, element, name(buffer.type)));
  return bind_pointer(argument, *index, static_cast<uint64_t>(*offset), buffer);
}

} // namespace

std::string_view cpp_type(dtype type) {
  switch (type) {
  case dtype::float64:
    return "double";
  case dtype::float32:
    return "float";
  case dtype::float16:
    return "__half";
  case dtype::bfloat16:
    return "__nv_bfloat16";
  case dtype::float8_e4m3fn:
    return "__nv_fp8_e4m3";
  case dtype::float8_e5m2:
    return "__nv_fp8_e5m2";
  case dtype::float4_e2m1:
  case dtype::float4_e2m1fn_x2:
    return "uint8_t";
  case dtype::int64:
    return "int64_t";
  case dtype::int32:
    return "int32_t";
  case dtype::int16:
    return "int16_t";
  case dtype::int8:
    return "int8_t";
  case dtype::boolean:
    return "bool";
  }
  return "uint8_t";
}

result<scalar_value> make_scalar(dtype type, const python_number& value) {
  const double number = std::visit([](auto x) { return static_cast<double>(x); }, value);
  scalar_value out{type, number, 0, false};
  if (is_float(type)) {
    const double highest = type == dtype::float64 ? std::numeric_limits<double>::max()
      : type == dtype::float32 || type == dtype::bfloat16
      ? static_cast<double>(std::numeric_limits<float>::max())
      : type == dtype::float16       ? 65504.0
      : type == dtype::float8_e5m2   ? 57344.0
      : type == dtype::float8_e4m3fn ? 448.0
                                     : 6.0;
    if (std::isfinite(number) && std::fabs(number) > highest)
      return fail(
        errc::invalid_input, fmt::format("{} is out of the range of {}", number, name(type)));
    return out;
  }
  if (const auto* whole = std::get_if<int64_t>(&value))
    out.integer = *whole;
  else if (std::holds_alternative<bool>(value))
    out.integer = number != 0 ? 1 : 0;
  else if (number >= -0x1p63 && number < 0x1p63 && std::trunc(number) == number)
    out.integer = static_cast<int64_t>(number);
  else
    return fail(errc::invalid_input,
      fmt::format("{} is not a whole number, as {} needs", number, name(type)));
  out.is_integer = true;
  const auto& row = row_of(type == dtype::boolean ? "u8" : default_abi(type));
  const bool fits = type == dtype::boolean ? out.integer == 0 || out.integer == 1
                                           : encode_integer(out.integer, row).has_value();
  if (!fits)
    return fail(
      errc::invalid_input, fmt::format("{} is out of the range of {}", out.integer, name(type)));
  return out;
}

result<bound_argument> bind_argument(const plan_argument& argument, const plan_scope& scope,
  const std::vector<resolved_buffer>& buffers, const named_scalars& scalars,
  const std::vector<plan_tensor_map>& maps) {
  switch (argument.what) {
  case plan_argument::form::map:
    return bind_map(argument, scope, buffers, maps);
  case plan_argument::form::structure:
    return fail(
      errc::unsupported, "struct arguments are not supported by the devices of this build");
  case plan_argument::form::null: {
    bound_argument out;
    out.passed.what = resolved_argument::kind::bytes;
    out.passed.bytes.assign(8, 0);
    out.passed.abi = "ptr";
    out.passed.name = argument.text;
    out.parameter = "void*";
    return out;
  }
  case plan_argument::form::pointer:
    return bind_offset_pointer(argument, scope, buffers);
  case plan_argument::form::value:
    break;
  }
  if (const auto name = argument.value.as_name()) {
    auto index = scope.find_buffer(*name);
    if (!index)
      return pass(index);
    if (*index) {
      if (!argument.type.empty())
        return fail(errc::invalid_input,
          fmt::format("a tensor is passed as a pointer, without `:{}`", argument.type));
      return bind_pointer(argument, **index, 0, buffers[**index]);
    }
  }
  return bind_value(argument, scope, scalars);
}

uint64_t parameter_bytes(const std::vector<resolved_argument>& arguments) {
  uint64_t total = 0;
  for (const auto& each : arguments) {
    if (each.what == resolved_argument::kind::maps) {
      total = (total + tensor_map_bytes - 1) / tensor_map_bytes * tensor_map_bytes
        + tensor_map_bytes * each.maps.size();
      continue;
    }
    const uint64_t size =
      each.what == resolved_argument::kind::buffer ? 8 : std::max<size_t>(1, each.bytes.size());
    total = (total + size - 1) / size * size + size;
  }
  return total;
}

result<std::string> define_literal(const expression_value& value) {
  if (const auto* whole = std::get_if<int64_t>(&value))
    return fmt::format("{}", *whole);
  if (const auto* flag = std::get_if<bool>(&value))
    return std::string{*flag ? "1" : "0"};
  if (const auto* type = std::get_if<type_name>(&value))
    return type->text;
  const double number = std::get<double>(value);
  const auto single = static_cast<float>(number);
  if (!std::isfinite(single))
    return fail(errc::invalid_input, fmt::format("{} is not a finite float", number));
  auto text = fmt::format("{}", single);
  if (text.find_first_of(".e") == std::string::npos)
    text += ".0"; // `1f` is no literal.
  return text + "f";
}

} // namespace gristmill
