#include "simulation/model/counter_stream.hpp"

#include <cmath>
#include <numbers>

namespace gristmill {

namespace {

uint64_t mixed(uint64_t z) {
  z = (z ^ z >> 30) * 0xbf58'476d'1ce4'e5b9;
  z = (z ^ z >> 27) * 0x94d0'49bb'1331'11eb;
  return z ^ z >> 31;
}

} // namespace

uint64_t counter_word(uint64_t seed, uint64_t stream, uint64_t index) {
  constexpr uint64_t golden = 0x9e37'79b9'7f4a'7c15;
  return mixed(mixed(mixed(seed + golden) + stream * golden + 1) + index * golden + 2);
}

double counter_unit(uint64_t seed, uint64_t stream, uint64_t index) {
  return (static_cast<double>(counter_word(seed, stream, index) >> 11) + 1) * 0x1p-53;
}

double counter_stream::unit() {
  return counter_unit(seed_, stream_, index_++);
}

double counter_stream::exponential() {
  return -std::log(unit());
}

double counter_stream::normal() {
  const double radius = std::sqrt(-2 * std::log(unit()));
  return radius * std::cos(2 * std::numbers::pi * unit());
}

double counter_stream::lognormal(double mu, double sigma) {
  return std::exp(mu + sigma * normal());
}

double counter_stream::beta_one(double b) {
  return 1 - std::pow(unit(), 1 / b);
}

uint64_t counter_stream::geometric(double mean) {
  if (!(mean > 0))
    return 0;
  const double draws = std::floor(std::log(unit()) / std::log(mean / (1 + mean)));
  return draws < 1e9 ? static_cast<uint64_t>(draws) : 1'000'000'000;
}

std::chrono::nanoseconds time_of(double seconds) {
  if (!(seconds > 0))
    return std::chrono::nanoseconds{0};
  if (seconds >= 9.2e9)
    return std::chrono::nanoseconds::max();
  return std::chrono::nanoseconds{std::llround(seconds * 1e9)};
}

double seconds_of(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

} // namespace gristmill
