#include "planning/portfolio.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace gristmill;
using namespace std::chrono_literals;

namespace {

/// A small generator with a seed; its numbers are the same on every machine.
struct chance {
  uint64_t state;
  uint64_t below(uint64_t n) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (state >> 33) % n;
  }
};

/// Plays workers that fail, die and report late, over problems with ten candidates each, until the
/// planner says stop. Returns every decision as text.
std::vector<std::string> play(uint64_t seed, uint64_t attempt_budget) {
  chance random{seed * 2 + 1};
  std::vector<portfolio_problem> problems;
  for (int i = 0; i < 5; ++i)
    problems.push_back({fmt::format("p{}", i), {}});
  portfolio_config config;
  config.seed = seed;
  config.attempt_budget = attempt_budget;
  auto mind = *portfolio::make(config, problems);
  for (const auto& p : problems) {
    prepared_problem ready;
    ready.problem = p.name;
    ready.status =
      random.below(8) == 0 ? verdict_status::invalid_reference : verdict_status::passed;
    mind.on_ready(ready);
  }
  std::vector<std::string> log;
  std::map<std::string, assignment> busy;
  std::map<std::string, int> tried;
  std::set<std::string> judged;
  for (int step = 0; step < 100'000; ++step) {
    auto worker = fmt::format("w{}", random.below(6));
    auto it = busy.find(worker);
    if (it == busy.end()) {
      auto d = mind.next(worker, std::chrono::seconds{step});
      log.push_back(fmt::format("{} {} {}", worker, static_cast<int>(d.kind), d.reason));
      if (d.kind == decision_kind::assigned)
        busy[worker] = d.work;
      else if (busy.empty())
        break;
      continue;
    }
    auto work = it->second;
    busy.erase(it);
    if (random.below(30) == 0) {
      mind.on_worker_lost(worker, 0ns);
      continue;
    }
    attempt_summary s;
    s.id = work.id;
    s.kind = work.kind;
    s.worker = worker;
    s.gpu_ns = 1 + random.below(1000);
    std::string key = work.kind == attempt_kind::baseline ? "base" : "";
    if (work.given)
      key = work.given->key;
    for (int k = 0; key.empty() && k < 10; ++k) {
      auto name = fmt::format("k{}", k);
      if (mind.claim({work.id, name}).granted)
        key = name;
    }
    if (key.empty()) {
      s.outcome = attempt_outcome::exhausted;
    } else {
      mind.claim({work.id, key});
      s.candidate.key = key;
      s.candidate.hash = "hash-of-" + key;
      s.outcome = random.below(6) == 0 ? attempt_outcome::infrastructure : attempt_outcome::judged;
      s.status = random.below(4) == 0 && work.kind != attempt_kind::baseline
        ? verdict_status::incorrect_numerical
        : verdict_status::passed;
      s.objective_ns = 1 + random.below(1000);
      s.speedup = 1.5;
      auto full = work.id.problem + "/" + key;
      CHECK(++tried[full] <= 3);
      if (s.outcome == attempt_outcome::judged)
        CHECK(judged.insert(full).second);
    }
    mind.on_finished(s, std::chrono::seconds{step});
  }
  CHECK(mind.done());
  CHECK_FALSE(mind.stop_reason().empty());
  for (const auto& v : mind.problems())
    log.push_back(fmt::format("{} {} {} {}", v.name, to_string(v.state), v.reason, v.best_ns));
  return log;
}

} // namespace

TEST_CASE("every run ends, nothing is judged twice and nothing is tried more than three times") {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    play(seed, 0);
    play(seed, 17);
  }
}

TEST_CASE("two planners with the same seed and the same answers decide the same") {
  for (uint64_t seed = 1; seed <= 20; ++seed)
    CHECK(play(seed, 0) == play(seed, 0));
}
