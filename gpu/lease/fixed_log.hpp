#pragma once

#include <array>
#include <cstdint>

namespace gristmill {

/// log2 of a number of at least 1, times 2^32, cut to an integer. By squaring: each of the 32
/// binary places asks whether the square of what is left reaches 2. Exact to the last place, and
/// the same on every machine.
constexpr int64_t log2_q32(unsigned __int128 x) {
  int whole = 0;
  for (auto rest = x >> 1; rest != 0; rest >>= 1)
    ++whole;
  // 1 <= mantissa < 2, times 2^63.
  uint64_t mantissa = static_cast<uint64_t>(whole >= 63 ? x >> (whole - 63) : x << (63 - whole));
  int64_t out = whole;
  for (int place = 0; place < 32; ++place) {
    auto square = static_cast<unsigned __int128>(mantissa) * mantissa >> 63;
    bool reaches_two = square >> 64 != 0;
    mantissa = static_cast<uint64_t>(reaches_two ? square >> 1 : square);
    out = out * 2 + (reaches_two ? 1 : 0);
  }
  return out;
}

/// Steps in which a decay by half is made.
inline constexpr uint64_t halving_steps = 64;

namespace fixed_log_detail {

constexpr uint64_t root(unsigned __int128 x) {
  unsigned __int128 low = 0;
  unsigned __int128 high = static_cast<unsigned __int128>(1) << 63;
  while (high - low > 1) {
    auto middle = (low + high) / 2;
    (middle * middle <= x ? low : high) = middle;
  }
  return static_cast<uint64_t>(low);
}

constexpr std::array<uint64_t, halving_steps> decay_table() {
  // Six square roots of 1/2 make 2^(-1/64), times 2^62.
  uint64_t step = uint64_t{1} << 61;
  for (int i = 0; i < 6; ++i)
    step = root(static_cast<unsigned __int128>(step) << 62);
  std::array<uint64_t, halving_steps> out{};
  uint64_t value = uint64_t{1} << 62;
  for (auto& entry : out) {
    entry = value >> 30;
    value = static_cast<uint64_t>(static_cast<unsigned __int128>(value) * step >> 62);
  }
  return out;
}

inline constexpr auto decay = decay_table();

} // namespace fixed_log_detail

/// value * 2^(-steps / 64), rounded down; `value` is not negative.
constexpr __int128 decayed(__int128 value, uint64_t steps) {
  auto halvings = steps / halving_steps;
  if (halvings >= 127)
    return 0;
  value >>= halvings;
  auto factor = static_cast<__int128>(fixed_log_detail::decay[steps % halving_steps]);
  // In two parts, so that nothing overflows.
  return (value >> 32) * factor + ((value & 0xffff'ffff) * factor >> 32);
}

} // namespace gristmill
