#pragma once

#include "simulation/report/lab_metrics.hpp"
#include "simulation/report/lab_plan.hpp"
#include "simulation/report/lab_row.hpp"
#include "simulation/statistics.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gristmill {

/// What `own_metrics` have, and what can be said only beside equal share and the oracle.
struct summary_metric {
  std::string key;
  std::string title;
  metric_sense sense = metric_sense::neither;
  bool needs_problems = false;
  bool shown = true;
};

/// A metric of a variant over all seeds.
struct summary_cell {
  interval over;
  /// Seeds in which it has no value, such as a target that was never reached. Then there is no mean
  /// either: the seeds that have one are not a fair sample.
  uint32_t never = 0;
  /// False where it means nothing: no problems, or no equal share beside it.
  bool applies = false;

  bool has_mean() const { return applies && never == 0 && over.count > 0; }
  bool has_interval() const { return has_mean() && over.count > 1; }
};

struct variant_summary {
  /// In the order of `lab_summary::metrics`.
  std::vector<summary_cell> cells;
  /// SHA-256 over the digests by seed, 16 digits; with one seed the digest itself.
  std::string digest;
  uint64_t transitions = 0;
};

enum class lab_verdict : uint8_t {
  /// The interval spans zero: no ranking.
  undecided = 0,
  better,
  worse,
  /// Larger or smaller, of a metric that is neither good nor bad.
  differs,
  /// Equal in every seed.
  same,
  /// One seed, or a seed without a value: nothing can be said.
  none,
};

/// "no ranking", "better", …
std::string to_string(lab_verdict verdict);

/// One variant minus another, in pairs of equal seeds.
struct lab_difference {
  size_t variant = 0;
  size_t baseline = 0;
  /// In the order of `lab_summary::metrics`.
  std::vector<summary_cell> cells;
  std::vector<lab_verdict> verdicts;
};

/// What a comparison came to.
struct lab_summary {
  std::vector<summary_metric> metrics;
  /// As the plan's.
  std::vector<variant_summary> variants;
  /// Every variant against the baseline of its point, then every one but the bounds of the later
  /// points against the same policy and planner at the first point.
  std::vector<lab_difference> differences;

  size_t metric(std::string_view key) const;
};

/// `rows` has a row for every variant and seed, in order (`sort_rows`). Errors: `invalid_input`
/// when not.
result<lab_summary> summarise(const lab_plan& plan, const std::vector<lab_row>& rows);

/// Mean over the seeds with the half width of its interval, at GPU-hours (or times) that all have.
struct band_curve {
  std::vector<double> x;
  std::vector<double> mean;
  /// Empty for one seed.
  std::vector<double> low;
  std::vector<double> high;
};

/// Geomean over GPU-hours of a variant, up to where all of its seeds got to.
band_curve geomean_band(const std::vector<lab_row>& rows, size_t variant);
/// Share of the waits over `wait_grid`.
band_curve waits_band(const std::vector<lab_row>& rows, size_t variant);

} // namespace gristmill
