#pragma once

#include <chrono>
#include <cstdint>

namespace gristmill {

/// Word `index` of the stream (seed, stream): a function of its arguments alone, so what one entity
/// draws does not depend on when the others draw (common random numbers).
uint64_t counter_word(uint64_t seed, uint64_t stream, uint64_t index);

/// The same as a number above 0 and at most 1.
double counter_unit(uint64_t seed, uint64_t stream, uint64_t index);

/// A random number stream of one entity for one purpose. Equal (seed, stream) give equal draws on
/// every machine of one ABI; libm's `log`, `exp`, `cos` and `pow` are the only functions used
/// besides arithmetic.
class counter_stream {
public:
  counter_stream() = default;
  counter_stream(uint64_t seed, uint64_t stream) : seed_(seed), stream_(stream) {}

  uint64_t word() { return counter_word(seed_, stream_, index_++); }
  /// Above 0 and at most 1.
  double unit();
  /// True with that probability.
  bool chance(double probability) { return unit() <= probability; }
  /// Mean 1.
  double exponential();
  /// Mean 0, standard deviation 1; two words a draw.
  double normal();
  /// exp(mu + sigma times a normal).
  double lognormal(double mu, double sigma);
  /// Beta(1, b), by inversion; 1/(1 + b) is the mean.
  double beta_one(double b);
  /// Failures before the first success, of probability 1/(1 + mean).
  uint64_t geometric(double mean);

  /// Draws so far, so that a stream can go on where it was.
  uint64_t index() const { return index_; }

private:
  uint64_t seed_ = 0;
  uint64_t stream_ = 0;
  uint64_t index_ = 0;
};

/// What a stream is for: streams of one seed differ by purpose and entity.
enum class stream_purpose : uint8_t {
  /// What a problem is like.
  problem = 1,
  /// Whether candidates are right, and what they gain.
  gain,
};

constexpr uint64_t stream_of(stream_purpose purpose, uint64_t entity) {
  return static_cast<uint64_t>(purpose) << 48 | entity;
}

/// Seconds as whole nanoseconds, rounded; 0 for what is negative or no number, the largest time for
/// what is too long.
std::chrono::nanoseconds time_of(double seconds);
double seconds_of(std::chrono::nanoseconds time);

} // namespace gristmill
