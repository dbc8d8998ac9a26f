#include "tensors/elementary.hpp"

#include <bit>
#include <cmath>
#include <cstddef>

namespace gristmill::elementary {

namespace {

/// c[0] + x * (c[1] + x * (c[2] + ...)).
template <size_t N>
constexpr double polynomial(const double (&c)[N], double x) {
  double sum = c[N - 1];
  for (size_t i = N - 1; i-- > 0;)
    sum = sum * x + c[i];
  return sum;
}

constexpr double ln2 = 0.693147180559945309417;

// Rational functions fitted for this file at Chebyshev nodes with 40 digits. Near the middle the
// quantile is q * P(q^2) / Q(q^2), where q is the distance of the probability from 1/2 (at most
// 0.425; relative error 4e-8). In the tails it is P(t) / Q(t) with t = sqrt(-2 log(p)), up to
// p = 2^-33 (relative error 6e-9).
constexpr double middle_reach = 0.425;
constexpr double middle_p[] = {2.50662827365836769, -17.4509127018373069, 34.5481973578478966,
  -15.2037034155230199, -2.3386976245053468};
constexpr double middle_q[] = {
  1.0, -8.00910473061287376, 19.8669730264391175, -14.6774000777947833};
constexpr double tail_p[] = {-2.98517342408695563, -4.59015467232942418, 2.90126677558297767,
  2.4060533493078132, 0.229518934731128518};
constexpr double tail_q[] = {1.0, 3.90448765003896697, 2.41375380117842829, 0.229439825558087957};

double sin_of_quarter(double x) {
  // |x| <= pi / 2; the next term of the series is below 1e-15.
  constexpr double c[] = {1.0, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800,
    1.0 / 6227020800.0, -1.0 / 1307674368000.0, 1.0 / 355687428096000.0,
    -1.0 / 121645100408832000.0};
  return x * polynomial(c, x * x);
}

} // namespace

double log(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  auto exponent = static_cast<int>(bits >> 52) - 1023;
  // The mantissa in [1, 2), then in [0.71, 1.42) so that the series below converges fast.
  double m = std::bit_cast<double>((bits & 0xfffffffffffff) | 0x3ff0000000000000);
  if (m > 1.41421356) {
    m *= 0.5;
    ++exponent;
  }
  // log(m) = 2 artanh((m - 1) / (m + 1)).
  constexpr double c[] = {2.0, 2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13, 2.0 / 15};
  const double s = (m - 1) / (m + 1);
  return exponent * ln2 + s * polynomial(c, s * s);
}

double exp(double x) {
  // x = n ln 2 + r with |r| <= 0.35; the high part of ln 2 has few bits, so n * high is exact.
  constexpr double ln2_high = 0.693145751953125;
  constexpr double ln2_low = ln2 - ln2_high;
  const auto n = static_cast<int>(x / ln2 + (x < 0 ? -0.5 : 0.5));
  const double r = (x - n * ln2_high) - n * ln2_low;
  constexpr double c[] = {1.0, 1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040,
    1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800};
  const double scale = std::bit_cast<double>(static_cast<uint64_t>(n + 1023) << 52);
  return polynomial(c, r) * scale;
}

double sin(double x) {
  if (x > pi / 2)
    return sin_of_quarter(pi - x);
  if (x < -pi / 2)
    return sin_of_quarter(-pi - x);
  return sin_of_quarter(x);
}

double cos(double x) {
  return sin_of_quarter(pi / 2 - (x < 0 ? -x : x));
}

double normal_quantile(uint32_t word) {
  const bool lower = word < 0x80000000;
  const uint32_t outer = lower ? word : ~word;
  constexpr double unit = 1.0 / 4294967296.0;
  // The probability outside, in (0, 1/2): exact in a double.
  const double p = (static_cast<double>(outer) + 0.5) * unit;
  const double q = 0.5 - p;
  double z = 0;
  if (q <= middle_reach) {
    const double r = q * q;
    z = q * polynomial(middle_p, r) / polynomial(middle_q, r);
  } else {
    const double t = std::sqrt(-2 * log(p));
    z = polynomial(tail_p, t) / polynomial(tail_q, t);
  }
  return lower ? -z : z;
}

} // namespace gristmill::elementary
