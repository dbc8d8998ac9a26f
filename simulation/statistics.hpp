#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gristmill {

/// Quantile of Student's t: `probability` in (0, 1), at least 1 degree of freedom.
double student_t_quantile(double probability, uint32_t freedom);

/// Mean with its 95 % confidence half width; the half width is infinite for fewer than two.
struct interval {
  double mean = 0;
  double half = 0;
  /// Standard deviation of one.
  double deviation = 0;
  uint32_t count = 0;

  bool spans(double value) const { return value >= mean - half && value <= mean + half; }
};

interval interval_of(const std::vector<double>& values);
/// Of a[i] - b[i]: equal sizes.
interval paired_difference(const std::vector<double>& a, const std::vector<double>& b);

} // namespace gristmill
