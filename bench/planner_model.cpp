// Equal share against rebalancing on a model of agents, in a second: how many leases until 95 % of
// the final geomean. A statement about this model, not about kernels.
//
// usage: gristmill-bench-planner-model [SEEDS] [PROBLEMS] [LEASES_PER_PROBLEM]
//
// The model: an attempt is correct with probability 0.55; a correct one improves with probability
// 0.375 z g^gamma, where g is the share of the problem's possible gain that is left, and then takes
// a Beta(1, gamma + 5.73) part of it. z is lognormal with mean 1 and sigma 1, the start is
// Normal(-0.92, 0.5) in log speed-up, the possible gain lognormal with median 1.4 and sigma 0.35
// (our assumption). gamma 2 saturates, gamma 4 does not.

#include "planning/allocation/allocation.hpp"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numbers>
#include <string>
#include <vector>

using namespace gristmill;

namespace {

class stream {
public:
  explicit stream(uint64_t key) : state_(key * 0x9e3779b97f4a7c15ull + 1) {}

  double uniform() {
    state_ += 0x9e3779b97f4a7c15ull;
    auto z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return (static_cast<double>((z ^ (z >> 31)) >> 11) + 0.5) * 0x1.0p-53;
  }
  double normal() {
    auto radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

private:
  uint64_t state_;
};

struct problem {
  /// Of its own, so that the n-th attempt on it is the same under every rule.
  stream chance;
  double start;
  double depth;
  double z;
  double left = 1;
};

/// Geomean after each lease.
std::vector<double> play(const allocation_settings& settings, uint64_t seed, uint32_t count,
  uint64_t leases, double gamma) {
  std::vector<problem> problems;
  double sum = 0;
  for (uint32_t i = 0; i < count; ++i) {
    stream s(seed * 1'000'003 + i);
    auto start = -0.92 + 0.5 * s.normal();
    auto depth = 1.4 * std::exp(0.35 * s.normal());
    auto z = std::exp(s.normal() - 0.5);
    problems.push_back({s, start, depth, z});
    sum += start;
  }
  auto who = make_allocation(settings, count);
  for (problem_index p = 0; p < count; ++p)
    who->on_eligible(p, true);
  std::vector<double> out;
  for (uint64_t n = 0; n < leases; ++n) {
    auto at = who->pick(std::chrono::nanoseconds{0})->problem;
    who->on_given(at);
    auto& p = problems[at];
    auto correct = p.chance.uniform() < 0.55;
    auto improves = p.chance.uniform() < std::min(1.0, 0.375 * p.z * std::pow(p.left, gamma));
    auto part = 1 - std::pow(1 - p.chance.uniform(), 1 / (gamma + 5.73));
    double gain = correct && improves ? p.depth * p.left * part : 0;
    if (gain > 0)
      p.left *= 1 - part;
    sum += gain;
    who->on_finished(at, {24'000'000'000, gain});
    out.push_back(std::exp(sum / count));
  }
  return out;
}

double first_at(const std::vector<double>& curve, double target) {
  for (size_t i = 0; i < curve.size(); ++i)
    if (curve[i] >= target)
      return static_cast<double>(i + 1);
  return static_cast<double>(curve.size());
}

struct spread {
  double mean = 0;
  double half = 0;
};

/// 95 % interval, by the normal quantile: for twenty seeds and more.
spread spread_of(const std::vector<double>& x) {
  spread out;
  for (double v : x)
    out.mean += v / static_cast<double>(x.size());
  double square = 0;
  for (double v : x)
    square += (v - out.mean) * (v - out.mean);
  auto n = static_cast<double>(x.size());
  out.half = n > 1 ? 1.96 * std::sqrt(square / (n - 1) / n) : INFINITY;
  return out;
}

uint64_t argument(int argc, char** argv, int i, uint64_t otherwise) {
  return argc > i ? std::strtoull(argv[i], nullptr, 10) : otherwise;
}

} // namespace

int main(int argc, char** argv) {
  auto seeds = argument(argc, argv, 1, 20);
  auto count = static_cast<uint32_t>(argument(argc, argv, 2, 60));
  auto leases = argument(argc, argv, 3, 400) * count;
  std::printf("%llu seeds, %u problems, %llu leases; a MODEL of agents, not kernels\n",
    static_cast<unsigned long long>(seeds), count, static_cast<unsigned long long>(leases));
  std::printf("rebalance against equal, leases needed as a ratio, paired (below 1 is better)\n");
  std::printf("%-6s %-30s %12s %12s %22s %22s\n", "gamma", "rule", "final equal", "final rule",
    "to 95 % of own final", "to 95 % of equal's");
  for (double gamma : {2.0, 4.0})
    for (double floor : {0.0, 0.25, 0.5, 0.75}) {
      allocation_settings rule{allocation_kind::rebalance, floor, 0.05, 0.1, true};
      std::vector<double> own;
      std::vector<double> common;
      double final_equal = 0;
      double final_rule = 0;
      for (uint64_t seed = 1; seed <= seeds; ++seed) {
        auto equal = play({allocation_kind::equal, 0, 0, 0, true}, seed, count, leases, gamma);
        auto moved = play(rule, seed, count, leases, gamma);
        own.push_back(first_at(moved, 0.95 * moved.back()) / first_at(equal, 0.95 * equal.back()));
        common.push_back(
          first_at(moved, 0.95 * equal.back()) / first_at(equal, 0.95 * equal.back()));
        final_equal += equal.back() / static_cast<double>(seeds);
        final_rule += moved.back() / static_cast<double>(seeds);
      }
      auto a = spread_of(own);
      auto b = spread_of(common);
      auto name = "rebalance(floor=" + std::to_string(floor).substr(0, 4) + ")";
      std::printf("%-6.0f %-30s %12.3f %12.3f %12.3f +- %-6.3f %12.3f +- %-6.3f\n", gamma,
        name.c_str(), final_equal, final_rule, a.mean, a.half, b.mean, b.half);
    }
  // What a call costs, at the size of the published run.
  auto who = make_allocation({allocation_kind::rebalance, 0.5, 0.05, 0.1, true}, 235);
  for (problem_index p = 0; p < 235; ++p)
    who->on_eligible(p, true);
  auto begun = std::chrono::steady_clock::now();
  constexpr int calls = 300'000;
  for (int i = 0; i < calls; ++i) {
    auto at = who->pick(std::chrono::nanoseconds{0})->problem;
    who->on_given(at);
    who->on_finished(at, {1, i % 97 == 0 ? 0.01 : 0});
  }
  auto ns =
    std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begun).count();
  std::printf("pick, given and finished over 235 problems: %.0f ns a lease\n", ns / calls);
}
