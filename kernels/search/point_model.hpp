#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gristmill {

/// What the trials so far say about points that were not tried: a Gaussian process over the keys.
///
/// Every stage adds to the logarithm of the time, by its share of the work, a smooth random
/// function of its parameters: numbers count in doublings, so that 64 is as far from 128 as 4 is
/// from 8; a switch is one step; another family is far away; other partitions say nothing. So a
/// move that helped speaks for going on in that direction, and what is known about one stage holds
/// whatever the others do. A guess that orders proposals; nothing else rests on it.
class point_model {
public:
  /// `shares`: by partition and stage, as `search_space::work_shares`; what is missing counts as 1.
  explicit point_model(std::vector<std::vector<double>> shares) : shares_(std::move(shares)) {}

  /// A trial: `log_time` is the logarithm of its time over that of the best. Cubic in their number;
  /// a hundred take below a millisecond.
  void add(std::string_view point_key, double log_time);
  /// After the last `add`, before the first `at`.
  void fit();

  struct guess {
    double mean = 0;
    double deviation = 0;
  };

  guess at(std::string_view point_key) const;

  /// How much below 0, the best, the point may be expected to be: its chance and its gain in one.
  static double expected_gain(const guess& what);

private:
  struct stage_point {
    uint32_t slot = 0;
    uint32_t family = 0;
    double weight = 1;
    /// Parameter and its value in steps, ordered by parameter.
    std::vector<std::pair<uint32_t, double>> values;
  };
  using features = std::vector<stage_point>;

  features read(std::string_view point_key) const;
  uint32_t number_of(std::string_view name) const;
  static double likeness(const stage_point& a, const stage_point& b);
  static double covariance(const features& a, const features& b);

  std::vector<std::vector<double>> shares_;
  /// Names that occurred; grows as points are looked at.
  mutable std::unordered_map<std::string, uint32_t> numbers_;
  std::vector<features> points_;
  std::vector<double> log_times_;
  double mean_ = 0;
  /// Lower triangle of the Cholesky factor, row by row.
  std::vector<double> factor_;
  /// Solution of the normal equations.
  std::vector<double> weights_;
};

} // namespace gristmill
