// Equal share against rebalancing on a model of agents, in a second: how many leases until 95 % of
// the final geomean. A statement about this model, not about kernels.
//
// usage: gristmill-bench-planner-model [SEEDS] [PROBLEMS] [LEASES_PER_PROBLEM]
//
// The model is simulation/problem_curve.hpp with its defaults; the law of final speed-ups is taken
// to hold at LEASES_PER_PROBLEM. gamma 2 saturates, gamma 4 does not. Every problem begins with its
// first correct kernel.

#include "planning/allocation/allocation.hpp"
#include "simulation/model/problem_curve.hpp"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

using namespace gristmill;

namespace {

struct problem {
  problem_curve curve;
  /// Of its own, so that the n-th attempt on it is the same under every rule.
  counter_stream chance;
};

/// Geomean after each lease.
std::vector<double> play(const allocation_settings& settings, uint64_t seed, uint32_t count,
  uint64_t leases, double gamma) {
  std::vector<problem> problems;
  double sum = 0;
  learning_law law;
  law.gamma = gamma;
  final_law target;
  target.leases = static_cast<double>(leases) / count;
  for (uint32_t i = 0; i < count; ++i) {
    problem one{draw_problem(law, target, seed, i), {seed, stream_of(stream_purpose::gain, i)}};
    one.curve.is_solved = true;
    sum += one.curve.log_speedup();
    problems.push_back(one);
  }
  auto who = make_allocation(settings, count);
  for (problem_index p = 0; p < count; ++p)
    who->on_eligible(p, true);
  std::vector<double> out;
  for (uint64_t n = 0; n < leases; ++n) {
    auto at = who->pick(std::chrono::nanoseconds{0})->problem;
    who->on_given(at);
    auto& p = problems[at];
    const double gain =
      p.chance.chance(law.correct) ? try_correct_candidate(p.curve, law, p.chance) : 0;
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
