#pragma once

#include "report/svg/scale.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gristmill {

// Charts as stand-alone `<svg>` elements for a page or a file: no script, no font and nothing else
// from outside; text takes the colour of the page around it. Equal arguments give equal bytes.

/// What stands around a chart.
struct chart_frame {
  std::string title;
  std::string x_label;
  std::string y_label;
  scale_kind x_kind = scale_kind::linear;
  scale_kind y_kind = scale_kind::linear;
  /// What must be on the y axis, besides the data, such as 0 or 1.
  std::optional<double> y_include;
  /// A thin line across, such as at a speed-up of 1.
  std::optional<double> y_line;
};

struct chart_line {
  std::string name;
  /// As long as each other; ascending `x`. Points that are not finite are left out.
  std::vector<double> x;
  std::vector<double> y;
  /// Both empty, or as long as `x`: a band around the line.
  std::vector<double> low;
  std::vector<double> high;
  /// The value holds until the next point, as that of a step function.
  bool is_step = false;
};

/// Lines over a common x axis. Without a point it says "no data". Lines of more than 2,000 points
/// are thinned evenly; first and last stay.
std::string line_chart(const chart_frame& frame, const std::vector<chart_line>& lines);

/// One line for the share of samples at or below each value.
chart_line cumulative(std::string name, std::vector<double> samples);

/// A piece of a row of a Gantt chart.
struct gantt_span {
  size_t row = 0;
  double from = 0;
  double to = 0;
  /// Index into the legend, which gives its colour.
  size_t kind = 0;
  /// Shown when the pointer rests on it; may be empty.
  std::string tip;
};

struct gantt_rows {
  std::string title;
  std::string x_label;
  std::vector<std::string> rows;
  std::vector<std::string> legend;
  std::vector<gantt_span> spans;
};

/// What each row did over time. At most 64 rows and 20,000 spans are drawn; a line below the chart
/// says what was left out, and neighbours of one kind closer than a pixel are drawn as one.
std::string gantt_chart(const gantt_rows& what);

/// Rows of parts that add up, such as shares of time by state. Parts are of `legend`'s length.
struct stacked_row {
  std::string name;
  std::vector<double> parts;
};

/// Each row is one bar, scaled to its own sum: shares, with the percentage in parts of 4 % or more.
std::string share_chart(const std::string& title, const std::vector<std::string>& legend,
  const std::vector<stacked_row>& rows);

} // namespace gristmill
