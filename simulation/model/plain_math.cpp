#include "simulation/model/plain_math.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace gristmill {

namespace {

constexpr uint32_t parts = 128;
constexpr double ln2 = 0.69314718055994530942;
/// ln 2 / 128 in two pieces: the first has few enough bits that its product with a count of parts
/// is exact.
constexpr double part_high = 0x1.62e42fefp-8;
constexpr double part_low = 0x1.473de6af278edp-41;

/// By the series of 2 atanh((x - 1)/(x + 1)); x between 1 and 2.
constexpr double log_by_series(double x) {
  const double s = (x - 1) / (x + 1);
  double sum = 0;
  for (int k = 41; k > 0; k -= 2)
    sum = sum * (s * s) + 1.0 / k;
  return 2 * s * sum;
}

constexpr double exp_by_series(double x) {
  double sum = 1;
  for (int k = 24; k > 0; --k)
    sum = 1 + sum * x / k;
  return sum;
}

struct log_part {
  double inverse = 0;
  double log = 0;
};

constexpr std::array<log_part, parts> log_table() {
  std::array<log_part, parts> out{};
  for (uint32_t i = 0; i < parts; ++i) {
    out[i].inverse = 1 / (1 + (i + 0.5) / parts);
    // Of the inverse as it is rounded, so that their product with the argument fits.
    out[i].log = log_by_series(1 / out[i].inverse);
  }
  return out;
}

constexpr std::array<double, parts> exp_table() {
  std::array<double, parts> out{};
  for (uint32_t i = 0; i < parts; ++i)
    out[i] = exp_by_series(ln2 * i / parts);
  return out;
}

constexpr auto logs = log_table();
constexpr auto exps = exp_table();

constexpr std::array<double, 6> middle_top = {2.50662827463634892, -27.450830470856642,
  108.539565231408, -183.819239598442732, 118.53272117348541, -15.0594585129931559};
constexpr std::array<double, 6> middle_bottom = {1.0, -11.9984944565531057, 53.5629077794129436,
  -108.043248363960941, 93.3113198659689892, -24.3261090707132445};
constexpr std::array<double, 6> tail_top = {-3.1901517229780125, -8.35938631528745915,
  1.99047744574443187, 4.81850172258394376, 1.17501276175087684, 0.0663653042040262452};
constexpr std::array<double, 6> tail_bottom = {1.0, 5.57330443956629358, 5.13034732640391437,
  1.1769259926990338, 0.0663393858966043829, 2.55063592825352993e-7};

double polynomial(const std::array<double, 6>& c, double x) {
  const double x2 = x * x;
  return c[0] + c[1] * x + x2 * (c[2] + c[3] * x + x2 * (c[4] + c[5] * x));
}

} // namespace

double plain_log(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  const auto exponent = static_cast<int>(bits >> 52) - 1023;
  const auto& part = logs[bits >> 45 & (parts - 1)];
  const double mantissa = std::bit_cast<double>((bits & 0xf'ffff'ffff'ffff) | 0x3ffull << 52);
  const double r = mantissa * part.inverse - 1;
  const double r2 = r * r;
  const double rest =
    r + r2 * (-0.5 + r * (1.0 / 3) + r2 * (-0.25 + r * 0.2 + r2 * (-1.0 / 6 + r * (1.0 / 7))));
  return exponent * ln2 + (part.log + rest);
}

double plain_exp(double x) {
  if (!(x > -708))
    return 0;
  if (x > 709)
    return std::numeric_limits<double>::infinity();
  const double scaled = x * (parts / ln2);
  const auto count = static_cast<int64_t>(scaled + (scaled < 0 ? -0.5 : 0.5));
  const auto n = static_cast<double>(count);
  const double r = (x - n * part_high) - n * part_low;
  const double r2 = r * r;
  const double grown = 1 + (r + r2 * (0.5 + r * (1.0 / 6) + r2 * (1.0 / 24 + r * (1.0 / 120))));
  // Above 708 the power of two itself may be too large by one.
  const auto power = count >> 7;
  const double half = std::bit_cast<double>(static_cast<uint64_t>(power - 1 + 1023) << 52);
  return exps[static_cast<uint64_t>(count) & (parts - 1)] * grown * half * 2;
}

double plain_pow(double x, double y) {
  if (y == 2)
    return x * x;
  if (y == 4)
    return x * x * (x * x);
  return plain_exp(y * plain_log(x));
}

double normal_quantile(double probability) {
  const double q = probability - 0.5;
  if (q <= 0.425 && q >= -0.425) {
    const double r = q * q;
    return q * (polynomial(middle_top, r) / polynomial(middle_bottom, r));
  }
  double p = q < 0 ? probability : 1 - probability;
  if (!(p > 0x1p-54))
    p = 0x1p-54;
  const double t = std::sqrt(-2 * plain_log(p));
  const double x = polynomial(tail_top, t) / polynomial(tail_bottom, t);
  return q < 0 ? -x : x;
}

} // namespace gristmill
