#include "report/svg/charts.hpp"
#include "report/svg/markup.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>

namespace gristmill {

namespace {

constexpr double width = 880;
constexpr double height = 340;
constexpr double left = 70;
constexpr double right = 20;
constexpr double top = 40;
constexpr double bottom = 60;
constexpr size_t points_max = 2000;

struct point {
  double x = 0;
  double y = 0;
  double low = 0;
  double high = 0;
};

std::vector<point> points_of(const chart_line& line) {
  std::vector<point> out;
  const size_t count = std::min(line.x.size(), line.y.size());
  const bool has_band = line.low.size() >= count && line.high.size() >= count && !line.low.empty();
  for (size_t i = 0; i < count; ++i) {
    point p{line.x[i], line.y[i], line.y[i], line.y[i]};
    if (!std::isfinite(p.x) || !std::isfinite(p.y))
      continue;
    if (has_band && std::isfinite(line.low[i]) && std::isfinite(line.high[i])) {
      p.low = line.low[i];
      p.high = line.high[i];
    }
    out.push_back(p);
  }
  if (out.size() <= points_max)
    return out;
  std::vector<point> thin;
  for (size_t i = 0; i < points_max; ++i)
    thin.push_back(out[i * (out.size() - 1) / (points_max - 1)]);
  return thin;
}

std::string path_of(
  const std::vector<point>& points, const scale& x, const scale& y, bool is_step) {
  std::string path;
  double before = 0;
  for (const point& p : points) {
    const double at = y.at(p.y);
    if (path.empty()) {
      path = fmt::format("M{} {}", coordinate(x.at(p.x)), coordinate(at));
    } else {
      if (is_step && before != at)
        path += fmt::format("L{} {}", coordinate(x.at(p.x)), coordinate(before));
      path += fmt::format("L{} {}", coordinate(x.at(p.x)), coordinate(at));
    }
    before = at;
  }
  return path;
}

std::string band_of(const std::vector<point>& points, const scale& x, const scale& y) {
  std::string path;
  for (const point& p : points)
    path += fmt::format(
      "{}{} {}", path.empty() ? "M" : "L", coordinate(x.at(p.x)), coordinate(y.at(p.high)));
  for (auto p = points.rbegin(); p != points.rend(); ++p)
    path += fmt::format("L{} {}", coordinate(x.at(p->x)), coordinate(y.at(p->low)));
  return path + "Z";
}

std::string frame_of(const chart_frame& frame, const scale& x, const scale& y) {
  std::string out;
  for (const scale_tick& tick : y.ticks()) {
    const std::string at = coordinate(y.at(tick.value));
    out += empty_tag("line",
      {{"x1", coordinate(left)}, {"x2", coordinate(width - right)}, {"y1", at}, {"y2", at},
        {"class", "grid"}});
    out += text_tag("text", tick.label,
      {{"x", coordinate(left - 6)}, {"y", coordinate(y.at(tick.value) + 4)},
        {"text-anchor", "end"}});
  }
  for (const scale_tick& tick : x.ticks()) {
    out += text_tag("text", tick.label,
      {{"x", coordinate(x.at(tick.value))}, {"y", coordinate(height - bottom + 18)},
        {"text-anchor", "middle"}});
  }
  out += empty_tag("path",
    {{"d",
       fmt::format("M{0} {1}V{2}H{3}", coordinate(left), coordinate(top),
         coordinate(height - bottom), coordinate(width - right))},
      {"class", "axis"}});
  if (frame.y_line)
    out += empty_tag("line",
      {{"x1", coordinate(left)}, {"x2", coordinate(width - right)},
        {"y1", coordinate(y.at(*frame.y_line))}, {"y2", coordinate(y.at(*frame.y_line))},
        {"class", "mark"}});
  out += text_tag("text", frame.x_label,
    {{"x", coordinate((left + width - right) / 2)}, {"y", coordinate(height - bottom + 36)},
      {"text-anchor", "middle"}});
  out += text_tag("text", frame.y_label,
    {{"x", "14"}, {"y", coordinate((top + height - bottom) / 2)}, {"text-anchor", "middle"},
      {"transform", fmt::format("rotate(-90 14 {})", coordinate((top + height - bottom) / 2))}});
  return out;
}

std::string legend_of(const std::vector<chart_line>& lines) {
  std::string out;
  double at = left;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].name.empty())
      continue;
    out += empty_tag("rect",
      {{"x", coordinate(at)}, {"y", coordinate(height - 14)}, {"width", "10"}, {"height", "10"},
        {"fill", std::string(chart_colour(i))}});
    out +=
      text_tag("text", lines[i].name, {{"x", coordinate(at + 14)}, {"y", coordinate(height - 5)}});
    at += 30 + 6.5 * static_cast<double>(lines[i].name.size());
  }
  return out;
}

} // namespace

std::string line_chart(const chart_frame& frame, const std::vector<chart_line>& lines) {
  std::vector<std::vector<point>> drawn;
  double x_low = INFINITY, x_high = -INFINITY, y_low = INFINITY, y_high = -INFINITY;
  for (const chart_line& line : lines) {
    drawn.push_back(points_of(line));
    for (const point& p : drawn.back()) {
      x_low = std::min(x_low, p.x);
      x_high = std::max(x_high, p.x);
      y_low = std::min(y_low, p.low);
      y_high = std::max(y_high, p.high);
    }
  }
  std::string out = open_tag("svg",
    {{"xmlns", "http://www.w3.org/2000/svg"}, {"viewBox", fmt::format("0 0 {} {}", width, height)},
      {"role", "img"}, {"aria-label", frame.title}, {"class", "chart"}});
  out += text_tag("text", frame.title, {{"x", coordinate(left)}, {"y", "20"}, {"class", "title"}});
  if (!(x_low <= x_high)) {
    out += text_tag("text", "no data",
      {{"x", coordinate(width / 2)}, {"y", coordinate(height / 2)}, {"text-anchor", "middle"}});
    return out + "</svg>";
  }
  if (frame.y_include) {
    y_low = std::min(y_low, *frame.y_include);
    y_high = std::max(y_high, *frame.y_include);
  }
  const scale x = scale::over(frame.x_kind, x_low, x_high, left, width - right);
  const scale y = scale::over(frame.y_kind, y_low, y_high, height - bottom, top);
  out += frame_of(frame, x, y);
  for (size_t i = 0; i < drawn.size(); ++i) {
    if (!lines[i].low.empty() && !drawn[i].empty())
      out += empty_tag("path",
        {{"d", band_of(drawn[i], x, y)}, {"fill", std::string(chart_colour(i))},
          {"fill-opacity", "0.18"}});
  }
  for (size_t i = 0; i < drawn.size(); ++i) {
    out += empty_tag("path",
      {{"d", path_of(drawn[i], x, y, lines[i].is_step)}, {"fill", "none"},
        {"stroke", std::string(chart_colour(i))}, {"stroke-width", "1.8"}});
  }
  return out + legend_of(lines) + "</svg>";
}

chart_line cumulative(std::string name, std::vector<double> samples) {
  chart_line out;
  out.name = std::move(name);
  out.is_step = true;
  samples.erase(
    std::remove_if(samples.begin(), samples.end(), [](double s) { return !std::isfinite(s); }),
    samples.end());
  std::sort(samples.begin(), samples.end());
  for (size_t i = 0; i < samples.size(); ++i) {
    // Of equal samples the last one alone says how many there are.
    if (i + 1 < samples.size() && samples[i + 1] == samples[i])
      continue;
    out.x.push_back(samples[i]);
    out.y.push_back(static_cast<double>(i + 1) / static_cast<double>(samples.size()));
  }
  return out;
}

} // namespace gristmill
