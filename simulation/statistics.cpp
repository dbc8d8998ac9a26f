#include "simulation/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gristmill {

namespace {

/// The continued fraction of the incomplete beta function (Lentz's way of evaluating it); x below
/// (a + 1)/(a + b + 2), where it converges fast.
double beta_fraction(double x, double a, double b) {
  constexpr double tiny = 1e-300;
  const auto away_from_zero = [](double v) { return std::fabs(v) < tiny ? tiny : v; };
  double c = 1;
  double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
  double value = d;
  for (int m = 1; m < 10'000; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    value *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    value *= d * c;
    if (std::fabs(d * c - 1) < 1e-15)
      break;
  }
  return value;
}

/// I_x(a, b), regularised.
double incomplete_beta(double x, double a, double b) {
  if (x <= 0 || x >= 1)
    return x <= 0 ? 0 : 1;
  const double front = std::exp(
    std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2))
    return front * beta_fraction(x, a, b) / a;
  return 1 - front * beta_fraction(1 - x, b, a) / b;
}

/// P(T > t) for t >= 0.
double upper_tail(double t, double freedom) {
  return incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5) / 2;
}

double normal_upper_tail(double z) {
  return std::erfc(z / std::sqrt(2.0)) / 2;
}

/// The place above 0 where a falling function has the value `wanted`, which it has somewhere.
template <class F>
double falls_to(double wanted, F tail) {
  double high = 1;
  while (tail(high) > wanted && high < 1e300)
    high *= 2;
  double low = 0;
  for (int i = 0; i < 200 && high - low > 1e-15 * high; ++i) {
    const double middle = (low + high) / 2;
    (tail(middle) > wanted ? low : high) = middle;
  }
  return (low + high) / 2;
}

} // namespace

double student_t_quantile(double probability, uint32_t freedom) {
  if (!(probability > 0 && probability < 1) || freedom == 0)
    return std::numeric_limits<double>::quiet_NaN();
  if (probability < 0.5)
    return -student_t_quantile(1 - probability, freedom);
  if (probability == 0.5)
    return 0;
  const double wanted = 1 - probability;
  const double v = freedom;
  if (freedom <= 10'000)
    return falls_to(wanted, [v](double t) { return upper_tail(t, v); });
  // Close to the normal distribution: the first terms of the expansion in 1/v, whose rest is below
  // 1e-12 here.
  const double z = falls_to(wanted, normal_upper_tail);
  const double z3 = z * z * z;
  return z + (z3 + z) / (4 * v) + (5 * z3 * z * z + 16 * z3 + 3 * z) / (96 * v * v);
}

interval interval_of(const std::vector<double>& values) {
  interval out;
  out.count = static_cast<uint32_t>(values.size());
  out.half = std::numeric_limits<double>::infinity();
  if (values.empty())
    return out;
  double sum = 0;
  for (double v : values)
    sum += v;
  const double n = static_cast<double>(values.size());
  out.mean = sum / n;
  if (values.size() < 2)
    return out;
  double squares = 0;
  for (double v : values)
    squares += (v - out.mean) * (v - out.mean);
  out.deviation = std::sqrt(squares / (n - 1));
  out.half = student_t_quantile(0.975, out.count - 1) * out.deviation / std::sqrt(n);
  return out;
}

interval paired_difference(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> differences;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    differences.push_back(a[i] - b[i]);
  return interval_of(differences);
}

} // namespace gristmill
