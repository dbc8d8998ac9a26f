#include "report/svg/charts.hpp"
#include "report/svg/markup.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <utility>

namespace gristmill {

namespace {

constexpr double width = 880;
constexpr double right = 20;
constexpr double top = 34;
constexpr double row_height = 22;
constexpr double bar_height = 16;
constexpr size_t rows_max = 64;
constexpr size_t spans_max = 20'000;

double label_width(const std::vector<std::string>& names) {
  size_t longest = 0;
  for (const auto& name : names)
    longest = std::max(longest, name.size());
  return 16 + 6.6 * static_cast<double>(std::min<size_t>(longest, 32));
}

/// A name that fits its place.
std::string shortened(const std::string& name) {
  return name.size() <= 32 ? name : name.substr(0, 31) + "~";
}

std::string legend_of(const std::vector<std::string>& legend, double x, double y) {
  std::string out;
  for (size_t i = 0; i < legend.size(); ++i) {
    out += empty_tag("rect",
      {{"x", coordinate(x)}, {"y", coordinate(y - 9)}, {"width", "10"}, {"height", "10"},
        {"fill", std::string(chart_colour(i))}});
    out += text_tag("text", legend[i], {{"x", coordinate(x + 14)}, {"y", coordinate(y)}});
    x += 30 + 6.5 * static_cast<double>(legend[i].size());
  }
  return out;
}

std::string opened(const std::string& title, double left, double height) {
  return open_tag("svg",
           {{"xmlns", "http://www.w3.org/2000/svg"},
             {"viewBox", fmt::format("0 0 {} {}", width, coordinate(height))}, {"role", "img"},
             {"aria-label", title}, {"class", "chart"}})
    + text_tag("text", title, {{"x", coordinate(left)}, {"y", "18"}, {"class", "title"}});
}

std::string row_names(const std::vector<std::string>& names, double left) {
  std::string out;
  for (size_t i = 0; i < names.size(); ++i)
    out += text_tag("text", shortened(names[i]),
      {{"x", coordinate(left - 6)},
        {"y", coordinate(top + row_height * static_cast<double>(i) + 12)}, {"text-anchor", "end"}});
  return out;
}

/// Spans of each row in order of time; those of one kind that would touch on the screen are joined.
std::vector<gantt_span> joined(const gantt_rows& what, size_t rows, const scale& x) {
  std::map<size_t, std::vector<const gantt_span*>> by_row;
  for (const auto& span : what.spans) {
    if (span.row < rows && std::isfinite(span.from) && std::isfinite(span.to)
      && span.to >= span.from)
      by_row[span.row].push_back(&span);
  }
  std::vector<gantt_span> out;
  for (auto& [row, spans] : by_row) {
    std::stable_sort(spans.begin(), spans.end(),
      [](const gantt_span* a, const gantt_span* b) { return a->from < b->from; });
    bool fresh = true;
    size_t together = 1;
    for (const gantt_span* span : spans) {
      if (!fresh && out.back().kind == span->kind && x.at(span->from) - x.at(out.back().to) < 0.5
        && x.at(span->to) - x.at(span->from) < 1) {
        out.back().to = std::max(out.back().to, span->to);
        out.back().tip = fmt::format("{} pieces", ++together);
        continue;
      }
      out.push_back(*span);
      together = 1;
      fresh = false;
    }
  }
  return out;
}

} // namespace

std::string gantt_chart(const gantt_rows& what) {
  const size_t rows = std::min(what.rows.size(), rows_max);
  const std::vector<std::string> names(
    what.rows.begin(), what.rows.begin() + static_cast<std::ptrdiff_t>(rows));
  const double left = label_width(names);
  const double foot = top + row_height * static_cast<double>(rows);
  double low = INFINITY;
  double high = -INFINITY;
  for (const auto& span : what.spans) {
    if (std::isfinite(span.from) && std::isfinite(span.to)) {
      low = std::min(low, span.from);
      high = std::max(high, span.to);
    }
  }
  std::string out = opened(what.title, left, foot + 66);
  if (!(low <= high) || rows == 0) {
    out += text_tag("text", "no data",
      {{"x", coordinate(width / 2)}, {"y", coordinate(foot + 20)}, {"text-anchor", "middle"}});
    return out + "</svg>";
  }
  const scale x = scale::over(scale_kind::linear, low, high, left, width - right);
  out += row_names(names, left);
  for (const scale_tick& tick : x.ticks()) {
    const std::string at = coordinate(x.at(tick.value));
    out += empty_tag("line",
      {{"x1", at}, {"x2", at}, {"y1", coordinate(top - 4)}, {"y2", coordinate(foot)},
        {"class", "grid"}});
    out += text_tag(
      "text", tick.label, {{"x", at}, {"y", coordinate(foot + 14)}, {"text-anchor", "middle"}});
  }
  const auto spans = joined(what, rows, x);
  for (size_t i = 0; i < std::min(spans.size(), spans_max); ++i) {
    const gantt_span& span = spans[i];
    const double from = x.at(span.from);
    out += open_tag("rect",
      {{"x", coordinate(from)}, {"y", coordinate(top + row_height * static_cast<double>(span.row))},
        {"width", coordinate(std::max(0.6, x.at(span.to) - from))},
        {"height", coordinate(bar_height)}, {"fill", std::string(chart_colour(span.kind))}});
    if (!span.tip.empty())
      out += text_tag("title", span.tip);
    out += "</rect>";
  }
  out += text_tag("text", what.x_label,
    {{"x", coordinate((left + width - right) / 2)}, {"y", coordinate(foot + 32)},
      {"text-anchor", "middle"}});
  out += legend_of(what.legend, left, foot + 52);
  if (what.rows.size() > rows || spans.size() > spans_max)
    out += text_tag("text",
      fmt::format("not drawn: {} rows, {} pieces", what.rows.size() - rows,
        spans.size() > spans_max ? spans.size() - spans_max : 0),
      {{"x", coordinate(width - right)}, {"y", coordinate(foot + 52)}, {"text-anchor", "end"}});
  return out + "</svg>";
}

std::string share_chart(const std::string& title, const std::vector<std::string>& legend,
  const std::vector<stacked_row>& rows) {
  std::vector<std::string> names;
  for (const auto& row : rows)
    names.push_back(row.name);
  const double left = label_width(names);
  const double foot = top + row_height * static_cast<double>(rows.size());
  std::string out = opened(title, left, foot + 30) + row_names(names, left);
  for (size_t r = 0; r < rows.size(); ++r) {
    double sum = 0;
    for (double part : rows[r].parts)
      sum += part > 0 && std::isfinite(part) ? part : 0;
    double at = left;
    const double y = top + row_height * static_cast<double>(r);
    for (size_t i = 0; sum > 0 && i < rows[r].parts.size(); ++i) {
      const double share =
        rows[r].parts[i] > 0 && std::isfinite(rows[r].parts[i]) ? rows[r].parts[i] / sum : 0;
      if (share == 0)
        continue;
      const double length = share * (width - right - left);
      out += open_tag("rect",
               {{"x", coordinate(at)}, {"y", coordinate(y)}, {"width", coordinate(length)},
                 {"height", coordinate(bar_height)}, {"fill", std::string(chart_colour(i))}})
        + text_tag(
          "title", fmt::format("{}: {:.2f} %", i < legend.size() ? legend[i] : "", share * 100))
        + "</rect>";
      if (share >= 0.04)
        out += text_tag("text", fmt::format("{:.0f} %", share * 100),
          {{"x", coordinate(at + length / 2)}, {"y", coordinate(y + 12)}, {"text-anchor", "middle"},
            {"class", "inside"}});
      at += length;
    }
    if (sum <= 0)
      out += text_tag("text", "no data", {{"x", coordinate(left + 4)}, {"y", coordinate(y + 12)}});
  }
  return out + legend_of(legend, left, foot + 20) + "</svg>";
}

} // namespace gristmill
