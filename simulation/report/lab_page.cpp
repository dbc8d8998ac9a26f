#include "simulation/report/lab_page.hpp"

#include "report/html_page.hpp"
#include "report/run_timeline.hpp"
#include "report/svg/charts.hpp"
#include "simulation/scenario_file.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace gristmill {

namespace {

/// Charts draw eight colours; a page of a large grid does not grow without end.
constexpr size_t lines_max = 8;
constexpr size_t points_max = 16;
constexpr size_t scenarios_max = 24;
constexpr size_t columns_max = 8;

std::string variant_name(const lab_plan& plan, size_t v) {
  return letter_of(v) + " " + plan.label(v);
}

std::vector<size_t> variants_at(const lab_plan& plan, size_t point) {
  std::vector<size_t> out;
  for (size_t v = 0; v < plan.variants.size() && out.size() < lines_max; ++v)
    if (plan.variants[v].point == point)
      out.push_back(v);
  return out;
}

std::string point_title(const lab_plan& plan, size_t point) {
  std::string out;
  for (const auto& [key, value] : plan.points[point])
    out += fmt::format("{}{} = {}", out.empty() ? "" : ", ", key, value);
  return out.empty() ? plan.name : out;
}

/// A column a variant, several tables where there are many.
std::string metric_tables(const lab_plan& plan, const lab_summary& summary) {
  std::string out;
  for (size_t first = 0; first < plan.variants.size(); first += columns_max) {
    const size_t end = std::min(first + columns_max, plan.variants.size());
    std::vector<std::string> head = {"metric"};
    for (size_t v = first; v < end; ++v)
      head.push_back("#" + variant_name(plan, v));
    std::vector<std::vector<std::string>> rows;
    for (size_t m = 0; m < summary.metrics.size(); ++m) {
      if (!is_shown(plan, summary.metrics[m]))
        continue;
      rows.push_back({summary.metrics[m].title});
      for (size_t v = first; v < end; ++v)
        rows.back().push_back(cell_text(summary.variants[v].cells[m]));
    }
    out += html_table(head, rows);
  }
  return out;
}

std::string difference_tables(const lab_plan& plan, const lab_summary& summary) {
  if (plan.seeds == 1)
    return html_paragraph(interval_note(plan));
  std::string out;
  for (const auto& d : summary.differences) {
    std::vector<std::vector<std::string>> rows;
    for (size_t m = 0; m < summary.metrics.size(); ++m) {
      const auto& metric = summary.metrics[m];
      if (!is_compared(plan, metric) || !d.cells[m].applies)
        continue;
      rows.push_back({metric.title, difference_text(d.cells[m]), ranking_text(d.verdicts[m])});
    }
    out += html_details(
      fmt::format("{} minus {}", variant_name(plan, d.variant), variant_name(plan, d.baseline)),
      html_table({"metric", "#difference", "ranking"}, rows));
  }
  return out.empty() ? html_paragraph("One variant: there is nothing to compare it with.") : out;
}

chart_line line_of(std::string name, band_curve curve) {
  chart_line out;
  out.name = std::move(name);
  out.x = std::move(curve.x);
  out.y = std::move(curve.mean);
  out.low = std::move(curve.low);
  out.high = std::move(curve.high);
  return out;
}

/// Times below the first wait and above the last one say nothing.
void trim(std::vector<chart_line>& lines) {
  size_t first = SIZE_MAX;
  size_t last = 0;
  for (const auto& line : lines)
    for (size_t i = 0; i < line.y.size(); ++i) {
      if (line.y[i] > line.y.front() + 0.002)
        first = std::min(first, i);
      if (line.y[i] < 0.9995)
        last = std::max(last, i + 1);
    }
  for (auto& line : lines) {
    const size_t from = first == SIZE_MAX || first < 2 ? 1 : first - 1;
    const size_t to = std::min(std::max(last + 1, from + 2), line.x.size());
    for (auto* values : {&line.x, &line.y, &line.low, &line.high})
      if (values->size() >= to)
        *values = std::vector<double>(values->begin() + static_cast<std::ptrdiff_t>(from),
          values->begin() + static_cast<std::ptrdiff_t>(to));
  }
}

std::string wait_chart(const lab_page& page, size_t point) {
  std::vector<chart_line> lines;
  for (size_t v : variants_at(page.plan, point))
    lines.push_back(line_of(variant_name(page.plan, v), waits_band(page.rows, v)));
  // A share: what an interval has beyond 0 and 1 cannot be.
  for (auto& line : lines) {
    for (auto& low : line.low)
      low = std::max(low, 0.0);
    for (auto& high : line.high)
      high = std::min(high, 1.0);
  }
  trim(lines);
  chart_frame frame;
  frame.title = "How long leases were waited for: " + point_title(page.plan, point);
  frame.x_label = "seconds from the request to the grant";
  frame.y_label = "share of the leases";
  frame.x_kind = scale_kind::logarithmic;
  frame.y_include = 0;
  return line_chart(frame, lines);
}

std::string outcome_chart(const lab_page& page, size_t point) {
  std::vector<chart_line> lines;
  for (size_t v : variants_at(page.plan, point))
    lines.push_back(line_of(variant_name(page.plan, v), geomean_band(page.rows, v)));
  chart_frame frame;
  frame.title = "Geometric mean against GPU-hours: " + point_title(page.plan, point);
  frame.x_label = "GPU-hours under lease";
  frame.y_label = "T_b / best";
  frame.y_line = 1;
  return line_chart(frame, lines);
}

stacked_row shares_of(const lab_page& page, size_t v, const std::vector<std::string>& keys) {
  stacked_row row{variant_name(page.plan, v), {}};
  for (const auto& key : keys)
    row.parts.push_back(page.summary.variants[v].cells[page.summary.metric(key)].over.mean);
  return row;
}

std::string fairness_chart(const lab_page& page, size_t point) {
  std::vector<std::string> keys;
  for (int i = 1; i <= 10; ++i)
    keys.push_back(fmt::format("decile_{}", i));
  std::vector<std::string> legend = {"least served tenth"};
  for (int i = 2; i <= 9; ++i)
    legend.push_back(fmt::format("{}", i));
  legend.emplace_back("most served");
  std::vector<stacked_row> rows;
  for (size_t v : variants_at(page.plan, point)) {
    rows.push_back(shares_of(page, v, keys));
    rows.back().name += fmt::format(
      ", {:.3f}", page.summary.variants[v].cells[page.summary.metric("jain_seconds")].over.mean);
  }
  return share_chart(
    "GPU seconds by tenths of the agents (and Jain's index): " + point_title(page.plan, point),
    legend, rows);
}

std::string state_chart(const lab_page& page, size_t point) {
  const std::vector<std::string> keys = {
    "gpu_useful", "gpu_compile", "gpu_launch", "gpu_wasted", "gpu_verify", "gpu_down", "gpu_free"};
  std::vector<stacked_row> rows;
  for (size_t v : variants_at(page.plan, point))
    rows.push_back(shares_of(page, v, keys));
  return share_chart("What the GPUs' time went into: " + point_title(page.plan, point),
    {"useful", "waits for compiler", "held idle", "wasted", "verifying", "out of service", "free"},
    rows);
}

std::string gantt_of(const lab_page& page, const run_timeline& timeline) {
  gantt_rows gantt;
  gantt.title = fmt::format("What the GPUs did in the first {:g} minutes: {}, seed {}",
    page.minutes, variant_name(page.plan, 0), page.plan.first_seed);
  gantt.x_label = "seconds since the start of the run";
  gantt.rows = timeline.gpus;
  for (auto activity : {gpu_activity::granted, gpu_activity::working, gpu_activity::verifying,
         gpu_activity::out_of_service})
    gantt.legend.emplace_back(to_string(activity));
  for (const gpu_span& span : timeline.spans)
    gantt.spans.push_back({span.gpu, span.from, span.to, static_cast<size_t>(span.activity),
      fmt::format("{} {:.1f} s", span.what, span.to - span.from)});
  return gantt_chart(gantt);
}

std::string parameters(const lab_plan& plan) {
  std::string out;
  for (size_t v = 0; v < std::min(plan.variants.size(), scenarios_max); ++v)
    out +=
      html_details(fmt::format("{}: config {}", variant_name(plan, v), plan.variants[v].config),
        html_code(canonical_toml(plan.variants[v].what)));
  if (plan.variants.size() > scenarios_max)
    out +=
      html_paragraph(fmt::format("The other {} differ from these in the keys of their names only.",
        plan.variants.size() - scenarios_max));
  return out;
}

/// One chart for each point of the grid.
template <class F>
std::string for_points(const lab_page& page, F chart) {
  std::string out;
  const size_t points = page.plan.points.size();
  for (size_t p = 0; p < std::min(points, points_max); ++p)
    out += chart(page, p);
  if (points > points_max)
    out += html_paragraph(
      fmt::format("Not drawn: {} more points of the grid; their numbers are in the tables.",
        points - points_max));
  return out;
}

} // namespace

result<std::string> to_html(const lab_page& page) {
  auto timeline = read_timeline(page.events);
  if (!timeline)
    return pass(timeline);
  const auto& plan = page.plan;
  std::vector<std::string> parts = {html_code(header_text(plan, page.summary, page.who)),
    html_paragraph(interval_note(plan)), html_paragraph(model_note()), html_heading("Metrics"),
    metric_tables(plan, page.summary), html_heading("Differences, pairs of equal seeds"),
    difference_tables(plan, page.summary)};
  if (has_problems(plan)) {
    parts.push_back(html_heading("Outcome"));
    parts.push_back(for_points(page, outcome_chart));
  }
  parts.push_back(html_heading("Waits"));
  parts.push_back(for_points(page, wait_chart));
  parts.push_back(
    html_paragraph(plan.seeds > 1 ? "Bands are 95 % intervals of the mean over the seeds."
                                  : "One seed: there are no bands."));
  parts.push_back(html_heading("Fairness"));
  parts.push_back(for_points(page, fairness_chart));
  parts.push_back(html_heading("GPUs"));
  parts.push_back(for_points(page, state_chart));
  if (!page.events.empty())
    parts.push_back(gantt_of(page, *timeline));
  parts.push_back(html_heading("Parameters"));
  parts.push_back(parameters(plan));
  return html_page("SIMULATED: " + plan.name, parts);
}

} // namespace gristmill
