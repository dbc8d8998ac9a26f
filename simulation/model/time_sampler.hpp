#pragma once

#include "simulation/model/counter_stream.hpp"
#include "simulation/model/scenario.hpp"

namespace gristmill {

/// Draws the times of a law.
class time_sampler {
public:
  time_sampler() = default;
  /// All means times `factor`; the law's cap stays what it is.
  explicit time_sampler(const time_law& law, double factor = 1);

  /// Seconds. Takes the same number of words for every draw of one law.
  double draw(counter_stream& draws) const;
  /// Nothing ever takes any time.
  bool is_zero() const { return mean_ <= 0; }
  /// Of the law, as if it had no cap, but no more than the cap.
  double mean() const { return cap_ > 0 && cap_ < mean_ ? cap_ : mean_; }

private:
  draw_kind kind_ = draw_kind::constant;
  double mean_ = 0;
  double cap_ = 0;
  /// Of `lognormal`.
  double mu_ = 0;
  double sigma_ = 0;
  /// Of `hyperexponential`: the chance of the first mean, and both.
  double first_chance_ = 1;
  double first_mean_ = 0;
  double second_mean_ = 0;
};

} // namespace gristmill
