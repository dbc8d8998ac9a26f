#include "simulation/model/time_sampler.hpp"

#include <cmath>

namespace gristmill {

time_sampler::time_sampler(const time_law& law, double factor)
  : kind_(law.kind), mean_(law.mean_s * factor), cap_(law.cap_s) {
  if (kind_ == draw_kind::lognormal && mean_ > 0) {
    sigma_ = law.sigma;
    mu_ = plain_log(mean_) - sigma_ * sigma_ / 2;
  }
  if (kind_ == draw_kind::hyperexponential) {
    // Balanced means: each of the two contributes half of the mean.
    first_chance_ = (1 + std::sqrt((law.cv2 - 1) / (law.cv2 + 1))) / 2;
    first_mean_ = mean_ / (2 * first_chance_);
    second_mean_ = first_chance_ < 1 ? mean_ / (2 * (1 - first_chance_)) : 0;
  }
}

double time_sampler::draw(counter_stream& draws) const {
  double out = mean_;
  switch (kind_) { // no default: the compiler reports a missing case
  case draw_kind::constant:
    break;
  case draw_kind::exponential:
    out = mean_ * draws.exponential();
    break;
  case draw_kind::lognormal: {
    const double normal = draws.normal();
    out = mean_ > 0 ? plain_exp(mu_ + sigma_ * normal) : 0;
    break;
  }
  case draw_kind::hyperexponential: {
    const bool first = draws.chance(first_chance_);
    out = (first ? first_mean_ : second_mean_) * draws.exponential();
    break;
  }
  }
  return cap_ > 0 && out > cap_ ? cap_ : out;
}

} // namespace gristmill
