#pragma once

#include <cstdint>

namespace gristmill {

/// A small generator of our own, so that a seed means the same everywhere (G. Steele, D. Lea, C.
/// Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
class splitmix64 {
public:
  explicit splitmix64(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15U;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }

  /// Below `bound`, which must not be 0; the bias of a remainder does not matter to a search.
  uint64_t below(uint64_t bound) { return next() % bound; }

  /// In [0, 1).
  double share() { return static_cast<double>(next() >> 11) * 0x1p-53; }

private:
  uint64_t state_;
};

} // namespace gristmill
