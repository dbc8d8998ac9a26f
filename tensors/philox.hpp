#pragma once

#include <array>
#include <cstdint>

namespace gristmill {

/// What makes the values of one tensor: derived by the caller from the run's secret, the
/// definition, the workload, the set and the tensor's name.
struct tensor_key {
  std::array<uint8_t, 16> bytes{};

  friend bool operator==(const tensor_key&, const tensor_key&) = default;
};

using philox_block = std::array<uint32_t, 4>;

/// Philox4x32 with ten rounds (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as
/// 1, 2, 3", 2011). A pure function of counter and key, so any block can be had without the ones
/// before it.
philox_block philox4x32(const philox_block& counter, const std::array<uint32_t, 2>& key);

/// The stream of one tensor: the first eight bytes of its key are the Philox key, the other eight
/// the upper half of the counter, and the lower half counts the blocks.
class philox_stream {
public:
  explicit philox_stream(const tensor_key& key);
  /// Words 4 * index to 4 * index + 3 of the stream.
  philox_block block(uint64_t index) const;

private:
  std::array<uint32_t, 2> key_{};
  std::array<uint32_t, 2> upper_{};
};

} // namespace gristmill
