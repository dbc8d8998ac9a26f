#include "simulation/core/lab_result.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace gristmill {

namespace {

/// Bins below: one a nanosecond. From there on each octave has `parts` bins.
constexpr uint32_t parts = 256;
constexpr int parts_bits = 8;

size_t bin_of(int64_t ns) {
  const auto value = static_cast<uint64_t>(ns);
  if (value < parts)
    return value;
  const auto shift = static_cast<int>(std::bit_width(value)) - 1 - parts_bits;
  return static_cast<size_t>(shift + 1) * parts + ((value >> shift) - parts);
}

/// First value of a bin.
double start_of(size_t bin) {
  if (bin < parts)
    return static_cast<double>(bin);
  const auto shift = static_cast<int>(bin / parts) - 1;
  return std::ldexp(static_cast<double>(bin % parts + parts), shift);
}

} // namespace

void time_histogram::add(int64_t ns) {
  ns = std::max<int64_t>(ns, 0);
  const auto bin = bin_of(ns);
  if (bin >= bins_.size())
    bins_.resize(bin + 1);
  ++bins_[bin];
  ++count_;
  sum_ += ns;
  max_ = std::max(max_, ns);
}

double time_histogram::mean_s() const {
  return count_ == 0 ? 0 : static_cast<double>(sum_) * 1e-9 / static_cast<double>(count_);
}

double time_histogram::max_s() const {
  return static_cast<double>(max_) * 1e-9;
}

double time_histogram::quantile_s(double q) const {
  if (count_ == 0)
    return 0;
  const double rank = std::clamp(q, 0.0, 1.0) * static_cast<double>(count_);
  uint64_t before = 0;
  for (size_t bin = 0; bin < bins_.size(); ++bin) {
    if (bins_[bin] == 0)
      continue;
    const auto after = before + bins_[bin];
    if (static_cast<double>(after) >= rank) {
      const double share = (rank - static_cast<double>(before)) / static_cast<double>(bins_[bin]);
      const double from = start_of(bin);
      const double to = start_of(bin + 1);
      // Nothing lies above the largest; a bin of one nanosecond has no inside.
      const double inside = bin < parts ? from : from + share * (to - from);
      return std::min(inside, static_cast<double>(max_)) * 1e-9;
    }
    before = after;
  }
  return max_s();
}

double time_histogram::share_up_to(double seconds) const {
  if (count_ == 0)
    return 0;
  const double ns = seconds * 1e9;
  if (!(ns >= 0))
    return 0;
  if (ns >= static_cast<double>(max_))
    return 1;
  const auto last = bin_of(static_cast<int64_t>(ns));
  double sum = 0;
  for (size_t bin = 0; bin < last && bin < bins_.size(); ++bin)
    sum += bins_[bin];
  if (last < bins_.size()) {
    const double from = start_of(last);
    const double to = start_of(last + 1);
    sum += bins_[last] * (last < parts ? 1.0 : (ns - from) / (to - from));
  }
  return sum / static_cast<double>(count_);
}

void time_histogram::merge(const time_histogram& other) {
  if (other.bins_.size() > bins_.size())
    bins_.resize(other.bins_.size());
  for (size_t bin = 0; bin < other.bins_.size(); ++bin)
    bins_[bin] += other.bins_[bin];
  count_ += other.count_;
  sum_ += other.sum_;
  max_ = std::max(max_, other.max_);
}

std::vector<std::pair<double, uint64_t>> time_histogram::cumulative() const {
  std::vector<std::pair<double, uint64_t>> out;
  uint64_t sum = 0;
  for (size_t bin = 0; bin < bins_.size(); ++bin) {
    if (bins_[bin] == 0)
      continue;
    sum += bins_[bin];
    const double end = bin < parts ? start_of(bin) : start_of(bin + 1);
    out.emplace_back(std::min(end, static_cast<double>(max_)) * 1e-9, sum);
  }
  return out;
}

std::string to_string(gpu_time what) {
  switch (what) { // no default: the compiler reports a missing case
  case gpu_time::useful:
    return "useful";
  case gpu_time::compile:
    return "compile";
  case gpu_time::launch:
    return "launch";
  case gpu_time::wasted:
    return "wasted";
  case gpu_time::verify:
    return "verify";
  case gpu_time::down:
    return "down";
  case gpu_time::free:
    return "free";
  case gpu_time::count_:
    break;
  }
  return "unknown";
}

double lab_result::utilisation() const {
  const double total = measured_s * gpus;
  if (!(total > 0))
    return 0;
  double leased = 0;
  for (auto state :
    {gpu_time::useful, gpu_time::compile, gpu_time::launch, gpu_time::wasted, gpu_time::verify})
    leased += gpu_s[static_cast<size_t>(state)];
  return leased / total;
}

double lab_result::gpu_hours_to(double target) const {
  double hours = 0;
  double geomean = 1;
  bool first = true;
  for (const auto& point : curve) {
    if (point.geomean >= target) {
      // The run begins at a geomean of 1 that nobody has earned, so nothing leads up to the first.
      if (first || !(point.geomean > geomean))
        return point.gpu_hours;
      const double share = (target - geomean) / (point.geomean - geomean);
      return hours + share * (point.gpu_hours - hours);
    }
    hours = point.gpu_hours;
    geomean = point.geomean;
    first = false;
  }
  return std::numeric_limits<double>::infinity();
}

double lab_result::mean_geomean() const {
  double area = 0;
  double hours = 0;
  double geomean = 1;
  for (const auto& point : curve) {
    area += (point.gpu_hours - hours) * (point.geomean + geomean) / 2;
    hours = point.gpu_hours;
    geomean = point.geomean;
  }
  return hours > 0 ? area / hours : geomean;
}

double jain_index(const std::vector<double>& shares) {
  double sum = 0;
  double squares = 0;
  for (double x : shares) {
    sum += x;
    squares += x * x;
  }
  return squares > 0 ? sum * sum / (static_cast<double>(shares.size()) * squares) : 1;
}

} // namespace gristmill
