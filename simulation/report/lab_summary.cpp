#include "simulation/report/lab_summary.hpp"

#include "journal/hash.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <span>

namespace gristmill {

namespace {

/// The share of equal share's final geomean that `hours_to_95` asks for.
constexpr double target_share = 0.95;
constexpr size_t curve_points = 100;

std::vector<summary_metric> all_metrics() {
  std::vector<summary_metric> out;
  for (const auto& m : own_metrics())
    out.push_back({std::string(m.key), std::string(m.title), m.sense, m.needs_problems, m.shown});
  out.push_back(
    {"hours_to_95", "GPU-hours to 95 % of equal's end", metric_sense::lower, true, true});
  out.push_back(
    {"budget_to_equal", "budget to equal's end, share", metric_sense::lower, true, true});
  out.push_back({"gap_closed", "equal-oracle gap closed, share", metric_sense::higher, true, true});
  return out;
}

double hours_to(const lab_row& row, double target) {
  lab_result curve;
  curve.curve = row.curve;
  return curve.gpu_hours_to(target);
}

/// Rows of one variant; `rows` is complete and in order.
std::span<const lab_row> rows_of(const lab_plan& plan, const std::vector<lab_row>& rows, size_t v) {
  return std::span(rows).subspan(v * plan.seeds, plan.seeds);
}

/// Values of a metric by seed; empty where it means nothing.
using seed_values = std::vector<double>;

summary_cell cell_of(const seed_values& values) {
  summary_cell out;
  out.applies = !values.empty();
  seed_values finite;
  for (double v : values)
    if (std::isfinite(v))
      finite.push_back(v);
  out.never = static_cast<uint32_t>(values.size() - finite.size());
  out.over = interval_of(finite);
  return out;
}

/// sum(a) / sum(b) over pairs, with the interval of the linearised ratio: what is left of a after
/// the ratio times b varies as the ratio does, times the mean of b.
summary_cell ratio_of(const seed_values& a, const seed_values& b) {
  summary_cell out;
  const auto bottom = interval_of(b);
  out.applies = true;
  // Whoever divides by a gap that may be none finds anything.
  if ((b.size() > 1 && bottom.spans(0)) || !(bottom.mean > 0)) {
    out.never = bottom.count;
    return out;
  }
  const double ratio = interval_of(a).mean / bottom.mean;
  seed_values rest;
  for (size_t i = 0; i < a.size(); ++i)
    rest.push_back(a[i] - ratio * b[i]);
  out.over = interval_of(rest);
  out.over.mean = ratio;
  out.over.half /= bottom.mean;
  out.over.deviation /= bottom.mean;
  return out;
}

lab_verdict verdict_of(const summary_cell& difference, metric_sense sense) {
  if (!difference.has_interval())
    return lab_verdict::none;
  const auto& d = difference.over;
  if (d.mean == 0 && d.half == 0)
    return lab_verdict::same;
  if (d.spans(0))
    return lab_verdict::undecided;
  if (sense == metric_sense::neither)
    return lab_verdict::differs;
  return (d.mean > 0) == (sense == metric_sense::higher) ? lab_verdict::better : lab_verdict::worse;
}

class summary_maker {
public:
  summary_maker(const lab_plan& plan, const std::vector<lab_row>& rows)
    : plan_(plan), rows_(rows), metrics_(all_metrics()) {}

  lab_summary make() {
    lab_summary out;
    out.metrics = metrics_;
    for (size_t v = 0; v < plan_.variants.size(); ++v) {
      values_.push_back(values_of(v));
      variant_summary one;
      for (size_t m = 0; m < metrics_.size(); ++m)
        one.cells.push_back(cell_of(values_[v][m]));
      // `gap_closed`, the last one, is no mean over seeds.
      if (auto gap = gap_of(v))
        one.cells.back() = *gap;
      std::string digests;
      for (const auto& row : rows_of(plan_, rows_, v)) {
        digests += row.digest + "\n";
        one.transitions += row.transitions;
      }
      one.digest = plan_.seeds == 1 ? rows_of(plan_, rows_, v).front().digest
                                    : sha256_hex(digests).substr(0, 16);
      out.variants.push_back(std::move(one));
    }
    for (size_t v = 0; v < plan_.variants.size(); ++v)
      if (const size_t base = plan_.baselines[plan_.variants[v].point]; base != v)
        out.differences.push_back(difference(v, base));
    for (size_t v = 0; v < plan_.variants.size(); ++v)
      if (const auto first = at_first_point(v))
        out.differences.push_back(difference(v, *first));
    return out;
  }

private:
  std::vector<seed_values> values_of(size_t v) const {
    const auto rows = rows_of(plan_, rows_, v);
    const bool has_problems = plan_.variants[v].what.problems > 0;
    std::vector<seed_values> out(metrics_.size());
    const size_t own = own_metrics().size();
    for (size_t m = 0; m < own; ++m)
      for (const auto& row : rows)
        if (has_problems || !metrics_[m].needs_problems)
          out[m].push_back(row.values[m]);
    const auto equal = plan_.sibling(v, "equal");
    if (!has_problems || !equal)
      return out;
    const auto equals = rows_of(plan_, rows_, *equal);
    for (size_t s = 0; s < rows.size(); ++s) {
      const double end = equals[s].curve.empty() ? 1 : equals[s].curve.back().geomean;
      const double budget = equals[s].curve.empty() ? 0 : equals[s].curve.back().gpu_hours;
      out[own].push_back(hours_to(rows[s], target_share * end));
      out[own + 1].push_back(hours_to(rows[s], end) / budget);
    }
    return out;
  }

  /// On the mean geomean over GPU-hours, pairs of equal seeds.
  std::optional<summary_cell> gap_of(size_t v) const {
    const auto equal = plan_.sibling(v, "equal");
    const auto oracle = plan_.sibling(v, "oracle");
    if (plan_.variants[v].what.problems == 0 || !equal || !oracle)
      return std::nullopt;
    const size_t area = own_metric("area");
    const auto of = rows_of(plan_, rows_, v);
    const auto equals = rows_of(plan_, rows_, *equal);
    const auto oracles = rows_of(plan_, rows_, *oracle);
    seed_values gained;
    seed_values possible;
    for (size_t s = 0; s < of.size(); ++s) {
      gained.push_back(of[s].values[area] - equals[s].values[area]);
      possible.push_back(oracles[s].values[area] - equals[s].values[area]);
    }
    return ratio_of(gained, possible);
  }

  /// The same policy and planner where the grid begins; nothing for the first point itself, for
  /// bounds and where the grid changes the policy or the planner itself.
  std::optional<size_t> at_first_point(size_t v) const {
    const auto& of = plan_.variants[v];
    if (of.point == 0 || of.is_bound)
      return std::nullopt;
    for (size_t other = 0; other < plan_.variants.size(); ++other) {
      const auto& there = plan_.variants[other];
      if (there.point == 0 && there.what.lease_policy == of.what.lease_policy
        && there.what.planner == of.what.planner)
        return other;
    }
    return std::nullopt;
  }

  lab_difference difference(size_t v, size_t base) const {
    lab_difference out;
    out.variant = v;
    out.baseline = base;
    for (size_t m = 0; m < metrics_.size(); ++m) {
      seed_values by_seed;
      for (size_t s = 0; s < std::min(values_[v][m].size(), values_[base][m].size()); ++s)
        by_seed.push_back(values_[v][m][s] - values_[base][m][s]);
      out.cells.push_back(cell_of(by_seed));
      out.verdicts.push_back(verdict_of(out.cells.back(), metrics_[m].sense));
    }
    return out;
  }

  const lab_plan& plan_;
  const std::vector<lab_row>& rows_;
  std::vector<summary_metric> metrics_;
  /// By variant and metric.
  std::vector<std::vector<seed_values>> values_;
};

/// y at x of a line through points of ascending x.
double at(const std::vector<outcome_point>& curve, double hours) {
  const auto above = std::find_if(
    curve.begin(), curve.end(), [hours](const outcome_point& p) { return p.gpu_hours >= hours; });
  if (above == curve.end())
    return curve.back().geomean;
  const outcome_point origin;
  const auto& before = above == curve.begin() ? origin : *(above - 1);
  const double width = above->gpu_hours - before.gpu_hours;
  if (!(width > 0))
    return above->geomean;
  const double share = (hours - before.gpu_hours) / width;
  return before.geomean + share * (above->geomean - before.geomean);
}

void add_point(band_curve& out, double x, const std::vector<double>& values) {
  const auto over = interval_of(values);
  out.x.push_back(x);
  out.mean.push_back(over.mean);
  if (over.count > 1) {
    out.low.push_back(over.mean - over.half);
    out.high.push_back(over.mean + over.half);
  }
}

} // namespace

std::string to_string(lab_verdict verdict) {
  switch (verdict) { // no default: the compiler reports a missing case
  case lab_verdict::undecided:
    return "no ranking";
  case lab_verdict::better:
    return "better";
  case lab_verdict::worse:
    return "worse";
  case lab_verdict::differs:
    return "differs";
  case lab_verdict::same:
    return "the same";
  case lab_verdict::none:
    return "-";
  }
  return "-";
}

size_t lab_summary::metric(std::string_view key) const {
  size_t out = 0;
  while (out < metrics.size() && metrics[out].key != key)
    ++out;
  return out;
}

result<lab_summary> summarise(const lab_plan& plan, const std::vector<lab_row>& rows) {
  if (rows.size() != plan.runs())
    return fail(
      errc::invalid_input, fmt::format("{} of {} runs are there", rows.size(), plan.runs()));
  for (size_t i = 0; i < rows.size(); ++i)
    if (rows[i].variant != i / plan.seeds || rows[i].seed != plan.first_seed + i % plan.seeds
      || rows[i].values.size() != own_metrics().size())
      return fail(errc::invalid_input, fmt::format("run {} is not where it should be", i));
  return summary_maker(plan, rows).make();
}

band_curve geomean_band(const std::vector<lab_row>& rows, size_t variant) {
  std::vector<const lab_row*> mine;
  double end = std::numeric_limits<double>::infinity();
  for (const auto& row : rows) {
    if (row.variant != variant || row.curve.empty())
      continue;
    mine.push_back(&row);
    end = std::min(end, row.curve.back().gpu_hours);
  }
  band_curve out;
  for (size_t i = 0; !mine.empty() && i <= curve_points; ++i) {
    const double x = end * static_cast<double>(i) / curve_points;
    std::vector<double> values;
    for (const lab_row* row : mine)
      values.push_back(at(row->curve, x));
    add_point(out, x, values);
  }
  return out;
}

band_curve waits_band(const std::vector<lab_row>& rows, size_t variant) {
  band_curve out;
  const auto& grid = wait_grid();
  for (size_t i = 0; i < grid.size(); ++i) {
    std::vector<double> values;
    for (const auto& row : rows)
      if (row.variant == variant && i < row.wait_shares.size())
        values.push_back(row.wait_shares[i]);
    if (!values.empty())
      add_point(out, grid[i], values);
  }
  return out;
}

} // namespace gristmill
