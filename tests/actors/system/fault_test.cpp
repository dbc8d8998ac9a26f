#include "journal/event_line.hpp"
#include "tests/actors/system/faulty_run.hpp"

#include <cstdlib>
#include <doctest/doctest.h>
#include <map>
#include <nlohmann/json.hpp>

using namespace gristmill;
using namespace gristmill::test;

namespace {

struct seen_gpu {
  uint64_t token = 0;
  /// Granted, and not verified since.
  bool held = false;
  bool lease_over = true;
};

void check_gpus(const faulty_outcome& run) {
  std::map<std::string, seen_gpu> gpus;
  for (const auto& e : run.events) {
    if (e.gpu.empty())
      continue;
    CAPTURE(canonical_line(e));
    auto& g = gpus[e.gpu];
    if (e.kind == "lease_grant") {
      CHECK_MESSAGE(!g.held, "two holders");
      CHECK_MESSAGE(e.token > g.token, "a token came back");
      g = {e.token, true, false};
    } else if (e.kind == "lease_release" || e.kind == "lease_revoke"
      || e.kind == "lease_withdraw") {
      CHECK(e.token == g.token);
      CHECK_MESSAGE(!g.lease_over, "a lease ended twice");
      g.lease_over = true;
    } else if (e.kind == "gpu_free") {
      CHECK(e.token == g.token);
      CHECK_MESSAGE(g.lease_over, "verified before its end");
      g.held = false;
    }
  }
  CHECK(gpus.size() <= run.gpus);
  CHECK_MESSAGE(run.runners_most <= run.gpus, "two runners on one GPU");
  if (run.ends.at(0).clean)
    for (const auto& [name, g] : gpus)
      CHECK_MESSAGE(g.lease_over, name, ": a lease that nobody ended");
}

void check_attempts(const faulty_outcome& run) {
  std::map<std::string, int> ends;
  uint64_t judged = 0;
  for (const auto& e : run.events) {
    if (e.kind == "assigned") {
      CHECK_MESSAGE(ends.emplace(e.attempt, 0).second, "given out twice: ", e.attempt);
    } else if (e.kind == "attempt_finished" || e.kind == "attempt_lost") {
      REQUIRE_MESSAGE(ends.count(e.attempt) == 1, "never given out: ", e.attempt);
      ++ends[e.attempt];
      if (e.kind == "attempt_finished") {
        auto data = nlohmann::json::parse(e.data);
        judged += data.at("kind") != "baseline" && data.at("outcome") == "judged" ? 1 : 0;
      }
    }
  }
  for (const auto& [attempt, count] : ends) {
    CHECK_MESSAGE(count <= 1, attempt);
    if (run.ends.at(0).clean)
      CHECK_MESSAGE(count == 1, attempt);
  }
  CHECK_MESSAGE(judged <= run.attempt_budget, "more attempts than were paid for");
}

void check(const faulty_outcome& run) {
  REQUIRE_MESSAGE(run.ends.size() == 1, "the run does not end");
  check_gpus(run);
  check_attempts(run);
  if (run.journal_failed && !run.ends[0].clean)
    return;
  REQUIRE_FALSE(run.events.empty());
  CHECK(run.events.front().kind == "run_started");
  CHECK(run.events.back().kind == "run_ended");
  CHECK(nlohmann::json::parse(run.events.back().data).at("clean") == run.ends[0].clean);
}

std::vector<std::string> lines_of(const faulty_outcome& run) {
  std::vector<std::string> lines;
  for (const auto& e : run.events)
    lines.push_back(canonical_line(e));
  return lines;
}

} // namespace

TEST_CASE("a run keeps its promises whatever breaks") {
  small_run shared{{"a", "b"}};
  uint64_t first = 1, last = 200;
  if (const char* only = std::getenv("GRISTMILL_FAULT_SEED"))
    first = last = std::strtoull(only, nullptr, 10);
  std::map<std::string, int> kinds;
  int clean = 0;
  for (uint64_t seed = first; seed <= last; ++seed) {
    INFO("repeat with: GRISTMILL_FAULT_SEED=", seed, " tests/test_actors_system");
    CAPTURE(seed);
    auto run = run_with_faults(shared, seed);
    check(run);
    if (run.ends.empty())
      continue;
    clean += run.ends[0].clean ? 1 : 0;
    for (const auto& e : run.events)
      ++kinds[e.kind];
    if (seed % 8 == 0 || first == last) {
      auto again = run_with_faults(shared, seed);
      CHECK(digest(again.events) == digest(run.events));
      CHECK(lines_of(again) == lines_of(run));
    }
  }
  if (first == last)
    return;
  // A test of faults that never happen would prove nothing.
  for (const std::string kind : {"verdict", "attempt_lost", "prepare_retried", "actor_restarted",
         "lease_revoke", "lease_wait_end", "gpu_down", "drain", "compiled", "problem_finished"})
    CHECK_MESSAGE(kinds[kind] > 0, "never happened: ", kind);
  CHECK(clean > 100);
  CHECK(clean < 200);
}
