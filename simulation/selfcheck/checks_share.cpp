#include "simulation/scenario_file.hpp"
#include "simulation/selfcheck/formulas.hpp"
#include "simulation/selfcheck/load.hpp"
#include "simulation/selfcheck/runs.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace gristmill {

namespace {

/// Four flows that always have somebody waiting.
const std::vector<uint32_t> uneven = {1, 2, 3, 4};
const std::vector<uint32_t> even = {1, 1, 1, 1};

time_law share_law() {
  return {draw_kind::lognormal, 20, 1, 1, 100};
}

double total_of(const std::vector<uint32_t>& weights) {
  double out = 0;
  for (const auto w : weights)
    out += w;
  return out;
}

/// Largest distance of a flow's share of the seconds from its weight, over the bound. 0 without
/// any service: what is not served is not shared wrongly, and another check finds it.
double seconds_off(
  const queue_watch& watch, const std::vector<uint32_t>& weights, uint32_t gpus, double quantum) {
  double all = 0;
  double longest = 0;
  for (const auto& [problem, sums] : watch.by_problem()) {
    all += seconds_of(sums.held);
    longest = std::max(longest, seconds_of(sums.longest_held));
  }
  double out = 0;
  size_t i = 0;
  for (const auto& [problem, sums] : watch.by_problem())
    out = std::max(out,
      std::fabs(seconds_of(sums.held) / all - weights.at(i++) / total_of(weights))
        / share_bound(gpus, longest, all, quantum));
  return out;
}

/// Counts and draws count once all flows are there: those who ask first at the very beginning have
/// nobody to share with.
constexpr double settled_s = 1;

/// The largest difference of the counts of two flows.
double counts_off(const queue_watch& watch) {
  uint64_t least = UINT64_MAX;
  uint64_t most = 0;
  for (const auto& [problem, sums] : watch.by_problem()) {
    least = std::min(least, sums.measured);
    most = std::max(most, sums.measured);
  }
  return double(most - least);
}

/// Largest distance of a flow's share of the draws from its weight, over four standard deviations.
double lottery_off(const queue_watch& watch, const std::vector<uint32_t>& weights) {
  double draws = 0;
  for (const auto& [problem, sums] : watch.by_problem())
    draws += double(sums.measured);
  double out = 0;
  size_t i = 0;
  for (const auto& [problem, sums] : watch.by_problem()) {
    const double share = weights.at(i++) / total_of(weights);
    out = std::max(out,
      std::fabs(double(sums.measured) / draws - share) / (4 * lottery_deviation(share, draws)));
  }
  return out;
}

/// Of two flows on one GPU the seconds by weight never differ by more than the longest hold by
/// weight of each (and a quantum of each): the largest difference over that.
double pair_off(const queue_watch& watch, const std::vector<uint32_t>& weights, double quantum) {
  std::vector<std::pair<double, double>> flows;
  for (const auto& [problem, sums] : watch.by_problem()) {
    const double weight = weights.at(flows.size());
    flows.push_back(
      {seconds_of(sums.held) / weight, seconds_of(sums.longest_held) / weight + quantum});
  }
  double out = 0;
  for (const auto& a : flows)
    for (const auto& b : flows)
      if (a.second + b.second > 0)
        out = std::max(out, (a.first - b.first) / (a.second + b.second));
  return out;
}

struct share_case {
  std::string policy;
  std::string line;
  uint32_t gpus = 4;
  const std::vector<uint32_t>* weights = &uneven;
  double quantum = 0;
};

void add_fair_share(std::vector<check>& out, double hours) {
  const std::vector<share_case> cases = {
    {"stride(by=problem)", "4 GPUs, weights 1 2 3 4: share of seconds / bound", 4, &uneven, 0},
    {"drr(by=problem,quantum=30s)", "4 GPUs, weights 1 2 3 4: share of seconds / bound", 4, &uneven,
      30},
    {"rr(by=problem)", "4 GPUs, equal weights: largest difference of counts", 4, &even, 0},
    {"lottery(by=problem)", "4 GPUs, weights 1 2 3 4: share of draws / 4 sd", 4, &uneven, 0},
    {"stride(by=problem)", "1 GPU, weights 1 2 3 4: any two flows at any time / bound", 1, &uneven,
      0},
    {"drr(by=problem,quantum=30s)", "1 GPU, weights 1 2 3 4: any two flows at any time / bound", 1,
      &uneven, 30}};
  check made;
  made.name = "fair-share";
  made.what = fmt::format("4 flows that always wait, holds lognormal around 20 s, {} h", hours);
  made.source = "Bounds of docs/lease-policies.md; Goyal, Vin and Cheng 1996";
  for (const auto& each : cases) {
    made.lines.push_back({each.policy + ", " + each.line, 1, line_rule::at_most});
    made.config += made.lines.back().name + fmt::format(" {}\n", hours);
  }
  made.run = [cases, hours](uint64_t seed, mutant_kind mutant) -> result<seed_outcome> {
    seed_outcome one;
    for (size_t i = 0; i < cases.size(); ++i) {
      const auto& each = cases[i];
      const double until = hours * 3600;
      auto of = bare_scenario("fair share", each.gpus, until, 0);
      of.lease_policy = each.policy;
      queue_watch watch(each.gpus, time_of(settled_s));
      double worst_pair = 0;
      if (each.gpus == 1)
        watch.on_release = [&](const queue_watch& books) {
          worst_pair = std::max(worst_pair, pair_off(books, *each.weights, each.quantum));
        };
      lab_options options;
      options.world.recorded =
        backlogged_flows(*each.weights, each.gpus + 2, share_law(), until, seed);
      auto run = run_scenario(of, seed, mutant, std::move(options), &watch);
      if (!run)
        return pass(run);
      if (watch.by_problem().size() != each.weights->size())
        return fail(errc::refused,
          fmt::format(
            "{} of {} flows were served", watch.by_problem().size(), each.weights->size()));
      if (each.gpus == 1)
        one.values.push_back(worst_pair);
      else if (each.policy.starts_with("rr"))
        one.values.push_back(counts_off(watch));
      else if (each.policy.starts_with("lottery"))
        one.values.push_back(lottery_off(watch, *each.weights));
      else
        one.values.push_back(seconds_off(watch, *each.weights, each.gpus, each.quantum));
      count_run(one, *run);
    }
    return one;
  };
  out.push_back(std::move(made));
}

} // namespace

void add_share_checks(std::vector<check>& out, bool quick) {
  add_fair_share(out, quick ? 6 : 72);
}

} // namespace gristmill
