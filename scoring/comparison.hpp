#pragma once

#include "messages/measure.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gristmill {

/// When a gain counts.
struct gain_limits {
  /// Smaller gains are not worth a change, and the calibration of a clock is no better.
  double least_gain = 0.01;
  /// In median absolute deviations of the paired log-ratios.
  double deviations = 3;
  /// Resolution of the device's clocks.
  double least_ns = 100;
  /// No workload may become slower by more. A plan has variants, so nobody has to pay for one shape
  /// with another; a gain that does is refused.
  double largest_loss = 0.10;
};

enum class gain_answer : uint8_t {
  /// Too few blocks: neither better nor worse is known.
  cannot_say = 0,
  improves,
  does_not,
};

std::string to_string(gain_answer answer);

/// One workload, candidate against incumbent. Ratios are times of the candidate over times of the
/// incumbent, so below 1 is faster; they are kept as natural logarithms.
struct paired_workload {
  std::string uuid;
  /// Pairs of neighbouring blocks, one of each side.
  uint32_t pairs = 0;
  /// Medians of the blocks' medians.
  double candidate_ns = 0;
  double incumbent_ns = 0;
  /// Mean of the paired log-ratios.
  double log_ratio = 0;
  /// Standard error of `log_ratio`.
  double error = 0;
  /// Median absolute deviation of one paired log-ratio.
  double deviation = 0;
};

/// The whole problem.
struct paired_comparison {
  gain_answer answer = gain_answer::cannot_say;
  std::vector<paired_workload> workloads;
  /// Mean over the workloads: the logarithm of the geometric mean of the ratios.
  double log_ratio = 0;
  /// Bounds of a 95 % interval of `log_ratio`.
  double low = 0;
  double high = 0;
  /// `-log_ratio` must be larger than this.
  double needed = 0;
  /// One line for a person: the ratio with its interval, and why the answer is what it is.
  std::string reason;
};

/// Decides whether the candidate beats the incumbent on the blocks of its measurement.
///
/// Blocks that stand next to each other in time and belong to different sides make a pair; a drift
/// of the clock then moves both. Each pair gives d = ln(candidate / incumbent) of the medians. A
/// workload's estimate is the mean of its d; its error is the larger of what the spread of the d
/// says (s / sqrt(k)) and what the spread within the blocks says (the error of a median,
/// 1.2533 * 1.4826 * MAD / sqrt(n), both sides together, over sqrt(k)), so that one pair has an
/// error too and two pairs that agree by chance are not taken for exact. The problem's estimate is
/// the mean over all workloads; the interval is Student's with the degrees of freedom of Welch and
/// Satterthwaite.
///
/// The gain that is needed is the largest of `least_gain`, `deviations` * MAD and `least_ns` of the
/// geometric mean time, the second enlarged by the expected maximum of `attempts` draws of noise:
/// E(n) * error with E(n) = quantile of the normal distribution at (n - 0.375) / (n + 0.25) (Blom,
/// Statistical Estimates and Transformed Beta-Variables, 1958). Who tries a hundred times finds 2.5
/// standard errors of luck, and 2.5 is what is taken off.
///
/// `cannot_say` when there is no workload, or one without a pair.
paired_comparison compare_paired(std::span<const workload_measurement> workloads, uint32_t attempts,
  const gain_limits& limits = {});

/// E(n), in standard deviations: 0 for 0 and 1.
double expected_maximum(uint32_t draws);

} // namespace gristmill
