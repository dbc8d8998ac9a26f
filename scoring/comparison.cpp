#include "scoring/comparison.hpp"

#include "scoring/score.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace gristmill {

namespace {

/// Standard deviations in a median absolute deviation, of normal noise.
constexpr double sigma_of_mad = 1.4826;
/// The error of a median over that of a mean: sqrt(pi / 2).
constexpr double error_of_median = 1.2533;

double median_of(std::vector<double> values) {
  auto found = median(std::move(values));
  return found ? *found : 0;
}

double mad_of(const std::vector<double>& values) {
  const double middle = median_of(values);
  std::vector<double> away;
  for (const double x : values)
    away.push_back(std::abs(x - middle));
  return median_of(std::move(away));
}

/// Standard error of the logarithm of a block's median.
double error_within(const comparison_block& block) {
  return error_of_median * sigma_of_mad * static_cast<double>(block.mad_ns)
    / static_cast<double>(block.median_ns) / std::sqrt(static_cast<double>(block.samples));
}

struct pair_of_blocks {
  double log_ratio;
  double within;
};

bool is_usable(const comparison_block& block) {
  return block.median_ns > 0 && block.samples > 0;
}

std::vector<pair_of_blocks> pairs_of(const std::vector<comparison_block>& blocks) {
  std::vector<pair_of_blocks> out;
  for (size_t i = 0; i + 1 < blocks.size();) {
    const auto& first = blocks[i];
    const auto& second = blocks[i + 1];
    if (first.rival == second.rival || !is_usable(first) || !is_usable(second)) {
      ++i;
      continue;
    }
    const auto& candidate = first.rival ? second : first;
    const auto& incumbent = first.rival ? first : second;
    out.push_back({std::log(static_cast<double>(candidate.median_ns))
        - std::log(static_cast<double>(incumbent.median_ns)),
      std::hypot(error_within(candidate), error_within(incumbent))});
    i += 2;
  }
  return out;
}

double median_time(const std::vector<comparison_block>& blocks, bool rival) {
  std::vector<double> out;
  for (const auto& block : blocks)
    if (block.rival == rival && is_usable(block))
      out.push_back(static_cast<double>(block.median_ns));
  return median_of(std::move(out));
}

struct estimate {
  paired_workload of;
  double freedom = 1;
};

estimate estimate_of(const workload_measurement& measured) {
  estimate out;
  out.of.uuid = measured.uuid;
  const auto pairs = pairs_of(measured.blocks);
  out.of.pairs = static_cast<uint32_t>(pairs.size());
  if (pairs.empty())
    return out;
  out.of.candidate_ns = median_time(measured.blocks, false);
  out.of.incumbent_ns = median_time(measured.blocks, true);
  const auto count = static_cast<double>(pairs.size());
  std::vector<double> ratios;
  double within = 0;
  for (const auto& each : pairs) {
    ratios.push_back(each.log_ratio);
    out.of.log_ratio += each.log_ratio / count;
    within += each.within * each.within / count;
  }
  within = std::sqrt(within);
  double squares = 0;
  for (const double x : ratios)
    squares += (x - out.of.log_ratio) * (x - out.of.log_ratio);
  const double between = pairs.size() < 2 ? 0 : std::sqrt(squares / (count - 1));
  out.of.error = std::max(between, within) / std::sqrt(count);
  out.of.deviation = std::max(mad_of(ratios), within / sigma_of_mad);
  // The spread within blocks rests on many samples, that between pairs on few.
  out.freedom = between > within ? count - 1 : 30;
  return out;
}

/// Two-sided 95 % quantile of Student's distribution at the next tabulated degree of freedom below.
double student(double freedom) {
  static constexpr std::pair<double, double> table[] = {{1, 12.706}, {2, 4.303}, {3, 3.182},
    {4, 2.776}, {5, 2.571}, {6, 2.447}, {7, 2.365}, {8, 2.306}, {9, 2.262}, {10, 2.228},
    {12, 2.179}, {15, 2.131}, {20, 2.086}, {30, 2.042}, {60, 2.000}, {120, 1.980}};
  double out = table[0].second;
  for (const auto& [at, quantile] : table)
    // Welch and Satterthwaite's sums may miss a whole number by their last bit.
    if (at <= freedom * (1 + 1e-9))
      out = quantile;
  return out;
}

double per_cent(double log_ratio) {
  return 100 * std::expm1(log_ratio);
}

} // namespace

std::string to_string(gain_answer answer) {
  switch (answer) { // no default: the compiler reports a missing case
  case gain_answer::cannot_say:
    return "cannot say";
  case gain_answer::improves:
    return "improves";
  case gain_answer::does_not:
    return "does not";
  }
  return "unknown";
}

double expected_maximum(uint32_t draws) {
  if (draws <= 1)
    return 0;
  const double share = (draws - 0.375) / (draws + 0.25);
  double low = 0;
  double high = 10;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < share ? low : high) = middle;
  }
  return (low + high) / 2;
}

paired_comparison compare_paired(
  std::span<const workload_measurement> workloads, uint32_t attempts, const gain_limits& limits) {
  paired_comparison out;
  if (workloads.empty()) {
    out.reason = "no workload was measured in blocks";
    return out;
  }
  const auto count = static_cast<double>(workloads.size());
  double variance = 0;
  double satterthwaite = 0;
  double deviation = 0;
  double log_time = 0;
  const paired_workload* lacking = nullptr;
  const paired_workload* worst = nullptr;
  out.workloads.reserve(workloads.size());
  for (const auto& measured : workloads) {
    auto one = estimate_of(measured);
    out.workloads.push_back(one.of);
    const auto& w = out.workloads.back();
    if (w.pairs == 0) {
      lacking = lacking == nullptr ? &w : lacking;
      continue;
    }
    out.log_ratio += w.log_ratio / count;
    const double part = w.error * w.error / count / count;
    variance += part;
    satterthwaite += part * part / one.freedom;
    deviation += w.deviation * w.deviation / count / count;
    log_time += std::log(w.incumbent_ns) / count;
    if (worst == nullptr || w.log_ratio - 2 * w.error > worst->log_ratio - 2 * worst->error)
      worst = &w;
  }
  if (lacking != nullptr) {
    out.log_ratio = 0;
    out.reason = fmt::format("workload {} has no pair of blocks, one of each side", lacking->uuid);
    return out;
  }
  const double error = std::sqrt(variance);
  const double freedom = satterthwaite > 0 ? variance * variance / satterthwaite : 120;
  out.low = out.log_ratio - student(freedom) * error;
  out.high = out.log_ratio + student(freedom) * error;
  out.needed = std::max({-std::log1p(-limits.least_gain),
    limits.deviations * std::sqrt(deviation) + expected_maximum(attempts) * error,
    limits.least_ns / std::exp(log_time)});
  const auto seen =
    fmt::format("time {:+.2f} % against the incumbent (95 %: {:+.2f} to {:+.2f}), needed {:+.2f} "
                "after {} attempts",
      per_cent(out.log_ratio), per_cent(out.low), per_cent(out.high), per_cent(-out.needed),
      attempts);
  out.answer = gain_answer::does_not;
  if (worst->log_ratio - 2 * worst->error > std::log1p(limits.largest_loss))
    out.reason = fmt::format("{}; but workload {} becomes {:.1f} % slower, more than {:.0f} %",
      seen, worst->uuid, per_cent(worst->log_ratio), 100 * limits.largest_loss);
  else if (-out.log_ratio > out.needed && out.high < 0)
    out.answer = gain_answer::improves;
  if (out.reason.empty())
    out.reason = seen;
  return out;
}

} // namespace gristmill
