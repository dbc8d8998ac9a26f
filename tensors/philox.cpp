#include "tensors/philox.hpp"

#include <cstddef>

namespace gristmill {

namespace {

// The two multipliers and the two key increments of the published algorithm.
constexpr uint64_t multiplier_0 = 0xD2511F53;
constexpr uint64_t multiplier_1 = 0xCD9E8D57;
constexpr uint32_t increment_0 = 0x9E3779B9;
constexpr uint32_t increment_1 = 0xBB67AE85;
constexpr int rounds = 10;

uint32_t word(const tensor_key& key, size_t index) {
  // Byte by byte: the same key on a machine of either byte order.
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i)
    value |= static_cast<uint32_t>(key.bytes[4 * index + i]) << (8 * i);
  return value;
}

} // namespace

philox_block philox4x32(const philox_block& counter, const std::array<uint32_t, 2>& key) {
  auto [x0, x1, x2, x3] = counter;
  auto [k0, k1] = key;
  for (int round = 0; round < rounds; ++round) {
    const uint64_t product_0 = multiplier_0 * x0;
    const uint64_t product_1 = multiplier_1 * x2;
    x0 = static_cast<uint32_t>(product_1 >> 32) ^ x1 ^ k0;
    x1 = static_cast<uint32_t>(product_1);
    x2 = static_cast<uint32_t>(product_0 >> 32) ^ x3 ^ k1;
    x3 = static_cast<uint32_t>(product_0);
    k0 += increment_0;
    k1 += increment_1;
  }
  return {x0, x1, x2, x3};
}

philox_stream::philox_stream(const tensor_key& key)
  : key_{word(key, 0), word(key, 1)}, upper_{word(key, 2), word(key, 3)} {}

philox_block philox_stream::block(uint64_t index) const {
  return philox4x32(
    {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), upper_[0], upper_[1]}, key_);
}

} // namespace gristmill
