#pragma once

#include <cstdint>

namespace gristmill {

/// Sebastiano Vigna's generator (public domain): the same numbers everywhere. Here because `llm`
/// and `kernels` are neighbours.
class traffic_random {
public:
  explicit traffic_random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  /// From 0 to `last`, both included.
  uint64_t up_to(uint64_t last);

private:
  uint64_t state_;
};

} // namespace gristmill
