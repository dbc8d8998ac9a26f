#pragma once

#include "simulation/report/lab_summary.hpp"

#include <string>
#include <vector>

namespace gristmill {

/// Who computed it: everything that an equal result needs besides scenario and seed.
struct lab_identity {
  std::string version;
  /// Of the program's file.
  std::string build;
};

/// "12.34 ± 0.41", with two digits of the half width; the mean alone without an interval; "none in
/// 3 of 20" where seeds have no value, "none" where no seed has one; "-" where it means nothing.
std::string cell_text(const summary_cell& cell);
/// The same of a difference, with its sign.
std::string difference_text(const summary_cell& cell);
/// `to_string` of the verdict on a difference, with the reason where there is no ranking.
std::string ranking_text(lab_verdict verdict);
/// "A", "B", … "Z", "AA", …
std::string letter_of(size_t variant);

/// Some variant has problems, so there are outcomes.
bool has_problems(const lab_plan& plan);
/// Whether tables for people have a line for the metric.
bool is_shown(const lab_plan& plan, const summary_metric& metric);
/// Whether a difference of it is shown there: ranked, and no ratio that has its own baseline.
bool is_compared(const lab_plan& plan, const summary_metric& metric);

/// The lines above every table: what was simulated, by what, with which seeds and digests.
std::string header_text(const lab_plan& plan, const lab_summary& summary, const lab_identity& who);

/// Header, all metrics with a column a variant, and the differences. Above six variants a line a
/// variant with the most telling metrics takes the place of the columns.
std::string to_text(const lab_plan& plan, const lab_summary& summary, const lab_identity& who);

/// What the intervals mean, in a sentence or two.
std::string interval_note(const lab_plan& plan);
/// What is modelled and what is not.
std::string model_note();

/// One object of schema `gristmill.lab/1`, with a line feed at its end.
std::string to_json(const lab_plan& plan, const lab_summary& summary,
  const std::vector<lab_row>& rows, const lab_identity& who);

/// A row for each variant and metric: mean, half width, deviation, seeds, seeds without a value.
std::string summary_csv(const lab_plan& plan, const lab_summary& summary);
/// A row for each difference and metric.
std::string differences_csv(const lab_plan& plan, const lab_summary& summary);

} // namespace gristmill
