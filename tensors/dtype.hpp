#pragma once

#include "messages/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// The element types of the interchange format (specification 1.2). Both fp4 names mean the same
/// packed storage: two values a byte, the even index in the low nibble.
enum class dtype : uint8_t {
  float64,
  float32,
  float16,
  bfloat16,
  float8_e4m3fn,
  float8_e5m2,
  float4_e2m1,
  float4_e2m1fn_x2,
  int64,
  int32,
  int16,
  int8,
  boolean,
};

/// Exact and case-sensitive, as the format demands; nothing for any other text.
std::optional<dtype> parse_dtype(std::string_view text);

/// The name as it stands in files; `boolean` is written "bool".
std::string_view name(dtype type);

/// All names in the order of the enumeration, for messages that list the valid choices.
const std::vector<std::string>& dtype_names();

bool is_float(dtype type);
/// True for the types that are stored two values a byte.
bool is_packed(dtype type);
/// Bits that one declared element takes in storage: 4 for fp4, 8 for bool.
uint64_t element_bits(dtype type);

/// The product of the dimensions; 1 for a 0-dimensional tensor. Refuses a negative dimension and
/// a product above 2^62.
result<uint64_t> element_count(const std::vector<int64_t>& shape);

/// Bytes of the contiguous tensor. A packed type needs an even last dimension.
result<uint64_t> storage_bytes(dtype type, const std::vector<int64_t>& shape);

/// "[2, 3]", for messages.
std::string shape_text(const std::vector<int64_t>& shape);

} // namespace gristmill
