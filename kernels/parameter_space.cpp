#include "kernels/stage.hpp"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <utility>

namespace gristmill {

parameter_space::parameter_space(std::string family, std::vector<stage_parameter> parameters,
  std::vector<std::vector<int64_t>> points, std::vector<int64_t> first)
  : family_(std::move(family)), parameters_(std::move(parameters)), points_(std::move(points)),
    ladder_(parameters_.size()) {
  for (const auto& point : points_) {
    for (size_t i = 0; i < ladder_.size(); ++i)
      ladder_[i].push_back(point[i]);
  }
  for (auto& steps : ladder_) {
    std::sort(steps.begin(), steps.end());
    steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  }
  const auto found = std::find(points_.begin(), points_.end(), first);
  first_ = found == points_.end() ? 0 : static_cast<size_t>(found - points_.begin());
}

size_t parameter_space::point_with(const std::vector<int64_t>& values) const {
  return static_cast<size_t>(std::find(points_.begin(), points_.end(), values) - points_.begin());
}

std::vector<size_t> parameter_space::points_with(
  const std::vector<std::vector<int64_t>>& wished) const {
  std::vector<size_t> out;
  for (const auto& one : wished) {
    const size_t point = point_with(one);
    if (point < points_.size() && std::find(out.begin(), out.end(), point) == out.end())
      out.push_back(point);
  }
  return out;
}

std::string parameter_space::key(size_t point) const {
  std::string text = family_;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (values(point)[i] != 0)
      text += fmt::format("/{}{}", parameters_[i].name, values(point)[i]);
  }
  return text;
}

std::string parameter_space::describe(size_t point) const {
  std::string text;
  for (size_t i = 0; i < parameters_.size(); ++i)
    text +=
      fmt::format("{}{} {}", text.empty() ? "" : ", ", values(point)[i], parameters_[i].words);
  return text;
}

int parameter_space::distance(size_t a, size_t b) const {
  int steps = 0;
  for (size_t i = 0; i < ladder_.size(); ++i) {
    const auto place = [&](size_t point) {
      return std::lower_bound(ladder_[i].begin(), ladder_[i].end(), values(point)[i])
        - ladder_[i].begin();
    };
    steps += static_cast<int>(std::abs(place(a) - place(b)));
  }
  return steps;
}

std::string parameter_space::difference(size_t from, size_t to) const {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const int64_t before = values(from)[i];
    const int64_t after = values(to)[i];
    if (before == after)
      continue;
    const stage_parameter& what = parameters_[i];
    const std::string& why = after > before ? what.more : what.less;
    return fmt::format(
      "{} {} instead of {}{}{}", after, what.words, before, why.empty() ? "" : ": ", why);
  }
  return "the same point";
}

} // namespace gristmill
