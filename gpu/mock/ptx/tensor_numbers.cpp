#include "gpu/mock/ptx/tensor_numbers.hpp"

#include "gpu/mock/ptx/matrix_shapes.hpp"
#include "gpu/mock/ptx/tcgen05.hpp"

#include <bit>
#include <cstring>
#include <limits>

#define GRISTMILL_PTX_LANES tensor_cores
#include "gpu/mock/ptx/lanes/short_floats.hpp"

namespace gristmill::ptx {
namespace {

/// Bits `at` to `at + width - 1` of a row of bytes.
uint32_t field(const uint8_t* from, uint32_t at, uint32_t width) {
  uint32_t two = from[at / 8];
  if (at % 8 + width > 8)
    two |= static_cast<uint32_t>(from[at / 8 + 1]) << 8;
  return two >> at % 8 & ((1U << width) - 1);
}

float short_number(number_type type, uint32_t bits) {
  using namespace tensor_cores;
  return type == number_type::e2m1 ? from_short<e2m1>(bits)
    : type == number_type::e2m3    ? from_short<e2m3>(bits)
                                   : from_short<e3m2>(bits);
}

float byte_number(number_type type, uint8_t bits) {
  switch (type) {
  case number_type::s8:
    return static_cast<int8_t>(bits);
  case number_type::u8:
    return bits;
  default:
    return float8_numbers(
      type == number_type::e5m2 ? element_type::e5m2 : element_type::e4m3)[bits];
  }
}

} // namespace

uint32_t bits_of(number_type type) {
  switch (type) {
  case number_type::f16:
  case number_type::bf16:
    return 16;
  case number_type::tf32:
  case number_type::f32:
  case number_type::s32:
    return 32;
  case number_type::e2m3:
  case number_type::e3m2:
    return 6;
  case number_type::e2m1:
    return 4;
  default:
    return 8;
  }
}

uint32_t numbers_of(number_type type, bool packed, const uint8_t* from, float* out) {
  const uint32_t width = bits_of(type);
  if (width >= 8)
    return numbers_in_bytes(type, packed, from, out);
  const uint32_t count = packed ? 32 : 16;
  for (uint32_t i = 0; i < count; ++i)
    out[i] = short_number(type, field(from, i * width, width));
  return count;
}

uint32_t numbers_in_bytes(number_type type, bool packed, const uint8_t* from, float* out) {
  const uint32_t width = bits_of(type);
  if (width < 8) {
    if (packed)
      return numbers_of(type, true, from, out);
    for (uint32_t i = 0; i < 16; ++i)
      out[i] = short_number(type, type == number_type::e2m1 ? from[i] >> 2 & 15U : from[i] & 63U);
    return 16;
  }
  if (width == 8) {
    for (uint32_t i = 0; i < 16; ++i)
      out[i] = byte_number(type, from[i]);
    return 16;
  }
  if (width == 16) {
    for (uint32_t i = 0; i < 8; ++i) {
      uint16_t bits = 0;
      std::memcpy(&bits, from + 2 * i, 2);
      out[i] =
        type == number_type::f16 ? tensor_cores::from_half(bits) : tensor_cores::from_bfloat(bits);
    }
    return 8;
  }
  for (uint32_t i = 0; i < 4; ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, from + 4 * i, 4);
    out[i] = tensor_cores::from_bits(bits & 0xffffe000); // The unit does not look at the rest.
  }
  return 4;
}

float scale_number(number_type type, uint8_t bits) {
  if (type == number_type::ue4m3)
    return float8_numbers(element_type::e4m3)[bits & 0x7f];
  return bits == 255 ? std::numeric_limits<float>::quiet_NaN() : __builtin_ldexpf(1.0F, bits - 127);
}

float result_number(number_type type, uint32_t bits) {
  return type == number_type::f16 ? tensor_cores::from_half(static_cast<uint16_t>(bits))
                                  : tensor_cores::from_bits(bits);
}

uint32_t result_bits(number_type type, float value) {
  return type == number_type::f16 ? tensor_cores::to_half(value)
                                  : tensor_cores::bits(tensor_cores::settled(value));
}

void unpack_elements(const uint8_t* from, uint32_t bits, uint32_t* words) {
  uint8_t bytes[16];
  for (uint32_t i = 0; i < 16; ++i)
    bytes[i] = static_cast<uint8_t>(field(from, i * bits, bits) << (bits == 4 ? 2 : 0));
  std::memcpy(words, bytes, sizeof bytes);
}

} // namespace gristmill::ptx
