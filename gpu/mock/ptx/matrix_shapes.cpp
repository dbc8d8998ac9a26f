#include "gpu/mock/ptx/matrix_shapes.hpp"

#include <algorithm>
#include <utility>

#define GRISTMILL_PTX_LANES tables
#include "gpu/mock/ptx/lanes/floats.hpp"

namespace gristmill::ptx {

element_type element_type_of(std::string_view name) {
  static constexpr std::pair<std::string_view, element_type> names[] = {{"f16", element_type::f16},
    {"bf16", element_type::bf16}, {"tf32", element_type::tf32}, {"e4m3", element_type::e4m3},
    {"e5m2", element_type::e5m2}, {"s8", element_type::s8}, {"u8", element_type::u8},
    {"s4", element_type::s4}, {"u4", element_type::u4}, {"b1", element_type::b1},
    {"f64", element_type::f64}, {"f32", element_type::f32}, {"s32", element_type::s32}};
  for (const auto& [text, type] : names)
    if (text == name)
      return type;
  return element_type::none;
}

uint32_t bits_of(element_type type) {
  switch (type) {
  case element_type::none:
    return 0;
  case element_type::f16:
  case element_type::bf16:
    return 16;
  case element_type::e4m3:
  case element_type::e5m2:
  case element_type::s8:
  case element_type::u8:
    return 8;
  case element_type::s4:
  case element_type::u4:
    return 4;
  case element_type::b1:
    return 1;
  case element_type::f64:
    return 64;
  case element_type::tf32:
  case element_type::f32:
  case element_type::s32:
    return 32;
  }
  return 0;
}

namespace {

struct float8_table {
  float numbers[256];
  float8_table(uint32_t mantissa, int bias, bool has_infinity) {
    for (uint32_t bits = 0; bits < 256; ++bits) {
      const uint32_t exponent = (bits & 0x7f) >> mantissa;
      const uint32_t fraction = bits & ((1U << mantissa) - 1);
      const float sign = bits & 0x80 ? -1.0F : 1.0F;
      const auto steps = static_cast<float>(exponent == 0 ? fraction : fraction + (1U << mantissa));
      const int scale =
        static_cast<int>(std::max(exponent, 1U)) - bias - static_cast<int>(mantissa);
      if (has_infinity && exponent == 31)
        numbers[bits] = fraction != 0 ? tables::canonical_nan(0.0F) : sign * __builtin_inff();
      else if (!has_infinity && (bits & 0x7f) == 0x7f)
        numbers[bits] = tables::canonical_nan(0.0F);
      else
        numbers[bits] = sign * __builtin_ldexpf(steps, scale);
    }
  }
};

} // namespace

const float* float8_numbers(element_type type) {
  static const float8_table e4m3(3, 7, false);
  static const float8_table e5m2(2, 15, true);
  return type == element_type::e4m3 ? e4m3.numbers : e5m2.numbers;
}

namespace {

/// Elements that one register holds.
uint32_t elements_of(element_type type) {
  return std::max(1U, 32 / bits_of(type));
}

} // namespace

uint32_t matrix_registers(uint32_t m, uint32_t n, uint32_t k, matrix_role role, element_type type) {
  const uint32_t elements = role == matrix_role::left ? m * k
    : role == matrix_role::right                      ? k * n
                                                      : m * n;
  return elements / warp_lanes / elements_of(type);
}

matrix_place place_in_matrix(uint32_t m, uint32_t n, uint32_t k, matrix_role role,
  element_type type, uint32_t lane, uint32_t i, uint32_t j) {
  const uint32_t g = lane >> 2;
  const uint32_t t = lane & 3;
  const uint32_t e = elements_of(type);
  if (role == matrix_role::sum) {
    // Values in the order of rows g, g + 8, then of tiles, which go along the longer side.
    const uint32_t value = i * e + j;
    const uint32_t column = 2 * t + (value & 1);
    const uint32_t tile = value >> 2;
    const uint32_t row = g + 8 * (value >> 1 & 1);
    if (n == 32)
      return {column, row + 16 * tile};
    if (m == 8)
      return {g, column};
    return n == 8 ? matrix_place{row + 16 * tile, column} : matrix_place{row, column + 8 * tile};
  }
  const uint32_t deep = k / (4 * e);
  const uint32_t inner = i % (2 * deep);
  if (role == matrix_role::right && n == 32)
    return {t * e + j + (inner >> 1) * 4 * e, g + 8 * (inner & 1) + 16 * (i / (2 * deep))};
  if (role == matrix_role::right)
    return {t * e + j + i % deep * 4 * e, g + 8 * (i / deep)};
  if (m == 8)
    return {g, t * e + j + i * 4 * e};
  return {g + 8 * (inner & 1) + 16 * (i / (2 * deep)), t * e + j + (inner >> 1) * 4 * e};
}

} // namespace gristmill::ptx
