#pragma once

#include "simulation/selfcheck/check.hpp"

#include <string>
#include <vector>

namespace gristmill {

enum class line_verdict : uint8_t {
  pass = 0,
  /// Further from the exact value than the tolerance, or beyond a bound.
  off,
  /// Within the tolerance, but the standard error is above 1 % of the exact value, so that says
  /// nothing: it fails as well.
  too_noisy,
  /// A seed gave no number.
  no_number,
};

std::string to_string(line_verdict what);

struct judged_line {
  std::string name;
  line_rule rule = line_rule::estimate;
  double exact = 0;
  /// The mean over seeds; for bounds of every seed the worst of them.
  double estimate = 0;
  /// Of the mean; 0 for bounds of every seed.
  double standard_error = 0;
  double tolerance = 0;
  line_verdict verdict = line_verdict::no_number;

  double deviation() const { return estimate - exact; }
};

/// Largest standard error of an estimate, relative to the exact value.
inline constexpr double noise_max = 0.01;
/// A deviation of this part is never held against a simulator: histograms and quanta of time.
inline constexpr double tolerance_min = 0.005;
inline constexpr double standard_errors_max = 4;

/// One line by the values of all seeds, in their order.
judged_line judge(const expected_line& line, const std::vector<double>& values);

/// The pooled sample against its distribution: the distance must not be one that the right
/// distribution passes in one of 1000 cases. `sample` is sorted here.
judged_line judge_distribution(
  const std::function<double(double)>& distribution, std::vector<double> sample);

} // namespace gristmill
