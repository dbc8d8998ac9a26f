#pragma once

#include "simulation/model/plain_math.hpp"

#include <chrono>
#include <cstdint>

namespace gristmill {

/// A bijection of 64-bit words that leaves no pattern.
constexpr uint64_t mixed_word(uint64_t z) {
  z = (z ^ z >> 30) * 0xbf58'476d'1ce4'e5b9;
  z = (z ^ z >> 27) * 0x94d0'49bb'1331'11eb;
  return z ^ z >> 31;
}

/// Word `index` of the stream (seed, stream): a function of its arguments alone, so what one entity
/// draws does not depend on when the others draw (common random numbers).
uint64_t counter_word(uint64_t seed, uint64_t stream, uint64_t index);

/// The same as a number above 0 and at most 1.
double counter_unit(uint64_t seed, uint64_t stream, uint64_t index);

/// A random number stream of one entity for one purpose. Equal (seed, stream) give equal draws on
/// every machine: no function of libm is used (simulation/model/plain_math.hpp).
class counter_stream {
public:
  counter_stream() = default;
  counter_stream(uint64_t seed, uint64_t stream);

  uint64_t word() { return mixed_word(base_ + index_++ * golden + 2); }
  /// Above 0 and at most 1.
  double unit() { return (static_cast<double>(word() >> 11) + 1) * 0x1p-53; }
  /// True with that probability.
  bool chance(double probability) { return unit() <= probability; }
  /// Mean 1.
  double exponential() { return 0 - plain_log(unit()); }
  /// Mean 0, standard deviation 1; one word a draw.
  double normal() { return normal_quantile(unit()); }
  /// exp(mu + sigma times a normal).
  double lognormal(double mu, double sigma) { return plain_exp(mu + sigma * normal()); }
  /// Beta(1, b), by inversion; 1/(1 + b) is the mean.
  double beta_one(double b) { return 1 - plain_exp(plain_log(unit()) / b); }
  /// Failures before the first success, of probability 1/(1 + mean).
  uint64_t geometric(double mean);

  /// Draws so far.
  uint64_t index() const { return index_; }
  /// Goes on at that draw, so that what belongs to the n-th event is the same whatever was drawn
  /// for those before.
  void seek(uint64_t index) { index_ = index; }

private:
  static constexpr uint64_t golden = 0x9e37'79b9'7f4a'7c15;

  uint64_t base_ = 0;
  uint64_t index_ = 0;
};

/// What a stream is for: streams of one seed differ by purpose and entity.
enum class stream_purpose : uint8_t {
  /// What a problem is like.
  problem = 1,
  /// Whether candidates are right, and what they gain: of a problem, by ordinal of the attempt.
  gain,
  /// How long calls take: of an agent, as all that follow.
  think,
  compile,
  /// How long the work on a GPU takes.
  hold,
  /// Whether it hangs or faults.
  fate,
  /// Its mean.
  agent_mean,
  /// When jobs come; entity 0.
  arrival,
  /// Of one job: how many leases it needs, and how long each works.
  job,
  job_hold,
  /// When incidents come by chance, and how long they last: of a law and a GPU, node or model.
  incident,
};

constexpr uint64_t stream_of(stream_purpose purpose, uint64_t entity) {
  return static_cast<uint64_t>(purpose) << 48 | entity;
}

/// Seconds as whole nanoseconds, rounded; 0 for what is negative or no number, the largest time for
/// what is too long.
std::chrono::nanoseconds time_of(double seconds);
double seconds_of(std::chrono::nanoseconds time);

} // namespace gristmill
