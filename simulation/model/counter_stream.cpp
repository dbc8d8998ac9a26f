#include "simulation/model/counter_stream.hpp"

#include <cmath>

namespace gristmill {

counter_stream::counter_stream(uint64_t seed, uint64_t stream)
  : base_(mixed_word(mixed_word(seed + golden) + stream * golden + 1)) {}

uint64_t counter_word(uint64_t seed, uint64_t stream, uint64_t index) {
  counter_stream draws(seed, stream);
  draws.seek(index);
  return draws.word();
}

double counter_unit(uint64_t seed, uint64_t stream, uint64_t index) {
  counter_stream draws(seed, stream);
  draws.seek(index);
  return draws.unit();
}

uint64_t counter_stream::geometric(double mean) {
  if (!(mean > 0))
    return 0;
  const double draws = std::floor(plain_log(unit()) / plain_log(mean / (1 + mean)));
  return draws < 1e9 ? static_cast<uint64_t>(draws) : 1'000'000'000;
}

std::chrono::nanoseconds time_of(double seconds) {
  if (!(seconds > 0))
    return std::chrono::nanoseconds{0};
  if (seconds >= 9.2e9)
    return std::chrono::nanoseconds::max();
  return std::chrono::nanoseconds{static_cast<int64_t>(seconds * 1e9 + 0.5)};
}

double seconds_of(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

} // namespace gristmill
