#include "planning/allocation/policies.hpp"
#include "simulation/core/oracle_allocation.hpp"
#include "simulation/scenario_file.hpp"
#include "simulation/selfcheck/formulas.hpp"
#include "simulation/selfcheck/runs.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace gristmill {

namespace {

/// Streams that nothing else draws from.
constexpr auto candidates = static_cast<stream_purpose>(204);
constexpr auto reaches = static_cast<stream_purpose>(205);

learning_law law_with(double gamma) {
  learning_law out;
  out.gamma = gamma;
  out.spread = 0;
  return out;
}

double identity_of(const learning_law& law, double leases) {
  return mean_inverse_gap(law.gamma, leases, law.correct, law.improve, 1, law.gamma + law.step);
}

// The law itself, candidate by candidate.
void add_learning_curve(std::vector<check>& out, uint32_t paths, const std::vector<uint32_t>& at) {
  check made;
  made.name = "learning-curve";
  made.what = fmt::format("E[g^-gamma] after n leases, {} paths", paths);
  made.source = "1 + gamma n pc p0/(b - gamma), derived in formulas.hpp";
  made.config = fmt::format("{} {}\n", paths, fmt::join(at, " "));
  for (const double gamma : {2.0, 4.0})
    for (const auto n : at)
      made.lines.push_back(
        {fmt::format("gamma {}, n {}", gamma, n), identity_of(law_with(gamma), n)});
  made.run = [paths, at](uint64_t seed, mutant_kind) -> result<seed_outcome> {
    seed_outcome one;
    for (const double gamma : {2.0, 4.0}) {
      const auto law = law_with(gamma);
      std::vector<double> sums(at.size(), 0);
      for (uint32_t path = 0; path < paths; ++path) {
        counter_stream draws(seed, stream_of(candidates, uint64_t(gamma) << 32 | path));
        problem_curve problem;
        problem.asymptote = 1;
        problem.is_solved = true;
        uint32_t n = 0;
        for (size_t i = 0; i < at.size(); ++i) {
          for (; n < at[i]; ++n)
            if (draws.chance(law.correct))
              try_correct_candidate(problem, law, draws);
          sums[i] += std::pow(problem.gap, -gamma);
        }
      }
      for (const double sum : sums)
        one.values.push_back(sum / paths);
    }
    return one;
  };
  out.push_back(std::move(made));
}

// The same identity in a whole run: problems, planner, agents and leases. Every attempt adds gamma
// pc p0/(b - gamma) in the mean, whatever happened before, so it does not matter how a planner
// gives them out.
void add_learning_run(std::vector<check>& out, uint32_t problems, double leases_each) {
  check made;
  made.name = "learning-run";
  made.what = fmt::format(
    "{} problems, about {:.0f} leases each in turn: growth of g^-gamma / that of the identity",
    problems, leases_each);
  made.source = "the same, by optional stopping";
  std::vector<scenario> all;
  for (const double gamma : {2.0, 4.0}) {
    auto of = closed_scenario("learning", 40, 8, 60, 10, problems * leases_each / 0.55, 0);
    of.problems = problems;
    of.learning = law_with(gamma);
    of.starts_solved = true;
    made.config += canonical_toml(of);
    made.lines.push_back({fmt::format("gamma {}", gamma), 1});
    all.push_back(std::move(of));
  }
  made.run = [all](uint64_t seed, mutant_kind mutant) -> result<seed_outcome> {
    seed_outcome one;
    for (const auto& of : all) {
      // The live state of all problems; copied after every attempt, because it ends with the run.
      const std::vector<problem_curve>* truth = nullptr;
      std::vector<double> gaps(of.problems, 1);
      uint64_t attempts = 0;
      lab_options options;
      options.world.planner = [&truth](
                                const scenario& what, const std::vector<problem_curve>& live) {
        truth = &live;
        return make_round_robin(what.problems);
      };
      options.world.on_attempt = [&](uint32_t problem, uint32_t, double, std::chrono::nanoseconds) {
        gaps.at(problem) = truth->at(problem).gap;
        ++attempts;
      };
      auto run = run_scenario(of, seed, mutant, std::move(options));
      if (!run)
        return pass(run);
      double grown = 0;
      for (const double gap : gaps)
        grown += std::pow(gap, -of.learning.gamma) - 1;
      one.values.push_back(grown / (double(attempts) * (identity_of(of.learning, 1) - 1)));
      count_run(one, *run);
    }
    return one;
  };
  out.push_back(std::move(made));
}

// The oracle, one attempt after the other, on gaps that close as their means do. It gives whole
// leases, so where water filling at the oracle's own level says n it has given the next whole
// number above; and no division of as many leases gains more than water filling does.
void add_water_filling(std::vector<check>& out, uint32_t problems, double leases_each) {
  check made;
  made.name = "water-filling";
  made.what = fmt::format("{} problems, {:.0f} leases each, by the oracle", problems, leases_each);
  made.source = "equal marginal gains, Boyd and Vandenberghe 5.5.3";
  made.config = fmt::format("{} {}\n", problems, leases_each);
  for (const double gamma : {2.0, 4.0}) {
    const auto name = fmt::format("gamma {}: ", gamma);
    made.lines.push_back(
      {name + "distance of a count from the formula, leases", 1, line_rule::at_most});
    made.lines.push_back({name + "all gain / that of water filling", 1, line_rule::at_most});
    made.lines.push_back({name + "the inverse", 1.001, line_rule::at_most});
  }
  made.run = [problems, leases_each](uint64_t seed, mutant_kind) -> result<seed_outcome> {
    seed_outcome one;
    for (const double gamma : {2.0, 4.0}) {
      const auto law = law_with(gamma);
      counter_stream draws(seed, stream_of(reaches, uint64_t(gamma)));
      std::vector<problem_curve> truth(problems);
      std::vector<gain_curve> curves;
      for (auto& problem : truth) {
        problem.asymptote = draws.exponential();
        // Chances below 1, where the oracle's gain is the curve's slope exactly.
        problem.ease = 0.2 + 2 * draws.unit();
        problem.is_solved = true;
        curves.push_back({problem.asymptote, law.correct * law.improve * problem.ease / law.step});
      }
      const auto budget = static_cast<uint64_t>(problems * leases_each);
      const auto oracle = make_oracle_allocation(truth, law);
      for (problem_index p = 0; p < problems; ++p)
        oracle->on_eligible(p, true);
      std::vector<double> given(problems, 0);
      for (uint64_t i = 0; i < budget; ++i) {
        const auto pick = oracle->pick(std::chrono::nanoseconds{0});
        if (!pick)
          return fail(errc::refused, "the oracle names nobody");
        const auto p = pick->problem;
        oracle->on_given(p);
        given[p] += 1;
        truth[p].gap = std::pow(1 + gamma * curves[p].rate * given[p], -1 / gamma);
        oracle->on_finished(p, {});
      }
      double level = 0;
      for (size_t p = 0; p < problems; ++p)
        level = std::max(level, marginal_gain(curves[p], gamma, given[p]));
      const auto filled = leases_at_level(curves, gamma, level);
      const auto best = water_filling(curves, gamma, double(budget));
      double worst = 0;
      double gain = 0;
      double most = 0;
      for (size_t p = 0; p < problems; ++p) {
        // Rounding: the level is one of the slopes.
        worst = std::max(worst, std::fabs(given[p] - filled[p]) - 1e-6);
        gain += total_gain(curves[p], gamma, given[p]);
        most += total_gain(curves[p], gamma, best[p]);
      }
      one.values.push_back(worst);
      one.values.push_back(gain / most);
      one.values.push_back(most / gain);
    }
    return one;
  };
  out.push_back(std::move(made));
}

// `asha`, one attempt after the other, and whoever comes first is the best: nobody is promoted who
// falls behind later, so that the first round costs exactly what successive halving does.
void add_halving(std::vector<check>& out) {
  struct halving_case {
    uint32_t problems, first, eta;
  };
  const std::vector<halving_case> cases = {{64, 2, 2}, {81, 3, 3}, {256, 1, 4}};
  check made;
  made.name = "halving";
  made.what = "attempts of the first round of asha";
  made.source = "n r (floor(log_eta n) + 1), Jamieson and Talwalkar 2016";
  for (const auto& each : cases) {
    const double exact = double(halving_budget(each.problems, each.first, each.eta));
    const auto name =
      fmt::format("{} problems, first {}, eta {}", each.problems, each.first, each.eta);
    made.config += name + "\n";
    made.lines.push_back({name, exact, line_rule::exactly});
  }
  made.run = [cases](uint64_t, mutant_kind) -> result<seed_outcome> {
    seed_outcome one;
    for (const auto& each : cases) {
      const auto asha = make_asha(each.problems, true, each.eta, each.first);
      for (problem_index p = 0; p < each.problems; ++p)
        asha->on_eligible(p, true);
      uint64_t attempts = 0;
      const uint64_t enough = 100 * halving_budget(each.problems, each.first, each.eta);
      auto pick = asha->pick(std::chrono::nanoseconds{0});
      const auto round = pick ? pick->why.round : 0;
      while (pick && pick->why.round == round && attempts < enough) {
        ++attempts;
        asha->on_given(pick->problem);
        asha->on_finished(pick->problem, {0, 1 - double(pick->problem) / each.problems});
        pick = asha->pick(std::chrono::nanoseconds{0});
      }
      one.values.push_back(double(attempts));
    }
    return one;
  };
  out.push_back(std::move(made));
}

} // namespace

void add_plan_checks(std::vector<check>& out, bool quick) {
  if (quick) {
    add_learning_curve(out, 1000, {10, 100});
  } else {
    add_learning_curve(out, 4000, {10, 100, 1000});
    add_learning_run(out, 4000, 50);
  }
  add_water_filling(out, quick ? 20 : 235, quick ? 50 : 300);
  add_halving(out);
}

} // namespace gristmill
