#include "simulation/selfcheck/formulas.hpp"

#include <array>
#include <cmath>

namespace gristmill {

namespace {

/// Gauss-Legendre with 8 points on each of `parts` equal pieces: exact to rounding for what is
/// smooth.
double integral(const std::function<double(double)>& f, double from, double to, int parts) {
  static constexpr std::array<double, 4> points = {
    0.1834346424956498, 0.5255324099163290, 0.7966664774136267, 0.9602898564975363};
  static constexpr std::array<double, 4> weights = {
    0.3626837833783620, 0.3137066458778873, 0.2223810344533745, 0.1012285362903763};
  const double half = (to - from) / parts / 2;
  double sum = 0;
  for (int part = 0; part < parts; ++part) {
    const double middle = from + (2 * part + 1) * half;
    for (size_t i = 0; i < points.size(); ++i)
      sum += weights[i] * (f(middle - half * points[i]) + f(middle + half * points[i]));
  }
  return sum * half;
}

constexpr int pieces = 2000;

} // namespace

service_law exponential_service(double mean) {
  service_law out;
  out.mean = mean;
  out.second_moment = 2 * mean * mean;
  out.density = [mean](double x) { return std::exp(-x / mean) / mean; };
  out.up_to = [mean](double x) { return -std::expm1(-x / mean); };
  out.mean_up_to = [mean](double x) {
    const double y = x / mean;
    return mean * (1 - std::exp(-y) * (1 + y));
  };
  out.square_up_to = [mean](double x) {
    const double y = x / mean;
    return mean * mean * (2 - std::exp(-y) * (2 + 2 * y + y * y));
  };
  out.longest = 60 * mean;
  return out;
}

double balanced_chance(double cv2) {
  return (1 + std::sqrt((cv2 - 1) / (cv2 + 1))) / 2;
}

service_law hyperexponential_service(double mean, double cv2) {
  const double p = balanced_chance(cv2);
  const auto fast = exponential_service(mean / (2 * p));
  const auto slow = exponential_service(mean / (2 * (1 - p)));
  const auto mixed = [p](const std::function<double(double)>& a,
                       const std::function<double(double)>& b) {
    return [p, a, b](double x) { return p * a(x) + (1 - p) * b(x); };
  };
  service_law out;
  out.mean = mean;
  out.second_moment = p * fast.second_moment + (1 - p) * slow.second_moment;
  out.density = mixed(fast.density, slow.density);
  out.up_to = mixed(fast.up_to, slow.up_to);
  out.mean_up_to = mixed(fast.mean_up_to, slow.mean_up_to);
  out.square_up_to = mixed(fast.square_up_to, slow.square_up_to);
  out.longest = slow.longest;
  return out;
}

double shortest_first_wait(double load, const service_law& law) {
  const double rate = load / law.mean;
  const double sum = integral(
    [&](double x) {
      const double rest = 1 - rate * law.mean_up_to(x);
      return law.density(x) / (rest * rest);
    },
    0, law.longest, pieces);
  return rate * law.second_moment / 2 * sum;
}

double least_remaining_response(double load, const service_law& law) {
  const double rate = load / law.mean;
  const double waiting = integral(
    [&](double x) {
      const double rest = 1 - rate * law.mean_up_to(x);
      const double work = law.square_up_to(x) + x * x * (1 - law.up_to(x));
      return law.density(x) * rate * work / (2 * rest * rest);
    },
    0, law.longest, pieces);
  // The integral of 1/(1 - r(t)) up to x, averaged over x: everybody longer than t goes through t.
  const double running =
    integral([&](double t) { return (1 - law.up_to(t)) / (1 - rate * law.mean_up_to(t)); }, 0,
      law.longest, pieces);
  return waiting + running;
}

double exponential_response(double load, double mean) {
  return mean / (1 - load);
}

std::vector<double> cobham_waits(const std::vector<priority_class>& classes) {
  double residual = 0;
  for (const auto& each : classes)
    residual += each.rate * each.second_moment / 2;
  std::vector<double> out;
  double before = 0;
  for (const auto& each : classes) {
    const double with = before + each.rate * each.mean;
    out.push_back(residual / ((1 - before) * (1 - with)));
    before = with;
  }
  return out;
}

} // namespace gristmill
