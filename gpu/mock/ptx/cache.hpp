#pragma once

#include <cstdint>
#include <vector>

namespace gristmill::ptx {

/// A set-associative cache of 128-byte lines with four 32-byte sectors each; the line used least
/// recently goes first.
class sector_cache {
public:
  sector_cache() = default;
  sector_cache(uint64_t bytes, uint32_t ways);

  /// `sector` is an address divided by 32. Whether it was there; afterwards it is.
  bool hit(uint64_t sector);
  /// The same, but a miss brings both halves of the 64-byte pair that the sector belongs to, as a
  /// read from DRAM does. How many sectors were missing: 0, 1 or 2.
  uint32_t fetch_pair(uint64_t sector);

private:
  struct line {
    uint64_t tag = UINT64_MAX;
    uint32_t used = 0;
    uint8_t valid = 0;
  };
  /// The line of that tag, or the oldest of its set, emptied.
  line& find(uint64_t tag);

  uint32_t ways_ = 1;
  uint64_t sets_ = 0;
  uint32_t clock_ = 0;
  std::vector<line> lines_;
};

} // namespace gristmill::ptx
