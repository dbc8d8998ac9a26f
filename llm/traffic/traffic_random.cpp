#include "llm/traffic/traffic_random.hpp"

namespace gristmill {

uint64_t traffic_random::next() {
  uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

uint64_t traffic_random::up_to(uint64_t last) {
  // The bias of the remainder is far below a nanosecond's worth of anything here.
  return last == UINT64_MAX ? next() : next() % (last + 1);
}

} // namespace gristmill
