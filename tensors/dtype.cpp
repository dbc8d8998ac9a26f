#include "tensors/dtype.hpp"

#include <array>
#include <fmt/format.h>

namespace gristmill {

namespace {

struct dtype_row {
  std::string_view name;
  uint64_t bits;
  bool floating;
};

// In the order of the enumeration.
constexpr std::array<dtype_row, 13> rows{{
  {"float64", 64, true},
  {"float32", 32, true},
  {"float16", 16, true},
  {"bfloat16", 16, true},
  {"float8_e4m3fn", 8, true},
  {"float8_e5m2", 8, true},
  {"float4_e2m1", 4, true},
  {"float4_e2m1fn_x2", 4, true},
  {"int64", 64, false},
  {"int32", 32, false},
  {"int16", 16, false},
  {"int8", 8, false},
  {"bool", 8, false},
}};

const dtype_row& row(dtype type) {
  return rows[static_cast<size_t>(type)];
}

constexpr uint64_t elements_max = uint64_t{1} << 62;

} // namespace

std::optional<dtype> parse_dtype(std::string_view text) {
  for (size_t i = 0; i < rows.size(); ++i)
    if (rows[i].name == text)
      return static_cast<dtype>(i);
  return std::nullopt;
}

std::string_view name(dtype type) {
  return row(type).name;
}

const std::vector<std::string>& dtype_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto& each : rows)
      all.emplace_back(each.name);
    return all;
  }();
  return names;
}

bool is_float(dtype type) {
  return row(type).floating;
}

bool is_packed(dtype type) {
  return row(type).bits < 8;
}

uint64_t element_bits(dtype type) {
  return row(type).bits;
}

result<uint64_t> element_count(const std::vector<int64_t>& shape) {
  uint64_t count = 1;
  bool too_big = false;
  for (int64_t dimension : shape) {
    if (dimension < 0)
      return fail(errc::invalid_input,
        fmt::format("the shape {} has a negative dimension", shape_text(shape)));
    uint64_t next = 0;
    too_big = too_big || __builtin_mul_overflow(count, static_cast<uint64_t>(dimension), &next)
      || next > elements_max;
    // A zero anywhere makes the tensor empty, however large the others are.
    if (dimension == 0)
      return uint64_t{0};
    count = next;
  }
  if (too_big)
    return fail(errc::invalid_input,
      fmt::format("the shape {} has more than 2^62 elements", shape_text(shape)));
  return count;
}

result<uint64_t> storage_bytes(dtype type, const std::vector<int64_t>& shape) {
  auto count = element_count(shape);
  if (!count)
    return pass(count);
  if (is_packed(type)) {
    if (shape.empty() || shape.back() % 2 != 0)
      return fail(errc::invalid_input,
        fmt::format("{} packs two values a byte, so the last dimension of {} must be even",
          name(type), shape_text(shape)));
    return *count / 2;
  }
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(*count, element_bits(type) / 8, &bytes) || bytes > elements_max)
    return fail(errc::invalid_input,
      fmt::format(
        "a {} tensor of shape {} has more than 2^62 bytes", name(type), shape_text(shape)));
  return bytes;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    out += fmt::format("{}{}", i == 0 ? "" : ", ", shape[i]);
  return out + "]";
}

} // namespace gristmill
