#pragma once

#include "simulation/core/lab_result.hpp"
#include "simulation/report/lab_plan.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gristmill {

/// What is kept of one run: enough for every table and chart but the Gantt chart.
struct lab_row {
  size_t variant = 0;
  uint64_t seed = 0;
  std::string digest;
  /// Lease transitions.
  uint64_t transitions = 0;
  /// In the order of `own_metrics`.
  std::vector<double> values;
  /// How many points the curve has, also before they are read.
  uint64_t points = 0;
  /// Empty without problems.
  std::vector<outcome_point> curve;
  /// Share of the waits at or below each time of `wait_grid`.
  std::vector<double> wait_shares;
};

lab_row row_of(size_t variant, uint64_t seed, const lab_result& run);

/// Sorts by variant, then seed.
void sort_rows(std::vector<lab_row>& rows);

// Tables for other programs: RFC 4180, a head line, a line feed after each row; decimals such that
// they read back as the same number. The files of a sweep consist of them (docs/lab.md).

/// A field, in quotes where it needs them.
std::string csv_field(std::string_view text);
std::string csv_number(double value);
/// Fields of one line without its line feed. Errors: `invalid_input` for a quote that is not
/// closed.
result<std::vector<std::string>> csv_fields(std::string_view line);

/// One row a run: variant, keys of the grid, policy, planner, whether it is a bound, seed,
/// configuration, digest, transitions, points of its curve, then every metric.
std::string results_head(const lab_plan& plan);
std::string results_line(const lab_plan& plan, const lab_row& row);
/// The inverse; curve and waits stay empty. Errors: `invalid_input` for what `results_line` would
/// not have written for a run of this plan.
result<lab_row> row_from_results(const lab_plan& plan, std::string_view line);

/// Outcomes over time, a row for each point of a run.
std::string curve_head();
std::string curve_lines(const lab_row& row);
/// Shares of the waits, a row for each time of the grid.
std::string waits_head();
std::string waits_lines(const lab_row& row);

} // namespace gristmill
