#pragma once

#include <cstdint>

/// The numbers of the operands of `tcgen05.mma`, as they lie in memory.
namespace gristmill::ptx {

enum class number_type : uint8_t {
  f16,
  bf16,
  tf32,
  e4m3,
  e5m2,
  e2m3,
  e3m2,
  e2m1,
  s8,
  u8,
  ue8m0,
  ue4m3,
  f32,
  s32
};

uint32_t bits_of(number_type type);

/// The elements in 16 bytes of shared memory; answers how many there are: 4 to 16, or 32 of e2m1
/// where `packed`. Else 16 elements of 4 or 6 bits stand side by side at the beginning, and the
/// rest is padding.
uint32_t numbers_of(number_type type, bool packed, const uint8_t* from, float* out);
/// The same of 16 bytes of tensor memory, where elements of 4 and 6 bits have a byte each.
uint32_t numbers_in_bytes(number_type type, bool packed, const uint8_t* from, float* out);
/// Of a block scale.
float scale_number(number_type type, uint8_t bits);
/// Of an accumulator of f32 or f16, in 32 bits.
float result_number(number_type type, uint32_t bits);
uint32_t result_bits(number_type type, float value);

} // namespace gristmill::ptx
