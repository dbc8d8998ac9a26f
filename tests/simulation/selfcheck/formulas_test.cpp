#include "simulation/selfcheck/formulas.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace gristmill;

namespace {

bool near(double value, double expected, double within) {
  return std::fabs(value - expected) <= within;
}

} // namespace

TEST_CASE("a closed queue of 300 agents on 27 GPUs has the published figures") {
  const closed_queue q(300, 27, 300, 30);
  CHECK(near(q.throughput(), 0.874743, 5e-7));
  CHECK(near(q.utilisation(), 0.97194, 5e-6));
  CHECK(near(q.mean_wait(), 12.9578, 5e-5));
  CHECK(near(q.wait_quantile(0.5), 10.064, 5e-4));
  CHECK(near(q.wait_quantile(0.9), 30.836, 5e-4));
  CHECK(near(q.wait_quantile(0.99), 50.297, 5e-4));
  CHECK(near(q.waits_at_all(), 0.8052, 5e-5));
}

TEST_CASE("a closed queue keeps Little's law, and its tail integrates to its mean wait") {
  for (const auto& q : {closed_queue(300, 27, 300, 30), closed_queue(40, 3, 20, 5),
         closed_queue(5, 5, 1, 1), closed_queue(7, 1, 3, 2)}) {
    double sum = 0;
    double in_system = 0;
    for (uint32_t n = 0; n <= 300; ++n) {
      sum += q.at(n);
      in_system += n * q.at(n);
    }
    CHECK(near(sum, 1, 1e-12));
    CHECK(near(in_system, q.in_system(), 1e-9));
    double tail = 0;
    const double step = 0.005;
    for (double t = 0; t < 400; t += step)
      tail += step * (q.wait_tail(t) + q.wait_tail(t + step)) / 2;
    CHECK(near(tail, q.mean_wait(), 1e-4 * (1 + q.mean_wait())));
  }
}

TEST_CASE("with as many GPUs as agents nobody waits, and one agent alone works Z + S a turn") {
  const closed_queue enough(8, 8, 10, 2);
  CHECK(enough.mean_wait() == 0);
  CHECK(enough.waits_at_all() == 0);
  CHECK(enough.wait_quantile(0.99) == 0);
  const closed_queue alone(1, 1, 10, 2);
  CHECK(near(alone.throughput(), 1.0 / 12, 1e-15));
}

TEST_CASE("a saturated closed queue is pinned by its GPUs") {
  const closed_queue q(300, 27, 85, 24);
  CHECK(near(q.throughput(), 1.125, 1e-9));
  CHECK(near(q.mean_wait(), 157.667, 5e-4));
  CHECK(near(q.mean_wait(), 300.0 * 24 / 27 - 24 - 85, 1e-6));
  CHECK(near(q.wait_quantile(0.99), 193.1, 0.05));
}

TEST_CASE("the waits of a run of 123, 200, 300 and 500 agents are the published ones") {
  const std::vector<std::pair<uint32_t, double>> seconds = {
    {123, 5}, {200, 69}, {300, 158}, {500, 335}};
  for (const auto& [agents, wait] : seconds)
    CHECK(near(closed_queue(agents, 27, 85, 24).mean_wait(), wait, 0.6));
  CHECK(near(closed_queue(123, 27, 300, 60).mean_wait(), 0.6, 0.05));
  CHECK(near(closed_queue(500, 27, 300, 60).mean_wait(), 751, 0.6));
  CHECK(near(closed_queue(300, 27, 97, 12).mean_wait(), 24, 0.6));
}

TEST_CASE("no closed queue passes its bounds") {
  for (uint32_t agents : {1u, 20u, 123u, 300u}) {
    const closed_queue q(agents, 27, 85, 24);
    CHECK(q.throughput() <= throughput_bound(agents, 27, 85, 24) * (1 + 1e-12));
  }
  CHECK(throughput_bound(300, 27, 85, 24) == 27.0 / 24);
  CHECK(throughput_bound(10, 27, 85, 24) == 10.0 / 109);
}

TEST_CASE("Erlang's C has the published values for 27 servers") {
  struct row {
    double load, chance, wait;
  };
  for (const auto& [load, chance, wait] :
    {row{0.8, .193528, .035839}, row{0.9, .492663, .182468}, row{0.95, .718496, .532219}}) {
    const open_queue q(27, load, 1);
    CHECK(near(q.waits_at_all(), chance, 5e-7));
    CHECK(near(q.mean_wait(), wait, 5e-7));
    CHECK(near(q.wait_tail(0), chance, 5e-7));
    const double p99 = q.wait_quantile(0.99);
    CHECK(near(q.wait_tail(p99), 0.01, 1e-12));
    CHECK(q.wait_quantile(0.1) == 0);
  }
  CHECK(near(open_queue(1, 0.8, 1).waits_at_all(), 0.8, 1e-12));
}

TEST_CASE("an open queue is what a closed one with very many agents comes to") {
  const closed_queue closed(20'000, 3, 20'000.0 / 2.4, 1);
  const open_queue open(3, 0.8, 1);
  CHECK(near(closed.mean_wait(), open.mean_wait(), 5e-3));
}

TEST_CASE("Pollaczek and Khinchine: 2, 4 and 10 services at load 0.8") {
  CHECK(near(pollaczek_khinchine(0.8, 1, 0), 2, 1e-12));
  CHECK(near(pollaczek_khinchine(0.8, 1, 1), 4, 1e-12));
  CHECK(near(pollaczek_khinchine(0.8, 1, 4), 10, 1e-12));
  CHECK(near(pollaczek_khinchine(0.8, 1, 1), open_queue(1, 0.8, 1).mean_wait(), 1e-12));
}

TEST_CASE("shortest first without interruption has the published waits for exponential service") {
  const auto law = exponential_service(1);
  CHECK(near(shortest_first_wait(0.5, law), .7127, 5e-5));
  CHECK(near(shortest_first_wait(0.8, law), 1.8822, 5e-5));
  CHECK(near(shortest_first_wait(0.9, law), 3.1969, 5e-5));
  CHECK(near(shortest_first_wait(0.8, exponential_service(30)), 30 * 1.8822, 2e-3));
}

TEST_CASE("shortest first never waits longer than first come first served") {
  for (double load : {0.3, 0.5, 0.8, 0.95}) {
    CHECK(shortest_first_wait(load, exponential_service(1)) < pollaczek_khinchine(load, 1, 1));
    CHECK(
      shortest_first_wait(load, hyperexponential_service(1, 4)) < pollaczek_khinchine(load, 1, 4));
  }
}

TEST_CASE("the integral of shortest first agrees with Cobham in very many classes") {
  const auto law = hyperexponential_service(2, 4);
  std::vector<priority_class> classes;
  const double rate = 0.8 / law.mean;
  const double step = 0.002;
  for (double x = 0; x < law.longest; x += step) {
    const double share = law.up_to(x + step) - law.up_to(x);
    if (share > 1e-14)
      classes.push_back({rate * share, (law.mean_up_to(x + step) - law.mean_up_to(x)) / share,
        (law.square_up_to(x + step) - law.square_up_to(x)) / share});
  }
  const auto waits = cobham_waits(classes);
  double mean = 0;
  for (size_t i = 0; i < waits.size(); ++i)
    mean += waits[i] * classes[i].rate / rate;
  CHECK(near(mean, shortest_first_wait(0.8, law), 5e-3));
}

TEST_CASE("least remaining first has the published responses for exponential service") {
  const auto law = exponential_service(1);
  CHECK(near(least_remaining_response(0.5, law), 1.4254, 5e-5));
  CHECK(near(least_remaining_response(0.7, law), 1.8746, 5e-5));
  CHECK(near(least_remaining_response(0.8, law), 2.3528, 5e-5));
  CHECK(near(least_remaining_response(0.9, law), 3.5521, 5e-5));
}

TEST_CASE("no order is faster than least remaining first") {
  for (double load : {0.5, 0.7, 0.8, 0.9})
    for (const auto& law : {exponential_service(1), hyperexponential_service(1, 4)})
      CHECK(least_remaining_response(load, law) < law.mean + shortest_first_wait(load, law));
}

TEST_CASE("size-blind orders of exponential service respond in S/(1 - r)") {
  CHECK(near(exponential_response(0.5, 1), 2, 1e-12));
  CHECK(near(exponential_response(0.7, 1), 3.333, 5e-4));
  CHECK(near(exponential_response(0.8, 1), 5, 1e-12));
  CHECK(near(exponential_response(0.9, 1), 10, 1e-12));
}

TEST_CASE("a law of service has the moments that its tails say") {
  for (const auto& law : {exponential_service(3), hyperexponential_service(3, 4)}) {
    CHECK(near(law.up_to(law.longest), 1, 1e-12));
    CHECK(near(law.mean_up_to(law.longest), 3, 1e-9));
    CHECK(near(law.square_up_to(law.longest), law.second_moment, 1e-9));
    CHECK(near((law.up_to(2.0001) - law.up_to(2)) / 1e-4, law.density(2), 1e-4));
  }
  CHECK(near(hyperexponential_service(1, 4).second_moment, 5, 1e-12));
}

TEST_CASE("Cobham's waits conserve work: weighted by load they are those of one class") {
  const std::vector<priority_class> classes = {{0.2, 1, 2}, {0.1, 2, 8}, {0.1, 4, 32}};
  const auto waits = cobham_waits(classes);
  CHECK(near(waits[0], 2.2 / 0.8, 1e-12));
  CHECK(near(waits[1], 2.2 / (0.8 * 0.6), 1e-12));
  CHECK(near(waits[2], 2.2 / (0.6 * 0.2), 1e-12));
  // Kleinrock's conservation law: sum of load W = load W0/(1 - load).
  CHECK(near(0.2 * waits[0] + 0.2 * waits[1] + 0.4 * waits[2], 0.8 * 2.2 / 0.2, 1e-12));
  CHECK(near(cobham_waits({{0.8, 1, 2}})[0], 4, 1e-12));
  CHECK(cobham_waits({}).empty());
}

TEST_CASE("bounds of shares") {
  CHECK(share_bound(27, 60, 28 * 60) == 1);
  CHECK(share_bound(1, 10, 100, 5) == doctest::Approx(0.25));
  CHECK(lottery_deviation(0.5, 100) == doctest::Approx(0.05));
}

TEST_CASE("the gap of a problem closes as the identity says") {
  CHECK(mean_inverse_gap(2, 0, .55, .375, 1, 7.73) == 1);
  CHECK(mean_inverse_gap(2, 10, .55, .375, 1, 7.73) == doctest::Approx(1 + 2 * 2.0625 / 5.73));
  CHECK(mean_inverse_gap(4, 1000, .55, .375, 1, 9.73) == doctest::Approx(1 + 4 * 206.25 / 5.73));
}

TEST_CASE("water filling spends the budget where marginal gains are equal") {
  const std::vector<gain_curve> problems = {
    {1, 0.04}, {2, 0.04}, {0.5, 0.1}, {0.01, 0.001}, {0, 1}};
  for (double gamma : {2.0, 4.0})
    for (double budget : {1.0, 50.0, 5000.0}) {
      const auto filled = water_filling(problems, gamma, budget);
      CHECK(near(std::accumulate(filled.begin(), filled.end(), 0.0), budget, 1e-6 * budget));
      const auto marginal = [&](size_t i, double n) {
        // By differences, so that the slope is checked as well.
        const double step = 1e-4;
        return (total_gain(problems[i], gamma, n + step) - total_gain(problems[i], gamma, n))
          / step;
      };
      const double level = marginal(1, filled[1]);
      CHECK(filled[4] == 0);
      for (size_t i = 0; i < 4; ++i) {
        if (filled[i] > 0)
          CHECK(near(marginal(i, filled[i]), level, 1e-4 * level));
        else
          CHECK(marginal(i, 0) <= level * (1 + 1e-4));
        CHECK(near(marginal(i, 3), marginal_gain(problems[i], gamma, 3), 1e-4));
      }
    }
}

TEST_CASE("halving spends count first (log count + 1), and rounds survivors down") {
  CHECK(halving_budget(81, 10, 3) == 81 * 10 * 5);
  CHECK(halving_budget(64, 3, 4) == 64 * 3 * 4);
  CHECK(halving_budget(1, 7, 2) == 7);
  CHECK(halving_budget(0, 7, 2) == 0);
  CHECK(halving_budget(10, 1, 3) == 10 + 3 * 3 + 9);
}

TEST_CASE("the distance of a sample from its distribution, and how likely it is") {
  const auto uniform = [](double x) { return std::clamp(x, 0.0, 1.0); };
  CHECK(kolmogorov_distance({0.5}, uniform) == doctest::Approx(0.5));
  CHECK(kolmogorov_distance({0.125, 0.375, 0.625, 0.875}, uniform) == doctest::Approx(0.125));
  // Half of it stands at 0, as it should.
  const auto with_atom = [](double x) { return x < 0 ? 0 : std::min(1.0, 0.5 + x / 2); };
  CHECK(kolmogorov_distance({0, 0, 0.25, 0.75}, with_atom) == doctest::Approx(0.125));
  // Two textbook points of the limit: 1.36 at 5 %, 1.63 at 1 %.
  CHECK(kolmogorov_chance(1.358 / 1000, 1e6) == doctest::Approx(0.05).epsilon(0.01));
  CHECK(kolmogorov_chance(1.628 / 1000, 1e6) == doctest::Approx(0.01).epsilon(0.02));
  CHECK(kolmogorov_chance(0.01, 10) == 1);
}
