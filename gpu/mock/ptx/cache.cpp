#include "gpu/mock/ptx/cache.hpp"

#include <algorithm>

namespace gristmill::ptx {

sector_cache::sector_cache(uint64_t bytes, uint32_t ways)
  : ways_(ways), sets_(std::max<uint64_t>(1, bytes / 128 / ways)), lines_(sets_ * ways) {}

sector_cache::line& sector_cache::find(uint64_t tag) {
  // Hashed, as on a GPU: strides of a power of two do not all fall into one set.
  const uint64_t set = ((tag * 0x9E3779B97F4A7C15ULL) >> 32) % sets_;
  line* const first = &lines_[set * ways_];
  line* oldest = first;
  ++clock_;
  for (line* l = first; l != first + ways_; ++l) {
    if (l->tag == tag) {
      l->used = clock_;
      return *l;
    }
    if (l->used < oldest->used)
      oldest = l;
  }
  *oldest = {tag, clock_, 0};
  return *oldest;
}

bool sector_cache::hit(uint64_t sector) {
  line& l = find(sector >> 2);
  const auto bit = static_cast<uint8_t>(1U << (sector & 3));
  const bool present = (l.valid & bit) != 0;
  l.valid = static_cast<uint8_t>(l.valid | bit);
  return present;
}

uint32_t sector_cache::fetch_pair(uint64_t sector) {
  line& l = find(sector >> 2);
  const auto bit = static_cast<uint8_t>(1U << (sector & 3));
  if ((l.valid & bit) != 0)
    return 0;
  const auto pair = static_cast<uint8_t>(3U << (sector & 2));
  const uint32_t missing = (l.valid & pair) == 0 ? 2 : 1;
  l.valid = static_cast<uint8_t>(l.valid | pair);
  return missing;
}

} // namespace gristmill::ptx
