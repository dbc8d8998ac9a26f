// The search on real problems; its rules are tested in tests/kernels/search.

#include "kernels/search.hpp"
#include "kernels/search/program_search_space.hpp"
#include "tests/kernels/corpus.hpp"

#include <doctest/doctest.h>
#include <set>
#include <string>

using namespace gristmill;
using namespace gristmill::test;

namespace {

/// A made-up but fixed time for a key.
uint64_t pretend_time(const std::string& key) {
  uint64_t hash = 1469598103934665603U;
  for (char c : key)
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return 10'000 + hash % 10'000;
}

trial judged(const generated_candidate& one, verdict_status status = verdict_status::passed) {
  trial out;
  out.key = one.key;
  out.status = status;
  out.effort = one.effort;
  out.objective_ns = status == verdict_status::passed ? pretend_time(one.key) : 0;
  out.floor_share = 0.1;
  return out;
}

/// Runs a search to its end, or for so many steps.
trial_history whole_search(const graph_problem& of, uint64_t seed, search_strategy strategy,
  size_t steps_max, std::string& reason) {
  auto programs = program_space::make(of.target, of.graph);
  REQUIRE(programs);
  const program_search_space space(std::move(*programs));
  const auto workloads = search_workloads(of.target, 2'000'000);
  trial_history history;
  while (history.size() < steps_max) {
    const auto next =
      propose(space, {workloads, history, {}, seed + history.size(), {}, {}, {}}, strategy);
    if (next.outcome != search_outcome::candidate) {
      CHECK(next.outcome == search_outcome::exhausted);
      reason = next.reason;
      break;
    }
    CHECK_FALSE(next.candidate.source.empty());
    CHECK_FALSE(next.candidate.plan.empty());
    history.push_back(judged(next.candidate));
  }
  return history;
}

} // namespace

TEST_CASE("the first proposal of a problem is its good first point, whatever the seed") {
  for (const auto& one : builtin_corpus()) {
    auto programs = program_space::make(one.target, one.graph);
    if (!programs)
      continue; // Its operators have no kernel yet; the proposal says so.
    const auto a = propose(one.target, one.graph, {}, {}, 1);
    const auto b = propose(one.target, one.graph, {}, {}, 2);
    REQUIRE(a.outcome == search_outcome::candidate);
    CHECK(a.candidate.key == programs->key(programs->first(0)));
    CHECK(b.candidate.key == a.candidate.key);
    CHECK(b.candidate.source == a.candidate.source);
    CHECK(b.candidate.plan == a.candidate.plan);
  }
}

TEST_CASE("a search of a real problem proposes no key twice, and ends") {
  for (const char* name : {"softmax", "silu_and_mul", "rmsnorm"}) {
    std::string reason;
    const auto history = whole_search(builtin_graph(name), 7, search_strategy::guided, 300, reason);
    std::set<std::string> keys;
    for (const auto& t : history)
      CHECK(keys.insert(t.key).second);
    CHECK(history.size() > 10);
    CHECK(reason.find("plateau") == 0);
  }
}

TEST_CASE("the fixed searches work on real problems, too") {
  for (auto strategy : {search_strategy::random, search_strategy::exhaustive}) {
    std::string reason;
    const auto history = whole_search(builtin_graph("softmax"), 7, strategy, 60, reason);
    std::set<std::string> keys;
    for (const auto& t : history)
      CHECK(keys.insert(t.key).second);
    CHECK(history.size() == 60);
  }
}

TEST_CASE("a graph with an operator that has no kernel has no candidate, and the reason names it") {
  const auto one = map_problem(
    R"({"op": "no_such_operator", "inputs": [{"value": 0}, {"value": 0}], "outputs": [1]})");
  const auto next = propose(one.target, one.graph, {}, {}, 1);
  CHECK(next.outcome == search_outcome::no_candidate);
  CHECK(next.reason.find("no_such_operator") != std::string::npos);
}

TEST_CASE("no workload at all is no reason to crash") {
  auto one = builtin_graph("softmax");
  one.target.workloads.clear();
  const auto next = propose(one.target, one.graph, {}, {}, 1);
  CHECK(next.outcome == search_outcome::candidate);
}
