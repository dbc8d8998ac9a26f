#include "simulation/model/counter_stream.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <functional>
#include <limits>

using namespace gristmill;

namespace {

struct moments {
  double mean = 0;
  double deviation = 0;
};

moments of(size_t draws, const std::function<double(counter_stream&)>& draw) {
  counter_stream stream(11, stream_of(stream_purpose::gain, 3));
  double sum = 0;
  double squares = 0;
  for (size_t i = 0; i < draws; ++i) {
    const double x = draw(stream);
    sum += x;
    squares += x * x;
  }
  const double mean = sum / static_cast<double>(draws);
  return {mean, std::sqrt(squares / static_cast<double>(draws) - mean * mean)};
}

constexpr size_t many = 200'000;

} // namespace

TEST_CASE("a draw depends on seed, stream and index alone") {
  counter_stream a(7, 1);
  counter_stream b(7, 1);
  counter_stream other(7, 2);
  for (int i = 0; i < 5; ++i) {
    const uint64_t word = a.word();
    CHECK(word == b.word());
    CHECK(word == counter_word(7, 1, static_cast<uint64_t>(i)));
    CHECK(word != other.word());
  }
  CHECK(a.index() == 5);
}

TEST_CASE("streams of different purposes and entities are different streams") {
  CHECK(stream_of(stream_purpose::problem, 5) != stream_of(stream_purpose::gain, 5));
  CHECK(stream_of(stream_purpose::gain, 5) != stream_of(stream_purpose::gain, 6));
}

TEST_CASE("a unit draw is above 0 and at most 1, with mean a half") {
  const moments m = of(many, [](counter_stream& s) {
    const double u = s.unit();
    CHECK_UNARY(u > 0 && u <= 1);
    return u;
  });
  CHECK(m.mean == doctest::Approx(0.5).epsilon(0.01));
  CHECK(m.deviation == doctest::Approx(std::sqrt(1.0 / 12)).epsilon(0.01));
}

TEST_CASE("the distributions have the moments that they promise") {
  const moments e = of(many, [](counter_stream& s) { return s.exponential(); });
  CHECK(e.mean == doctest::Approx(1).epsilon(0.01));
  CHECK(e.deviation == doctest::Approx(1).epsilon(0.02));
  const moments n = of(many, [](counter_stream& s) { return s.normal(); });
  CHECK(std::fabs(n.mean) < 0.01);
  CHECK(n.deviation == doctest::Approx(1).epsilon(0.01));
  const moments l = of(many, [](counter_stream& s) { return s.lognormal(-0.125, 0.5); });
  CHECK(l.mean == doctest::Approx(1).epsilon(0.01));
  const moments b = of(many, [](counter_stream& s) { return s.beta_one(7.73); });
  CHECK(b.mean == doctest::Approx(1 / 8.73).epsilon(0.01));
  const moments g =
    of(many, [](counter_stream& s) { return static_cast<double>(s.geometric(6.4)); });
  CHECK(g.mean == doctest::Approx(6.4).epsilon(0.02));
}

TEST_CASE("edges: probabilities 0 and 1, mean 0") {
  counter_stream s(1, 1);
  for (int i = 0; i < 100; ++i) {
    CHECK(s.chance(1));
    CHECK_FALSE(s.chance(0));
    CHECK(s.geometric(0) == 0);
  }
}

TEST_CASE("seconds become whole nanoseconds, and what is no time becomes none") {
  CHECK(time_of(1.5).count() == 1'500'000'000);
  CHECK(time_of(-1).count() == 0);
  CHECK(time_of(std::numeric_limits<double>::quiet_NaN()).count() == 0);
  CHECK(time_of(1e30) == std::chrono::nanoseconds::max());
  CHECK(seconds_of(std::chrono::milliseconds{250}) == doctest::Approx(0.25));
}
