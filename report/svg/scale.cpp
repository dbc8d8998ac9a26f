#include "report/svg/scale.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace gristmill {

namespace {

/// The round step (1, 2 or 5 times a power of ten) that gives about `wanted` ticks.
double round_step(double range, double wanted) {
  const double rough = range / wanted;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * (1 - 1e-9))
      return factor * power;
  }
  return 10 * power;
}

} // namespace

std::string short_number(double value) {
  if (value == 0 || !std::isfinite(value))
    return value == 0 ? "0" : "-";
  const double size = std::fabs(value);
  struct unit {
    double from;
    const char* suffix;
  };
  for (const unit& u : {unit{1e9, "G"}, unit{1e6, "M"}, unit{1e4, "k"}}) {
    if (size >= u.from * (1 - 1e-12))
      return fmt::format("{:.3g}{}", value / (u.from == 1e4 ? 1e3 : u.from), u.suffix);
  }
  return fmt::format("{:.4g}", value);
}

scale scale::over(scale_kind kind, double low, double high, double from, double to) {
  scale out;
  out.kind_ = kind;
  out.from_ = from;
  out.to_ = to;
  if (!std::isfinite(low) || !std::isfinite(high) || low > high) {
    low = 0;
    high = 1;
  }
  if (kind == scale_kind::logarithmic) {
    if (!(high > 0))
      high = 1;
    if (!(low > 0))
      low = high / 10;
    const double first = std::floor(std::log10(low) + 1e-9);
    const double last = std::max(std::ceil(std::log10(high) - 1e-9), first + 1);
    out.low_ = std::pow(10.0, first);
    out.high_ = std::pow(10.0, last);
    for (double decade = first; decade <= last && decade - first < 40; ++decade)
      out.ticks_.push_back({std::pow(10.0, decade), short_number(std::pow(10.0, decade))});
    return out;
  }
  if (low == high) {
    const double around = low == 0 ? 1 : std::fabs(low) * 0.5;
    low -= low == 0 ? 0 : around;
    high += around;
  }
  const double step = round_step(high - low, 5);
  out.low_ = std::floor(low / step + 1e-9) * step;
  out.high_ = std::ceil(high / step - 1e-9) * step;
  for (int i = 0; i < 40; ++i) {
    // A product of whole numbers, so that 0.3 is not 0.30000000000000004.
    const double value = (std::round(out.low_ / step) + i) * step;
    if (value > out.high_ + step * 0.5)
      break;
    out.ticks_.push_back({value, short_number(std::fabs(value) < step * 1e-6 ? 0 : value)});
  }
  return out;
}

double scale::at(double value) const {
  double share = 0;
  if (kind_ == scale_kind::logarithmic)
    share = value > 0 ? std::log(value / low_) / std::log(high_ / low_) : 0;
  else
    share = (value - low_) / (high_ - low_);
  if (!std::isfinite(share))
    share = 0;
  return from_ + (to_ - from_) * std::clamp(share, 0.0, 1.0);
}

} // namespace gristmill
