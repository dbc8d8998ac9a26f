// Measures how good the searches are where the optimum is known, and prints tables:
//
//     build/release/bench/gristmill-bench-search [SEEDS [STRATEGY]]
//     build/release/bench/gristmill-bench-search real SEEDS PROBLEM_FOLDER LOG...
//     build/release/bench/gristmill-bench-search speed
//
// The first: made-up spaces with a known cost surface (tests/kernels/search/synthetic_space.hpp), a
// surface of its own for each seed. The second: a problem of which every point was tried; LOG is
// what `gristmill log show RUN --json` printed of a run with `--proposer exhaustive`. The third:
// what a proposal costs late in a long run. An evaluation is a trial at all workloads; a probe
// counts by its share of the workloads. "greedy" is the search of the first build: a good point,
// three random ones, then neighbours of the best in random order.

#include "kernels/search.hpp"
#include "kernels/search/program_search_space.hpp"
#include "kernels/search/search_key.hpp"
#include "kernels/splitmix64.hpp"
#include "tests/kernels/search/synthetic_space.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fmt/format.h>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace {

using namespace gristmill;
using test::synthetic_shape;
using test::synthetic_space;

/// Geometric mean of the best single point, and of the best point for each workload.
struct optimum {
  double single = INFINITY;
  double each = INFINITY;
};

/// A space of which everything is known.
struct arena {
  std::shared_ptr<const search_space> space;
  std::vector<search_workload> workloads;
  /// The verdict on a key, for these workloads only if there are any.
  std::function<trial(const std::string& key, const std::vector<std::string>& probed)> judge;
  optimum best;
};

double log_mean(const std::vector<double>& logs) {
  double sum = 0;
  for (double value : logs)
    sum += value;
  return sum / static_cast<double>(logs.size());
}

/// Looks at every point.
optimum optimum_of(const arena& of) {
  std::vector<double> envelope(of.workloads.size(), INFINITY);
  double best = INFINITY;
  for (uint64_t i = 0; i < of.space->size(); ++i) {
    const trial verdict = of.judge(of.space->key(of.space->at(i)), {});
    if (verdict.status != verdict_status::passed)
      continue;
    std::vector<double> logs;
    for (const workload_time& one : verdict.times)
      logs.push_back(std::log(static_cast<double>(one.ns)));
    best = std::min(best, log_mean(logs));
    for (size_t w = 0; w < logs.size(); ++w)
      envelope[w] = std::min(envelope[w], logs[w]);
  }
  return {std::exp(best), std::exp(log_mean(envelope))};
}

arena made_up(synthetic_shape shape) {
  const auto space = std::make_shared<synthetic_space>(std::move(shape));
  arena out;
  out.space = space;
  out.workloads = space->workloads();
  out.judge = [space](const std::string& key, const std::vector<std::string>& probed) {
    return space->judge(key, probed);
  };
  out.best = optimum_of(out);
  return out;
}

/// Verdicts of a log, by key.
std::map<std::string, trial> trials_in(const std::string& file, const std::string& problem_name) {
  std::map<std::string, trial> out;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const auto event = nlohmann::json::parse(line, nullptr, false);
    if (event.is_discarded() || event.value("kind", "") != "verdict"
      || event.value("problem", "") != problem_name)
      continue;
    const auto& data = event["data"];
    trial one;
    one.key = data.value("key", "");
    one.status =
      data.value("status", "") == "PASSED" ? verdict_status::passed : verdict_status::runtime_error;
    one.objective_ns = data.value("objective_ns", uint64_t{0});
    for (const auto& each : data["workloads"])
      one.times.push_back({each.value("uuid", ""), each.value("time_ns", uint64_t{0})});
    out[one.key] = std::move(one);
  }
  return out;
}

/// Place of the point that a candidate with several configurations uses at a workload.
size_t place_used(
  const std::vector<std::pair<std::string, std::string>>& parts, const search_workload& at) {
  for (size_t i = 0; i < parts.size(); ++i) {
    // The conditions of the search: a product of axes and a bound.
    const auto bound = parts[i].first.find(" <= ");
    if (bound == std::string::npos)
      return i;
    int64_t product = 1;
    for (const auto& [name, value] : at.axes) {
      if ((" " + parts[i].first).find(" axis." + name + " ") != std::string::npos)
        product *= value;
    }
    if (product <= std::stoll(parts[i].first.substr(bound + 4)))
      return i;
  }
  return parts.size() - 1;
}

/// A problem of which a log knows every point; the points that it lacks count as failures.
result<arena> real(const std::string& folder, const std::vector<std::string>& logs) {
  const auto target = load_problem(folder);
  if (!target)
    return pass(target);
  const auto graph = parse_op_graph(target->graph_json);
  if (!graph)
    return pass(graph);
  auto programs = program_space::make(*target, *graph);
  if (!programs)
    return pass(programs);
  const auto known = std::make_shared<std::map<std::string, trial>>();
  for (const std::string& log : logs)
    known->merge(trials_in(log, target->name));
  arena out;
  out.space = std::make_shared<program_search_space>(std::move(*programs));
  out.workloads = search_workloads(*target, 2'000'000);
  out.judge = [known, workloads = out.workloads](
                const std::string& full_key, const std::vector<std::string>& probed) {
    const search_key key = read_key(full_key);
    auto parts = parts_of_groups_key(key.subject);
    if (parts.empty())
      parts = {{"true", std::string(key.subject)}};
    trial verdict;
    verdict.key = full_key;
    verdict.status = verdict_status::passed;
    verdict.effort = probed.empty() ? attempt_effort::full : attempt_effort::probe;
    std::vector<double> all;
    for (size_t w = 0; w < workloads.size(); ++w) {
      if (!probed.empty()
        && std::find(probed.begin(), probed.end(), workloads[w].uuid) == probed.end())
        continue;
      const auto found = known->find(parts[place_used(parts, workloads[w])].second);
      if (found == known->end() || found->second.status != verdict_status::passed)
        return trial{full_key, verdict_status::runtime_error, 0, {}, verdict.effort, {}, {}, {}};
      verdict.times.push_back(found->second.times[w]);
      all.push_back(std::log(static_cast<double>(verdict.times.back().ns)));
    }
    verdict.objective_ns = static_cast<uint64_t>(std::llround(std::exp(log_mean(all))));
    return verdict;
  };
  out.best = optimum_of(out);
  return out;
}

using proposer =
  std::function<search_result(const arena& of, const trial_history& history, uint64_t seed)>;

search_result ask(
  const arena& of, const trial_history& history, uint64_t seed, search_strategy strategy) {
  search_limits limits;
  limits.plateau = 1'000'000;
  return propose(*of.space, {of.workloads, history, {}, seed, {}, {}, limits}, strategy);
}

/// The search of the first build.
search_result greedy(const arena& of, const trial_history& history, uint64_t seed) {
  const search_space& space = *of.space;
  splitmix64 random(seed);
  const auto known = [&](const program_point& point) {
    const std::string key = space.key(point);
    return std::any_of(
      history.begin(), history.end(), [&](const trial& one) { return one.key == key; });
  };
  const auto found = [&](const program_point& point) {
    search_result out;
    out.outcome = search_outcome::candidate;
    out.candidate.key = space.key(point);
    return out;
  };
  const auto any = [&] {
    for (int i = 0; i < 10'000; ++i) {
      const auto point = space.at(random.below(space.size()));
      if (!known(point))
        return found(point);
    }
    return search_result{};
  };
  if (history.empty())
    return found(space.first(0));
  if (history.size() < 4)
    return any();
  std::vector<const trial*> order;
  for (const trial& one : history) {
    if (one.status == verdict_status::passed)
      order.push_back(&one);
  }
  std::stable_sort(order.begin(), order.end(),
    [](const trial* a, const trial* b) { return a->objective_ns < b->objective_ns; });
  for (const trial* base : order) {
    std::vector<program_point> fresh;
    for (const program_point& point : space.neighbours(*space.find(base->key))) {
      if (!known(point))
        fresh.push_back(point);
    }
    if (!fresh.empty())
      return found(fresh[random.below(fresh.size())]);
  }
  return any();
}

/// Where a search stood after an effort, in evaluations.
struct course {
  /// Effort until the best full trial was within 2 % of the best single point; 0 for never.
  double to_two_percent = 0;
  double after_10 = 0;
  double after_20 = 0;
  double after_40 = 0;
};

course run(const arena& of, uint64_t seed, const proposer& next) {
  constexpr double effort_max = 150;
  trial_history history;
  course out;
  double effort = 0;
  double best = INFINITY;
  const auto regret = [&] { return best / of.best.single - 1; };
  const std::array slots = {
    std::pair{10.0, &out.after_10}, std::pair{20.0, &out.after_20}, std::pair{40.0, &out.after_40}};
  for (uint64_t step = 0; effort < effort_max; ++step) {
    const auto got = next(of, history, seed * 1000 + step);
    if (got.outcome != search_outcome::candidate)
      break;
    history.push_back(of.judge(got.candidate.key, got.candidate.workloads));
    const trial& last = history.back();
    const double share = got.candidate.workloads.empty()
      ? 1
      : static_cast<double>(got.candidate.workloads.size())
        / static_cast<double>(of.workloads.size());
    for (const auto& [at, slot] : slots) {
      if (effort <= at && effort + share > at)
        *slot = regret();
    }
    effort += share;
    if (last.effort == attempt_effort::full && last.status == verdict_status::passed)
      best = std::min(best, static_cast<double>(last.objective_ns));
    if (out.to_two_percent == 0 && best <= 1.02 * of.best.single)
      out.to_two_percent = effort;
  }
  // A search that has tried everything stays where it is.
  for (const auto& [at, slot] : slots) {
    if (effort <= at)
      *slot = regret();
  }
  return out;
}

struct surface {
  std::string name;
  std::function<synthetic_shape(uint64_t seed)> make;
};

synthetic_shape with_sizes(synthetic_shape shape, size_t workloads, double drift) {
  shape.sizes.clear();
  for (size_t i = 0; i < workloads; ++i)
    shape.sizes.push_back(int64_t{32} << (workloads == 1 ? 7 : i * 9 / (workloads - 1)));
  shape.drift = drift;
  return shape;
}

void print_head() {
  fmt::print("{:<40} {:>8} {:>8} | {:>6} {:>5} | {:>7} {:>7} {:>7} | {:>7}\n", "surface", "points",
    "search", "median", "found", "10", "20", "40", "groups");
}

void print_foot() {
  fmt::print(
    "\nmedian: evaluations to within 2 % of the best single point; found: seeds that got there\n"
    "10, 20, 40: mean distance from the best single point after so many evaluations; below 0 "
    "with groups\ngroups: what the best point for each workload would gain over the best single "
    "one\n");
}

/// One line a strategy. `arenas`: one for each seed from 1 on, or one for all.
void print_lines(const std::string& surface_name, const std::vector<arena>& arenas, uint64_t seeds,
  std::string_view only) {
  const auto with = [](search_strategy strategy) {
    return [strategy](const arena& of, const trial_history& history, uint64_t seed) {
      return ask(of, history, seed, strategy);
    };
  };
  const std::vector<std::pair<std::string, proposer>> strategies = {
    {"guided", with(search_strategy::guided)}, {"random", with(search_strategy::random)},
    {"greedy", greedy}};
  double gap = 0;
  for (const arena& one : arenas)
    gap += (1 - one.best.each / one.best.single) / static_cast<double>(arenas.size());
  for (const auto& [name, next] : strategies) {
    if (!only.empty() && only != name)
      continue;
    std::vector<double> efforts;
    course mean;
    size_t found = 0;
    for (uint64_t i = 0; i < seeds; ++i) {
      const course one = run(arenas[i % arenas.size()], i + 1, next);
      efforts.push_back(one.to_two_percent == 0 ? INFINITY : one.to_two_percent);
      found += one.to_two_percent == 0 ? 0 : 1;
      mean.after_10 += one.after_10 / static_cast<double>(seeds);
      mean.after_20 += one.after_20 / static_cast<double>(seeds);
      mean.after_40 += one.after_40 / static_cast<double>(seeds);
    }
    std::sort(efforts.begin(), efforts.end());
    const double median = efforts[efforts.size() / 2];
    fmt::print(
      "{:<40} {:>8} {:>8} | {:>6} {:>2}/{:<2} | {:>6.1f}% {:>6.1f}% {:>6.1f}% | {:>6.1f}%\n",
      surface_name, arenas.front().space->size(), name,
      std::isinf(median) ? "-" : fmt::format("{:.1f}", median), found, seeds, 100 * mean.after_10,
      100 * mean.after_20, 100 * mean.after_40, 100 * gap);
    std::fflush(stdout);
  }
}

void print_table(uint64_t seeds, std::string_view only) {
  const std::vector<surface> surfaces = {
    {"4 parameters, 1 workload", [](uint64_t s) { return test::one_family(4, s); }},
    {"4 parameters, 4 workloads",
      [](uint64_t s) { return with_sizes(test::one_family(4, s), 4, 0); }},
    {"4 parameters, 4 workloads that differ",
      [](uint64_t s) { return with_sizes(test::one_family(4, s), 4, 2); }},
    {"5 parameters, 14 workloads that differ",
      [](uint64_t s) { return with_sizes(test::one_family(5, s), 14, 1); }},
    {"3 cuts, up to 3 stages, 1 workload", [](uint64_t s) { return test::several_stages(s); }},
    {"3 cuts, up to 3 stages, 4 workloads",
      [](uint64_t s) { return with_sizes(test::several_stages(s), 4, 0); }},
  };
  fmt::print(
    "origin MODELLED (made-up surfaces), seeds 1 to {}, at most 150 evaluations\n\n", seeds);
  print_head();
  for (const surface& each : surfaces) {
    std::vector<arena> arenas;
    for (uint64_t seed = 1; seed <= seeds; ++seed)
      arenas.push_back(made_up(each.make(seed)));
    print_lines(each.name, arenas, seeds, only);
  }
  print_foot();
}

int print_real(uint64_t seeds, const std::string& folder, const std::vector<std::string>& logs) {
  const auto of = real(folder, logs);
  if (!of) {
    fmt::print(stderr, "{}: {}\n", folder, of.error().what);
    return 2;
  }
  size_t passed = 0;
  for (uint64_t i = 0; i < of->space->size(); ++i) {
    const trial verdict = of->judge(of->space->key(of->space->at(i)), {});
    passed += verdict.status == verdict_status::passed ? 1 : 0;
  }
  fmt::print("origin MODELLED (times of the log), seeds 1 to {}; {} of {} points passed\n\n", seeds,
    passed, of->space->size());
  if (passed == 0)
    return 2;
  print_head();
  print_lines(folder, {*of}, seeds, "");
  print_foot();
  return 0;
}

/// What one proposal costs late in a long run.
void print_speed() {
  const auto made = std::make_shared<synthetic_space>(with_sizes(test::several_stages(1), 14, 1));
  const synthetic_space& space = *made;
  const arena of{made, made->workloads(), {}, {}};
  trial_history history;
  for (uint64_t i = 0; i < 1000; ++i)
    history.push_back(space.judge(space.key(space.at(i))));
  for (auto [name, strategy] : {std::pair{"guided", search_strategy::guided},
         {"random", search_strategy::random}, {"exhaustive", search_strategy::exhaustive}}) {
    std::vector<double> times;
    for (uint64_t i = 0; i < 100; ++i) {
      const std::clock_t begin = std::clock();
      const auto got = ask(of, history, i, strategy);
      if (got.outcome == search_outcome::candidate)
        times.push_back(1000.0 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
    }
    std::sort(times.begin(), times.end());
    if (times.empty())
      continue;
    fmt::print("{:<10} {} points, 1,000 trials, 14 workloads: median {:.2f} ms, 95 % {:.2f} ms of "
               "processor time\n",
      name, space.size(), times[times.size() / 2], times[times.size() * 95 / 100]);
  }
}

} // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words[0] == "speed") {
    print_speed();
    return 0;
  }
  const bool is_real = !words.empty() && words[0] == "real";
  const size_t place = is_real ? 1 : 0;
  const uint64_t seeds =
    words.size() > place ? std::strtoull(words[place].c_str(), nullptr, 10) : 20;
  if (seeds == 0 || seeds > 1000 || (is_real && words.size() < 4)) {
    fmt::print(stderr,
      "usage: gristmill-bench-search [SEEDS from 1 to 1000 [STRATEGY]]\n"
      "       gristmill-bench-search real SEEDS PROBLEM_FOLDER LOG...\n"
      "       gristmill-bench-search speed\n");
    return 2;
  }
  if (is_real)
    return print_real(seeds, words[2], {words.begin() + 3, words.end()});
  print_table(seeds, words.size() > 1 ? words[1] : "");
}
