#include "simulation/model/plain_math.hpp"
#include "simulation/model/time_sampler.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <tuple>
#include <utility>

using namespace gristmill;

TEST_CASE("the logarithm is that of libm, to the last digits") {
  double worst = 0;
  for (double x = 0x1p-60; x < 1e30; x *= 1.00137)
    worst = std::max(
      worst, std::fabs(plain_log(x) - std::log(x)) / std::max(1.0, std::fabs(std::log(x))));
  CHECK(worst < 5e-16);
  CHECK(std::fabs(plain_log(1)) < 1e-16);
  CHECK(plain_log(2) == doctest::Approx(0.6931471805599453).epsilon(1e-15));
}

TEST_CASE("the exponential is that of libm, to the last digits, and has its limits") {
  double worst = 0;
  for (double x = -700; x < 705; x += 0.0137)
    worst = std::max(worst, std::fabs(plain_exp(x) / std::exp(x) - 1));
  CHECK(worst < 1e-15);
  CHECK(plain_exp(0) == 1);
  CHECK(plain_exp(-1e9) == 0);
  CHECK(plain_exp(std::numeric_limits<double>::quiet_NaN()) == 0);
  CHECK(std::isinf(plain_exp(1e9)));
  CHECK(std::isfinite(plain_exp(709)));
  CHECK(plain_pow(1.7, 2) == 1.7 * 1.7);
  CHECK(plain_pow(0.3, 4) == doctest::Approx(std::pow(0.3, 4)).epsilon(1e-14));
  CHECK(plain_pow(0.3, -0.5) == doctest::Approx(std::pow(0.3, -0.5)).epsilon(1e-14));
}

TEST_CASE("the normal's quantile turns the distribution function around") {
  double worst = 0;
  for (double x = -8; x <= 8; x += 0.001) {
    // From the side where the probability is small it is exact.
    const double p = std::erfc(std::fabs(x) / std::sqrt(2.0)) / 2;
    worst = std::max(worst, std::fabs(normal_quantile(p) + std::fabs(x)));
  }
  CHECK(worst < 1e-11);
  CHECK(normal_quantile(0.5) == 0);
  CHECK(normal_quantile(0.975) == doctest::Approx(1.959963984540054).epsilon(1e-10));
  CHECK(normal_quantile(0.03) == -normal_quantile(0.97));
  CHECK(normal_quantile(1) > 8);
  CHECK(normal_quantile(0) < -8);
}

TEST_CASE("times have the mean and the variation of their law") {
  const auto moments = [](const time_law& law, double factor = 1) {
    counter_stream draws(3, 5);
    const time_sampler sampler(law, factor);
    double sum = 0;
    double squares = 0;
    constexpr int many = 400'000;
    for (int i = 0; i < many; ++i) {
      const double x = sampler.draw(draws);
      sum += x;
      squares += x * x;
    }
    const double mean = sum / many;
    return std::pair{mean, (squares / many - mean * mean) / (mean * mean)};
  };
  CHECK(moments({draw_kind::constant, 7, 0, 1, 0}).first == doctest::Approx(7));
  auto [mean, cv2] = moments({draw_kind::exponential, 30, 0, 1, 0});
  CHECK(mean == doctest::Approx(30).epsilon(0.01));
  CHECK(cv2 == doctest::Approx(1).epsilon(0.02));
  std::tie(mean, cv2) = moments({draw_kind::lognormal, 24, 0.5, 1, 0}, 2);
  CHECK(mean == doctest::Approx(48).epsilon(0.01));
  CHECK(cv2 == doctest::Approx(std::exp(0.25) - 1).epsilon(0.03));
  std::tie(mean, cv2) = moments({draw_kind::hyperexponential, 10, 0, 4, 0});
  CHECK(mean == doctest::Approx(10).epsilon(0.01));
  CHECK(cv2 == doctest::Approx(4).epsilon(0.04));
  std::tie(mean, cv2) = moments({draw_kind::hyperexponential, 10, 0, 1, 0});
  CHECK(cv2 == doctest::Approx(1).epsilon(0.02));
}

TEST_CASE("a cap cuts draws, and what has no mean takes no time") {
  counter_stream draws(3, 5);
  const time_sampler capped({draw_kind::exponential, 100, 0, 1, 20});
  double most = 0;
  for (int i = 0; i < 1000; ++i)
    most = std::max(most, capped.draw(draws));
  CHECK(most == 20);
  CHECK(capped.mean() == 20);
  for (auto kind : {draw_kind::constant, draw_kind::exponential, draw_kind::lognormal,
         draw_kind::hyperexponential}) {
    const time_sampler nothing({kind, 0, 0.5, 2, 0});
    CHECK(nothing.is_zero());
    CHECK(nothing.draw(draws) == 0);
  }
}
