#pragma once

#include <string>
#include <vector>

namespace gristmill {

enum class scale_kind { linear, logarithmic };

struct scale_tick {
  double value = 0;
  std::string label;
};

/// Maps numbers to coordinates along one side of a chart, with ticks at round numbers.
class scale {
public:
  /// `low` and `high` are what must be shown; the range is widened to round numbers, and to
  /// something where they are equal. A logarithmic scale takes positive numbers; without one it
  /// shows 0.1 to 1. `from` and `to` are the coordinates of the ends.
  static scale over(scale_kind kind, double low, double high, double from, double to);

  /// Clipped to the ends: nothing is drawn outside of the chart.
  double at(double value) const;
  const std::vector<scale_tick>& ticks() const { return ticks_; }
  double low() const { return low_; }
  double high() const { return high_; }

private:
  scale_kind kind_ = scale_kind::linear;
  double low_ = 0;
  double high_ = 1;
  double from_ = 0;
  double to_ = 1;
  std::vector<scale_tick> ticks_;
};

/// A number for people: three significant digits, thousands as "12k", "3.4M"; small ones as
/// "0.0012".
std::string short_number(double value);

} // namespace gristmill
