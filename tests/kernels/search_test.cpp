#include "kernels/search.hpp"
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

trial passed(const std::string& key, uint64_t ns, double share = 0.1) {
  return {key, verdict_status::passed, ns, share};
}

graph_problem builtin(const std::string& name) {
  for (auto& one : builtin_corpus()) {
    if (one.target.name == name)
      return one;
  }
  FAIL("no such built-in problem");
  return {};
}

/// Runs the search to its end; returns the trials.
std::vector<trial> whole_search(
  const graph_problem& of, uint64_t seed, search_limits limits, std::string& reason) {
  std::vector<trial> history;
  for (int step = 0; step < 5000; ++step) {
    const auto next =
      propose(of.target, of.graph, history, {}, seed + static_cast<uint64_t>(step), limits);
    if (next.outcome != search_outcome::candidate) {
      CHECK(next.outcome == search_outcome::exhausted);
      reason = next.reason;
      return history;
    }
    history.push_back(passed(next.candidate.key, pretend_time(next.candidate.key)));
  }
  FAIL("the search does not end");
  return history;
}

} // namespace

TEST_CASE("equal arguments give equal proposals, another seed another path") {
  for (const auto& one : builtin_corpus()) {
    std::vector<trial> history;
    const auto first = propose(one.target, one.graph, history, {}, 1);
    REQUIRE(first.outcome == search_outcome::candidate);
    // The good default does not depend on the seed.
    CHECK(propose(one.target, one.graph, history, {}, 2).candidate.key == first.candidate.key);
    history.push_back(passed(first.candidate.key, 1000));
    std::set<std::string> keys;
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const auto a = propose(one.target, one.graph, history, {}, seed);
      const auto b = propose(one.target, one.graph, history, {}, seed);
      CHECK(a.candidate.source == b.candidate.source);
      CHECK(a.candidate.plan == b.candidate.plan);
      CHECK(a.candidate.key == b.candidate.key);
      keys.insert(a.candidate.key);
    }
    CHECK(keys.size() > 5);
  }
}

TEST_CASE("nothing is proposed twice, and the space ends") {
  const auto one = builtin("softmax");
  std::string reason;
  const auto history = whole_search(one, 7, {.plateau = 1'000'000}, reason);
  std::set<std::string> keys;
  for (const auto& t : history)
    CHECK(keys.insert(t.key).second);
  CHECK(reason == "every point was tried");
  CHECK(history.size() > 50);
}

TEST_CASE("what others are trying is not proposed") {
  const auto one = builtin("rmsnorm");
  std::set<std::string> keys;
  std::vector<std::string> in_flight;
  for (int i = 0; i < 20; ++i) {
    const auto next = propose(one.target, one.graph, {}, in_flight, 3);
    REQUIRE(next.outcome == search_outcome::candidate);
    CHECK(keys.insert(next.candidate.key).second);
    in_flight.push_back(next.candidate.key);
  }
}

TEST_CASE("the search stops at a plateau") {
  std::string reason;
  const auto history = whole_search(builtin("silu_and_mul"), 11, {}, reason);
  CHECK(reason.find("plateau") == 0);
  // The last ten trials brought nothing.
  REQUIRE(history.size() > 10);
  uint64_t best = UINT64_MAX;
  for (size_t i = 0; i + 10 < history.size(); ++i)
    best = std::min(best, history[i].objective_ns);
  for (size_t i = history.size() - 10; i < history.size(); ++i)
    CHECK(static_cast<double>(history[i].objective_ns) >= 0.99 * static_cast<double>(best));
}

TEST_CASE("failed trials count towards the plateau") {
  const auto one = builtin("rmsnorm");
  std::vector<trial> history;
  for (int step = 0; step < 100; ++step) {
    const auto next = propose(one.target, one.graph, history, {}, static_cast<uint64_t>(step));
    if (next.outcome == search_outcome::exhausted)
      break;
    history.push_back({next.candidate.key, verdict_status::incorrect_numerical, 0, 0.0});
  }
  CHECK(history.size() == 10);
}

TEST_CASE("near the floor the search stops") {
  const auto one = builtin("rmsnorm");
  const auto first = propose(one.target, one.graph, {}, {}, 1);
  const auto at = [&](double share) {
    return propose(one.target, one.graph, {passed(first.candidate.key, 1000, share)}, {}, 1);
  };
  CHECK(at(0.94).outcome == search_outcome::candidate);
  CHECK(at(0.95).outcome == search_outcome::exhausted);
  CHECK(at(0.95).reason == "within 5 % of the floor");
}

TEST_CASE("trials of other origin do not steer the search") {
  const auto one = builtin("rmsnorm");
  const auto plain = propose(one.target, one.graph, {}, {}, 1);
  const auto with_baseline = propose(one.target, one.graph, {passed("plain/1", 10, 0.99)}, {}, 1);
  CHECK(with_baseline.outcome == search_outcome::candidate);
  CHECK(with_baseline.candidate.key == plain.candidate.key);
}

TEST_CASE("after the random starts come neighbours of the best") {
  const auto one = builtin("softmax");
  std::vector<trial> history;
  uint64_t time = 1000;
  for (int step = 0; step < 4; ++step) {
    const auto next = propose(one.target, one.graph, history, {}, static_cast<uint64_t>(step));
    CHECK(next.candidate.parent.empty());
    history.push_back(passed(next.candidate.key, time++));
  }
  const auto next = propose(one.target, one.graph, history, {}, 9);
  CHECK(next.candidate.parent == history[0].key);
  CHECK(next.candidate.hypothesis.find("Like " + history[0].key) == 0);
}

TEST_CASE("a graph without a family has no candidate, and the reason names the operator") {
  const auto one =
    map_problem(R"({"op": "mm", "inputs": [{"value": 0}, {"value": 0}], "outputs": [1]})");
  const auto next = propose(one.target, one.graph, {}, {}, 1);
  CHECK(next.outcome == search_outcome::no_candidate);
  CHECK(next.reason == "operator 'mm' belongs to no template family yet");
}

TEST_CASE("no workload at all is no reason to crash") {
  auto one = builtin("softmax");
  one.target.workloads.clear();
  const auto next = propose(one.target, one.graph, {}, {}, 1);
  CHECK(next.outcome == search_outcome::candidate);
}
