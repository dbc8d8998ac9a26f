#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gristmill {

/// What a multiply-add unit is fed with, slowest first. Peak rates differ by these.
enum class mac_class : uint8_t {
  /// float64.
  f64,
  /// float32, at the rate of the fastest unit that takes it (tf32).
  f32,
  /// float16 and bfloat16.
  f16,
  /// Both float8 types.
  f8,
  int8,
  /// Packed float4.
  f4,
};

inline constexpr size_t mac_classes = 6;
inline constexpr std::array<std::string_view, mac_classes> mac_class_names{
  "fp64", "fp32", "16-bit", "fp8", "int8", "fp4"};

/// Counts, or rates a second, one for each class.
using mac_counts = std::array<uint64_t, mac_classes>;

} // namespace gristmill
