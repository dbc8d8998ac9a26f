#include "simulation/selfcheck/formulas.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace gristmill {

namespace {

/// p_n of M/M/c//N, from the mode outwards so that no product over- or underflows.
std::vector<double> repairman(uint32_t agents, uint32_t servers, double think, double hold) {
  std::vector<double> logs(agents + 1, 0);
  for (uint32_t n = 1; n <= agents; ++n)
    logs[n] = logs[n - 1] + std::log(double(agents - n + 1) / think)
      - std::log(double(std::min(n, servers)) / hold);
  const double top = *std::max_element(logs.begin(), logs.end());
  std::vector<double> out(agents + 1);
  for (uint32_t n = 0; n <= agents; ++n)
    out[n] = std::exp(logs[n] - top);
  const double sum = std::accumulate(out.begin(), out.end(), 0.0);
  for (auto& p : out)
    p /= sum;
  return out;
}

/// The t at which a falling tail reaches `target`; `scale` is where the search begins.
double quantile_of(const std::function<double(double)>& tail, double target, double scale) {
  if (tail(0) <= target)
    return 0;
  double low = 0;
  double high = scale;
  while (tail(high) > target)
    high *= 2;
  for (int i = 0; i < 200 && high - low > 1e-13 * high; ++i) {
    const double middle = (low + high) / 2;
    (tail(middle) > target ? low : high) = middle;
  }
  return (low + high) / 2;
}

} // namespace

closed_queue::closed_queue(uint32_t agents, uint32_t servers, double think, double hold)
  : servers_(servers), hold_(hold), seen_(repairman(agents, servers, think, hold)) {
  seen_by_arrival_ = repairman(agents - 1, servers, think, hold);
  double waiting = 0;
  for (uint32_t n = 0; n <= agents; ++n) {
    in_system_ += n * seen_[n];
    waiting += n > servers ? (n - servers) * seen_[n] : 0;
  }
  throughput_ = (agents - in_system_) / think;
  mean_wait_ = waiting / throughput_;
}

double closed_queue::utilisation() const {
  return throughput_ * hold_ / servers_;
}

double closed_queue::wait_tail(double t) const {
  const double passed = servers_ * std::max(t, 0.0) / hold_;
  // Poisson: the chance of at most j ends within t, added up as n grows. Terms by logarithms: exp
  // of a long time alone would underflow.
  double at_most = 0;
  double sum = 0;
  for (size_t n = servers_; n < seen_by_arrival_.size(); ++n) {
    const double j = double(n - servers_);
    at_most += passed == 0 ? (j == 0 ? 1 : 0)
                           : std::exp(-passed + j * std::log(passed) - std::lgamma(j + 1));
    sum += seen_by_arrival_[n] * at_most;
  }
  return sum;
}

double closed_queue::wait_quantile(double q) const {
  return quantile_of([this](double t) { return wait_tail(t); }, 1 - q, hold_);
}

double throughput_bound(uint32_t agents, uint32_t servers, double think, double hold) {
  return std::min(servers / hold, agents / (think + hold));
}

open_queue::open_queue(uint32_t servers, double load, double hold)
  : servers_(servers), load_(load), hold_(hold) {
  const double offered = servers * load;
  double loss = 1;
  for (uint32_t k = 1; k <= servers; ++k)
    loss = offered * loss / (k + offered * loss);
  chance_ = loss / (1 - load * (1 - loss));
}

double open_queue::mean_wait() const {
  return chance_ * hold_ / (servers_ * (1 - load_));
}

double open_queue::wait_tail(double t) const {
  return chance_ * std::exp(-double(servers_) * (1 - load_) * std::max(t, 0.0) / hold_);
}

double open_queue::wait_quantile(double q) const {
  return q <= 1 - chance_ ? 0 : std::log(chance_ / (1 - q)) * hold_ / (servers_ * (1 - load_));
}

double pollaczek_khinchine(double load, double mean, double cv2) {
  return load * mean * (1 + cv2) / (2 * (1 - load));
}

double share_bound(uint32_t servers, double longest, double all_service, double slack) {
  return ((servers + 1) * longest + slack) / all_service;
}

double lottery_deviation(double share, double draws) {
  return std::sqrt(share * (1 - share) / draws);
}

double mean_inverse_gap(
  double gamma, double leases, double correct, double improve, double ease, double b) {
  return 1 + gamma * leases * correct * improve * ease / (b - gamma);
}

double marginal_gain(const gain_curve& problem, double gamma, double n) {
  return problem.reach * problem.rate
    * std::pow(1 + gamma * problem.rate * n, -(1 + gamma) / gamma);
}

double total_gain(const gain_curve& problem, double gamma, double n) {
  return problem.reach * (1 - std::pow(1 + gamma * problem.rate * n, -1 / gamma));
}

std::vector<double> leases_at_level(
  const std::vector<gain_curve>& problems, double gamma, double level) {
  std::vector<double> out;
  for (const auto& p : problems) {
    const double top = p.reach * p.rate;
    out.push_back(
      top > level ? (std::pow(top / level, gamma / (1 + gamma)) - 1) / (gamma * p.rate) : 0);
  }
  return out;
}

std::vector<double> water_filling(
  const std::vector<gain_curve>& problems, double gamma, double budget) {
  // By the level's logarithm: the higher the marginal gain, the fewer leases.
  double high = -700;
  for (const auto& p : problems)
    if (p.reach * p.rate > 0)
      high = std::max(high, std::log(p.reach * p.rate));
  double low = high - 600;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    const auto filled = leases_at_level(problems, gamma, std::exp(middle));
    (std::accumulate(filled.begin(), filled.end(), 0.0) > budget ? low : high) = middle;
  }
  return leases_at_level(problems, gamma, std::exp((low + high) / 2));
}

uint64_t halving_budget(uint64_t count, uint64_t first, uint64_t eta) {
  uint64_t sum = 0;
  for (uint64_t alive = count, each = first; alive > 0; alive /= eta, each *= eta)
    sum += alive * each;
  return sum;
}

double kolmogorov_distance(
  const std::vector<double>& sample, const std::function<double(double)>& distribution) {
  const double count = double(sample.size());
  double out = 0;
  for (size_t i = 0; i < sample.size();) {
    size_t after = i;
    while (after < sample.size() && sample[after] == sample[i])
      ++after;
    const double exact = distribution(sample[i]);
    out = std::max(out, std::fabs(double(after) / count - exact));
    // From below, where the exact one does not jump.
    if (sample[i] > 0)
      out = std::max(out, std::fabs(double(i) / count - exact));
    i = after;
  }
  return out;
}

double kolmogorov_chance(double distance, double count) {
  const double root = std::sqrt(count);
  const double x = (root + 0.12 + 0.11 / root) * distance;
  if (x < 0.3)
    return 1;
  double sum = 0;
  for (int k = 1; k <= 100; ++k)
    sum += (k % 2 == 1 ? 2 : -2) * std::exp(-2.0 * k * k * x * x);
  return std::clamp(sum, 0.0, 1.0);
}

} // namespace gristmill
