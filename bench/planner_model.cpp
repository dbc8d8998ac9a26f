// The planner's rules on a model of agents: what share of equal share's budget each needs to come
// to equal share's final geomean, and where it stands on the way. A statement about this model, not
// about kernels.
//
// usage: gristmill-bench-planner-model [SEEDS] [PROBLEMS] [LEASES_PER_PROBLEM] [RULE...]
//
// Without RULE: all of the house, and the hindsight oracle. The model is
// simulation/model/problem_curve.hpp with its defaults; the law of final speed-ups is taken to hold
// at LEASES_PER_PROBLEM. gamma 2 saturates, gamma 4 does not. Every problem begins with its first
// correct kernel, one lease runs at a time, and every lease costs the same.

#include "planning/allocation/allocation_text.hpp"
#include "simulation/core/oracle_allocation.hpp"
#include "simulation/model/problem_curve.hpp"
#include "simulation/statistics.hpp"

#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

using namespace gristmill;

namespace {

constexpr std::array<double, 4> shares = {0.03, 0.1, 0.3, 1.0};

struct setup {
  uint64_t seed = 1;
  uint32_t problems = 235;
  uint64_t leases = 0;
  double gamma = 2;
};

/// Geomean after each share of the budget, and the leases until it first was at a target.
struct outcome {
  std::array<double, shares.size()> at{};
  double leases_to_target = INFINITY;
};

outcome play(const std::string& rule, const setup& what, double target_geomean, double limit) {
  learning_law law;
  law.gamma = what.gamma;
  final_law target;
  target.leases = static_cast<double>(what.leases) / what.problems;
  std::vector<problem_curve> curves;
  // Of each problem, so that the n-th attempt on it is the same under every rule.
  std::vector<counter_stream> chance;
  double sum = 0;
  for (uint32_t i = 0; i < what.problems; ++i) {
    curves.push_back(draw_problem(law, target, what.seed, i));
    curves.back().is_solved = true;
    chance.emplace_back(what.seed, stream_of(stream_purpose::gain, i));
    sum += curves.back().log_speedup();
  }
  auto who = rule == "oracle" ? make_oracle_allocation(curves, law)
                              : (*allocation_from_text(rule))(what.problems, true);
  for (problem_index p = 0; p < what.problems; ++p) {
    who->on_eligible(p, true);
    who->on_headroom(p, std::log(curves[p].headroom) - curves[p].log_speedup());
  }
  outcome out;
  size_t next_share = 0;
  const double wanted = std::log(target_geomean) * what.problems;
  const auto most = static_cast<uint64_t>(limit * static_cast<double>(what.leases));
  for (uint64_t n = 1; n <= most; ++n) {
    const auto p = who->pick(std::chrono::nanoseconds{0})->problem;
    who->on_given(p);
    const double gain =
      chance[p].chance(law.correct) ? try_correct_candidate(curves[p], law, chance[p]) : 0;
    sum += gain;
    if (gain > 0)
      who->on_headroom(p, std::log(curves[p].headroom) - curves[p].log_speedup());
    who->on_finished(p, {24'000'000'000, gain});
    if (out.leases_to_target == INFINITY && sum >= wanted)
      out.leases_to_target = static_cast<double>(n);
    if (next_share < shares.size()
      && n == static_cast<uint64_t>(shares[next_share] * static_cast<double>(what.leases)))
      out.at[next_share++] = std::exp(sum / what.problems);
    if (n >= what.leases && out.leases_to_target < INFINITY)
      break;
  }
  return out;
}

uint64_t argument(int argc, char** argv, int i, uint64_t otherwise) {
  return argc > i ? std::strtoull(argv[i], nullptr, 10) : otherwise;
}

/// What a lease costs the planner: pick, given and finished.
double ns_per_lease(const std::string& rule, uint32_t problems) {
  std::vector<problem_curve> curves;
  learning_law law;
  for (uint32_t i = 0; i < problems; ++i)
    curves.push_back(draw_problem(law, {}, 1, i));
  auto who = rule == "oracle" ? make_oracle_allocation(curves, law)
                              : (*allocation_from_text(rule))(problems, true);
  for (problem_index p = 0; p < problems; ++p)
    who->on_eligible(p, true);
  constexpr int calls = 300'000;
  auto round = [&] {
    for (int i = 0; i < calls; ++i) {
      const auto p = who->pick(std::chrono::nanoseconds{0})->problem;
      who->on_given(p);
      who->on_finished(p, {1, i % 97 == 0 ? 0.01 : 0});
    }
  };
  round();
  // The process's own time: others may want the processor too.
  const auto begun = std::clock();
  round();
  return static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC * 1e9 / calls;
}

} // namespace

int main(int argc, char** argv) {
  const auto seeds = argument(argc, argv, 1, 6);
  const auto problems = static_cast<uint32_t>(argument(argc, argv, 2, 235));
  const auto leases = argument(argc, argv, 3, 8686) * problems;
  std::vector<std::string> rules(argv + std::min(argc, 4), argv + argc);
  if (rules.empty())
    rules = {"oracle", "round_robin", "greedy", "greedy(prior=0)", "greedy(halflife=20)",
      "greedy(halflife=1000)", "ucb", "ucb(a=0.01)", "ucb(a=0.003)", "rising", "floor(0.5, rising)",
      "rebalance", "asha", "floor(0.5, asha)", "gate(0.05, equal)"};
  for (const auto& rule : rules)
    if (rule != "oracle")
      if (auto known = allocation_from_text(rule); !known) {
        std::fprintf(stderr, "%s\n", known.error().what.c_str());
        return 2;
      }
  std::printf("%llu seeds, %u problems, %llu leases; a MODEL of agents, not kernels\n",
    static_cast<unsigned long long>(seeds), problems, static_cast<unsigned long long>(leases));
  std::printf("budget: leases to equal share's final geomean, as a share of equal share's (below 1 "
              "is better).\nThen the geomean as a ratio to equal share's after a share of the "
              "budget (above 1 is better).\nMeans of pairs by seed, 95 %% intervals; 2.000 means "
              "never within twice the budget.\n");
  for (double gamma : {2.0, 4.0}) {
    std::vector<outcome> equal;
    double final_mean = 0;
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      equal.push_back(play("equal", {seed, problems, leases, gamma}, INFINITY, 1));
      final_mean += equal.back().at.back() / static_cast<double>(seeds);
    }
    std::printf("\ngamma %.0f, equal share ends at geomean %.3f\n%-28s %16s", gamma, final_mean,
      "rule", "budget");
    for (double share : shares)
      std::printf("     after %3.0f %%  ", share * 100);
    std::printf("\n");
    for (const auto& rule : rules) {
      std::vector<double> budget;
      std::array<std::vector<double>, shares.size()> ratio;
      for (uint64_t seed = 1; seed <= seeds; ++seed) {
        const auto& fair = equal[seed - 1];
        const auto got = play(rule, {seed, problems, leases, gamma}, fair.at.back(), 2);
        budget.push_back(std::min(got.leases_to_target / static_cast<double>(leases), 2.0));
        for (size_t i = 0; i < shares.size(); ++i)
          ratio[i].push_back(got.at[i] / fair.at[i]);
      }
      auto s = interval_of(budget);
      std::printf("%-28s  %.3f +- %.3f ", rule.c_str(), s.mean, s.half);
      for (const auto& r : ratio) {
        s = interval_of(r);
        std::printf("  %.3f +- %.3f ", s.mean, s.half);
      }
      std::printf("\n");
      std::fflush(stdout);
    }
  }
  std::printf("\nns a lease (pick, given, finished)%12s%12s\n", "P = 235", "P = 10,000");
  rules.insert(rules.begin(), "equal");
  for (const auto& rule : rules)
    std::printf(
      "%-34s%12.0f%12.0f\n", rule.c_str(), ns_per_lease(rule, 235), ns_per_lease(rule, 10'000));
}
