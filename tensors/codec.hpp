#pragma once

#include "tensors/dtype.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace gristmill {

/// What an encoder does with a finite value beyond the largest one of the format.
enum class overflow_rule : uint8_t {
  /// Infinity where the format has one, else NaN: what a framework's cast does.
  special,
  /// The largest finite value, as the saturating conversions of the hardware do.
  saturate,
};

// One value at a time. All encoders round to nearest, ties to even, straight from the float; every
// NaN becomes the format's canonical quiet NaN with the sign kept. fp4 has neither NaN nor
// infinity: it always saturates, and a NaN becomes +6.

float float_from_bf16(uint16_t bits);
uint16_t bf16_from_float(float value);

float float_from_fp16(uint16_t bits);
uint16_t fp16_from_float(float value);

float float_from_fp8_e4m3fn(uint8_t bits);
uint8_t fp8_e4m3fn_from_float(float value, overflow_rule rule = overflow_rule::special);

float float_from_fp8_e5m2(uint8_t bits);
uint8_t fp8_e5m2_from_float(float value, overflow_rule rule = overflow_rule::special);

/// Reads the low four bits.
float float_from_fp4(uint8_t nibble);
/// Gives the low four bits.
uint8_t fp4_from_float(float value);

/// Decodes `out.size()` elements of any type. Integers and float64 are rounded to the nearest
/// float; a bool is 0 or 1. `in` must hold exactly the storage of that many elements, and a packed
/// type needs an even number of them.
void decode_to_float(dtype type, std::span<const std::byte> in, std::span<float> out);

/// The inverse. Integers are rounded to nearest even and saturate, a NaN becomes 0; a bool is 1
/// for everything but zero. `special` decides about fp8.
void encode_from_float(dtype type, std::span<const float> in, std::span<std::byte> out,
  overflow_rule rule = overflow_rule::special);

} // namespace gristmill
