#include "tensors/ulp_histogram.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>

namespace gristmill {

namespace {

using floats4 = float __attribute__((vector_size(16)));
using ints4 = int32_t __attribute__((vector_size(16)));
using naturals4 = uint32_t __attribute__((vector_size(16)));
using shorts8 = int16_t __attribute__((vector_size(16)));
using naturals8 = uint16_t __attribute__((vector_size(16)));
using longs2 = int64_t __attribute__((vector_size(16)));

template <class T>
T load(const std::byte* from, size_t index = 0) {
  T value;
  std::memcpy(&value, from + index * sizeof value, sizeof value);
  return value;
}

/// The bin of each distance, which is an unsigned number of 32 bits.
ints4 bins_of(ints4 distance) {
  const ints4 top = distance < 0;
  distance &= ~top;
  // A float holds 24 bits; what would be rounded up to the next power of two must not be.
  distance &= ~((distance > 0xffffff) & 0xff);
  const ints4 bin = ((ints4) __builtin_convertvector(distance, floats4) >> 23) - 126;
  return (bin & (bin > 0)) | (top & 32);
}

/// Bits with a sign as numbers whose differences are distances.
shorts8 ordinals(shorts8 bits) {
  const shorts8 sign = bits < 0;
  return ((bits & int16_t{0x7fff}) ^ sign) - sign;
}

/// The bits of infinity, which is the least that is not finite. E4M3 has no infinity, and one NaN.
uint64_t infinity_of(dtype type) {
  switch (type) {
  case dtype::float64:
    return 0x7ff0'0000'0000'0000;
  case dtype::float32:
    return 0x7f80'0000;
  case dtype::float16:
    return 0x7c00;
  case dtype::bfloat16:
    return 0x7f80;
  case dtype::float8_e4m3fn:
    return 0x7f;
  case dtype::float8_e5m2:
    return 0x7c;
  default:
    return std::numeric_limits<uint64_t>::max();
  }
}

/// The bin of one pair; nothing when one of the two is not finite.
template <class Bits>
std::optional<size_t> bin_of(Bits x, Bits y, Bits infinity) {
  constexpr auto sign = static_cast<Bits>(Bits{1} << (sizeof(Bits) * 8 - 1));
  const auto size_x = static_cast<Bits>(x & static_cast<Bits>(~sign));
  const auto size_y = static_cast<Bits>(y & static_cast<Bits>(~sign));
  if (size_x >= infinity || size_y >= infinity)
    return std::nullopt;
  uint64_t distance = 0;
  if (((x ^ y) & sign) != 0)
    distance = uint64_t{size_x} + size_y;
  else
    distance = static_cast<uint64_t>(size_x > size_y ? size_x - size_y : size_y - size_x);
  return static_cast<size_t>(std::bit_width(distance));
}

bool is_byte_wide(dtype type) {
  return is_float(type) && element_bits(type) <= 8;
}

} // namespace

ulp_histogram::ulp_histogram(dtype type) : type_(type) {
  if (is_byte_wide(type))
    pairs_.resize(size_t{1} << 16);
}

template <class Bits>
void ulp_histogram::add_each(const std::byte* x, const std::byte* y, size_t count) {
  const auto infinity = static_cast<Bits>(infinity_of(type_));
  for (size_t i = 0; i < count; ++i)
    if (const auto bin = bin_of(load<Bits>(x, i), load<Bits>(y, i), infinity))
      ++counts_[i % tables][*bin];
}

void ulp_histogram::add_16(const std::byte* x, const std::byte* y, size_t count) {
  // Honest outputs lie a few units away, so small distances are counted in the lanes.
  constexpr size_t wide = 8;
  constexpr size_t piece = size_t{wide} * 4096;
  constexpr int16_t large = 8;
  size_t i = 0;
  while (i + wide <= count) {
    shorts8 from_1{}, from_2{}, from_4{}, from_8{};
    const size_t begin = i;
    for (; i + wide <= count && i - begin < piece; i += wide) {
      const auto a = ordinals(load<shorts8>(x + i * sizeof(int16_t)));
      const auto b = ordinals(load<shorts8>(y + i * sizeof(int16_t)));
      // Of 2^15 and more the difference has lost its top; what is left of it is large too.
      const auto between = (naturals8)a - (naturals8)b;
      const auto distance = (shorts8)((shorts8)between < 0 ? -between : between);
      const shorts8 is_large = (distance >= large) | (distance < 0);
      from_1 -= distance != 0;
      from_2 -= (distance >= 2) | is_large;
      from_4 -= (distance >= 4) | is_large;
      from_8 -= is_large;
      longs2 any;
      std::memcpy(&any, &is_large, sizeof any);
      if ((any[0] | any[1]) == 0)
        continue;
      for (size_t lane = 0; lane < wide; ++lane)
        if (is_large[lane] != 0)
          ++counts_[lane % tables][*bin_of<uint16_t>(
            load<uint16_t>(x, i + lane), load<uint16_t>(y, i + lane), UINT16_MAX)];
    }
    uint64_t n1 = 0, n2 = 0, n4 = 0, n8 = 0;
    for (size_t lane = 0; lane < wide; ++lane) {
      n1 += static_cast<uint64_t>(from_1[lane]);
      n2 += static_cast<uint64_t>(from_2[lane]);
      n4 += static_cast<uint64_t>(from_4[lane]);
      n8 += static_cast<uint64_t>(from_8[lane]);
    }
    counts_[0][0] += i - begin - n1;
    counts_[0][1] += n1 - n2;
    counts_[0][2] += n2 - n4;
    counts_[0][3] += n4 - n8;
  }
  add_each<uint16_t>(x + i * sizeof(int16_t), y + i * sizeof(int16_t), count - i);
}

void ulp_histogram::add_32(const std::byte* x, const std::byte* y, size_t count) {
  constexpr int32_t magnitude = 0x7fffffff;
  size_t i = 0;
  for (; i + tables <= count; i += tables) {
    const auto a = load<ints4>(x + i * sizeof(int32_t));
    const auto b = load<ints4>(y + i * sizeof(int32_t));
    const ints4 size_a = a & magnitude;
    const ints4 size_b = b & magnitude;
    const ints4 between = size_a - size_b;
    // Of two signs the sizes add up, to less than 2^32.
    const ints4 apart = (a ^ b) < 0 ? (ints4)((naturals4)size_a + (naturals4)size_b)
                                    : (between < 0 ? -between : between);
    const ints4 bin = bins_of(apart);
    for (size_t lane = 0; lane < tables; ++lane)
      ++counts_[lane][static_cast<size_t>(bin[lane])];
  }
  add_each<uint32_t>(x + i * sizeof(int32_t), y + i * sizeof(int32_t), count - i);
}

void ulp_histogram::fold_pairs(counts& into) const {
  constexpr uint8_t no_infinity = 0xff;
  const auto infinity = static_cast<uint8_t>(infinity_of(type_));
  for (size_t pair = 0; pair < pairs_.size(); ++pair) {
    if (pairs_[pair] == 0)
      continue;
    const auto x = static_cast<uint8_t>(pair >> 8);
    const auto y = static_cast<uint8_t>(pair);
    if (!is_packed(type_)) {
      if (const auto bin = bin_of(x, y, infinity))
        into[*bin] += pairs_[pair];
      continue;
    }
    // Four bits, of which the top one is the sign: as the upper half of a byte.
    for (const int shift : {0, 4})
      if (const auto bin = bin_of(static_cast<uint8_t>(x << shift & 0xf0),
            static_cast<uint8_t>(y << shift & 0xf0), no_infinity))
        into[*bin < 4 ? 0 : *bin - 4] += pairs_[pair];
  }
}

void ulp_histogram::add(
  std::span<const std::byte> x, std::span<const std::byte> y, bool all_finite) {
  const size_t bytes = std::min(x.size(), y.size());
  switch (type_) {
  case dtype::float64:
    return add_each<uint64_t>(x.data(), y.data(), bytes / 8);
  case dtype::float32:
    if (all_finite)
      return add_32(x.data(), y.data(), bytes / 4);
    return add_each<uint32_t>(x.data(), y.data(), bytes / 4);
  case dtype::float16:
  case dtype::bfloat16:
    if (all_finite)
      return add_16(x.data(), y.data(), bytes / 2);
    return add_each<uint16_t>(x.data(), y.data(), bytes / 2);
  default:
    for (size_t i = 0; !pairs_.empty() && i < bytes; ++i)
      ++pairs_[static_cast<size_t>(x[i]) << 8 | static_cast<size_t>(y[i])];
  }
}

std::vector<uint64_t> ulp_histogram::bins() const {
  counts sum{};
  for (const auto& table : counts_)
    for (size_t i = 0; i < bins_max; ++i)
      sum[i] += table[i];
  fold_pairs(sum);
  std::vector<uint64_t> all(sum.begin(), sum.end());
  while (!all.empty() && all.back() == 0)
    all.pop_back();
  return all;
}

} // namespace gristmill
