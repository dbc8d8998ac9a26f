#pragma once

#include <cstdint>
#include <string_view>

namespace gristmill::ptx {

/// A number of the text, without sign.
struct literal {
  bool is_float = false;
  /// 32 for `0f`, 64 for `0d`, 0 for a decimal number or an integer.
  uint8_t float_bits = 0;
  /// The integer, or the bits of `0f` and `0d`.
  uint64_t bits = 0;
  double value = 0;
};

/// Throws `parse_error` when `text` is no number or does not fit into 64 bits.
literal read_literal(std::string_view text, int line);

/// The same for an integer in 0..max.
uint64_t read_integer(std::string_view text, uint64_t max, int line);

} // namespace gristmill::ptx
