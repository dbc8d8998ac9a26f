#include "gpu/mock/ptx/cache.hpp"

#include <algorithm>

namespace gristmill::ptx {

sector_cache::sector_cache(uint64_t bytes, uint32_t ways)
  : ways_(ways), sets_(std::max<uint64_t>(1, bytes / 128 / ways)), lines_(sets_ * ways) {}

bool sector_cache::hit(uint64_t sector) {
  const uint64_t tag = sector >> 2;
  const auto bit = static_cast<uint8_t>(1U << (sector & 3));
  // Hashed, as on a GPU: strides of a power of two do not all fall into one set.
  const uint64_t set = ((tag * 0x9E3779B97F4A7C15ULL) >> 32) % sets_;
  line* const first = &lines_[set * ways_];
  line* oldest = first;
  ++clock_;
  for (line* l = first; l != first + ways_; ++l) {
    if (l->tag == tag) {
      l->used = clock_;
      const bool present = (l->valid & bit) != 0;
      l->valid = static_cast<uint8_t>(l->valid | bit);
      return present;
    }
    if (l->used < oldest->used)
      oldest = l;
  }
  *oldest = {tag, clock_, bit};
  return false;
}

} // namespace gristmill::ptx
