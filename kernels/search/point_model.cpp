#include "kernels/search/point_model.hpp"

#include "kernels/search/search_key.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>

namespace gristmill {

namespace {

// All in logarithms of time: 0.1 is 10 %.

/// How far the times of a space usually spread.
constexpr double spread = 0.5;
/// Steps over which a parameter keeps its character.
constexpr double reach = 2.5;
/// Roughness between neighbours that no smooth function explains.
constexpr double roughness = 0.015;
/// What tells families of one stage apart, in steps.
constexpr double family_steps = 5;
/// Two values of a parameter are never further apart than this.
constexpr double steps_max = 4;
/// Beyond it slow is slow.
constexpr double log_time_max = 1.0;

size_t row_start(size_t row) {
  return row * (row + 1) / 2;
}

} // namespace

uint32_t point_model::number_of(std::string_view name) const {
  return numbers_.try_emplace(std::string(name), static_cast<uint32_t>(numbers_.size()))
    .first->second;
}

point_model::features point_model::read(std::string_view point_key) const {
  features out;
  size_t partition = 0;
  if (const size_t colon = point_key.find(':');
      point_key.starts_with('p') && colon < point_key.find('/'))
    std::from_chars(point_key.data() + 1, point_key.data() + colon, partition);
  const auto keys = stage_keys(point_key);
  for (size_t stage = 0; stage < keys.size(); ++stage) {
    stage_point one;
    one.slot = static_cast<uint32_t>(partition * 4096 + stage);
    if (partition < shares_.size() && stage < shares_[partition].size())
      one.weight = shares_[partition][stage];
    std::string_view rest = keys[stage];
    one.family = number_of(family_of(rest));
    rest.remove_prefix(family_of(rest).size());
    while (!rest.empty()) {
      rest.remove_prefix(1);
      const std::string_view parameter = rest.substr(0, rest.find('/'));
      rest.remove_prefix(parameter.size());
      const size_t digits = parameter.find_last_not_of("0123456789") + 1;
      int64_t number = 0;
      const bool has_number = digits > 0 && digits < parameter.size()
        && std::from_chars(parameter.data() + digits, parameter.data() + parameter.size(), number)
             .ec
          == std::errc{};
      // What is not named counts as 0, and the smallest number as one step from it.
      const double steps = has_number ? std::log2(static_cast<double>(number) + 1) : 1;
      one.values.emplace_back(
        number_of(has_number ? parameter.substr(0, digits) : parameter), steps);
    }
    std::sort(one.values.begin(), one.values.end());
    out.push_back(std::move(one));
  }
  return out;
}

double point_model::likeness(const stage_point& a, const stage_point& b) {
  double sum = 0;
  if (a.family != b.family) {
    sum = family_steps * family_steps;
  } else {
    size_t i = 0;
    size_t j = 0;
    while (i < a.values.size() || j < b.values.size()) {
      double difference = 0;
      if (j == b.values.size() || (i < a.values.size() && a.values[i].first < b.values[j].first)) {
        difference = a.values[i++].second;
      } else if (i == a.values.size() || b.values[j].first < a.values[i].first) {
        difference = b.values[j++].second;
      } else {
        difference = a.values[i].second - b.values[j].second;
        ++i;
        ++j;
      }
      difference = std::min(std::abs(difference), steps_max);
      sum += difference * difference;
    }
  }
  return std::exp(-sum / (2 * reach * reach));
}

double point_model::covariance(const features& a, const features& b) {
  double sum = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i].slot == b[i].slot)
      sum += a[i].weight * a[i].weight * likeness(a[i], b[i]);
  }
  return spread * spread * sum;
}

void point_model::add(std::string_view point_key, double log_time) {
  points_.push_back(read(point_key));
  log_times_.push_back(std::min(log_time, log_time_max));
}

void point_model::fit() {
  const size_t count = points_.size();
  mean_ = 0;
  for (double value : log_times_)
    mean_ += value / static_cast<double>(count);
  factor_.assign(row_start(count), 0);
  for (size_t i = 0; i < count; ++i) {
    double* row = factor_.data() + row_start(i);
    for (size_t j = 0; j <= i; ++j) {
      const double* other = factor_.data() + row_start(j);
      double value = covariance(points_[i], points_[j]);
      if (i == j)
        value += roughness * roughness;
      for (size_t k = 0; k < j; ++k)
        value -= row[k] * other[k];
      row[j] = i == j ? std::sqrt(std::max(value, 1e-12)) : value / other[j];
    }
  }
  // Forwards and backwards through the factor.
  weights_.assign(count, 0);
  for (size_t i = 0; i < count; ++i) {
    double value = log_times_[i] - mean_;
    for (size_t k = 0; k < i; ++k)
      value -= factor_[row_start(i) + k] * weights_[k];
    weights_[i] = value / factor_[row_start(i) + i];
  }
  for (size_t i = count; i-- > 0;) {
    double value = weights_[i];
    for (size_t k = i + 1; k < count; ++k)
      value -= factor_[row_start(k) + i] * weights_[k];
    weights_[i] = value / factor_[row_start(i) + i];
  }
}

point_model::guess point_model::at(std::string_view point_key) const {
  const features point = read(point_key);
  const size_t count = points_.size();
  std::vector<double> solved(count);
  guess out;
  out.mean = mean_;
  double variance = covariance(point, point);
  for (size_t i = 0; i < count; ++i) {
    const double like = covariance(point, points_[i]);
    out.mean += like * weights_[i];
    double value = like;
    for (size_t k = 0; k < i; ++k)
      value -= factor_[row_start(i) + k] * solved[k];
    solved[i] = value / factor_[row_start(i) + i];
    variance -= solved[i] * solved[i];
  }
  out.deviation = std::sqrt(std::max(variance, 0.0) + roughness * roughness);
  return out;
}

double point_model::expected_gain(const guess& what) {
  const double z = -what.mean / what.deviation;
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  const double chance = std::erfc(-z / std::numbers::sqrt2) / 2;
  return what.deviation * (z * chance + density);
}

} // namespace gristmill
