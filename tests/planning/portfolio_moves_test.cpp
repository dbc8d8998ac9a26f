// Workers that are moved between problems, the notes that they leave, and probes.

#include "planning/allocation/allocation_text.hpp"
#include "planning/portfolio.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace gristmill;
using namespace std::chrono_literals;

namespace {

struct two_problems {
  portfolio mind = std::move(*portfolio::make({}, {{"p", {}}, {"q", {}}}));

  two_problems() {
    for (const char* name : {"p", "q"}) {
      prepared_problem ready;
      ready.problem = name;
      ready.status = verdict_status::passed;
      ready.has_bounds = true;
      mind.on_ready(ready);
    }
  }

  planner_decision next(const std::string& worker) {
    auto out = mind.next(worker, 0ns);
    REQUIRE(out.kind == decision_kind::assigned);
    return out;
  }

  attempt_summary judged(
    const assignment& work, const std::string& key, uint64_t ns, const std::string& note) {
    attempt_summary s;
    s.id = work.id;
    s.outcome = attempt_outcome::judged;
    s.status = verdict_status::passed;
    s.candidate.key = key;
    s.candidate.hash = "hash of " + key;
    s.objective_ns = ns;
    s.speedup = 1000.0 / static_cast<double>(ns);
    s.times = {{"u", ns}};
    s.note = note;
    s.gpu_ns = 1;
    return s;
  }

  void finish(
    const assignment& work, const std::string& key, uint64_t ns, const std::string& note) {
    REQUIRE(mind.on_finished(judged(work, key, ns, note), 0ns).accepted);
  }
};

} // namespace

TEST_CASE_FIXTURE(two_problems, "a worker that gets another problem than its last has been moved") {
  auto first = next("w");
  CHECK(first.work.id.problem == "p");
  CHECK(first.work.moved_from.empty());
  finish(first.work, "k1", 900, "k1: 900 ns, limited by dram");
  auto second = next("w");
  CHECK(second.work.id.problem == "q");
  CHECK(second.work.moved_from == "p");
  CHECK(second.note_left == "k1: 900 ns, limited by dram");
  CHECK(second.work.notes.empty());
  finish(second.work, "k2", 900, "");
  auto third = next("w");
  CHECK(third.work.id.problem == "p");
  CHECK(third.work.notes == std::vector<std::string>{"k1: 900 ns, limited by dram"});
}

TEST_CASE_FIXTURE(
  two_problems, "a problem keeps few notes, each of one short line, the newest last") {
  for (int i = 0; i < 40; ++i) {
    auto work = next("w").work;
    finish(work, fmt::format("k{}", i), 900,
      fmt::format("note {} ", i) + std::string(500, 'x') + "\nsecond line");
  }
  auto work = next("w").work;
  CHECK(work.notes.size() == 8);
  for (const auto& note : work.notes) {
    CHECK(note.size() <= 200);
    CHECK(note.find('\n') == std::string::npos);
  }
  CHECK(work.notes.back().starts_with("note 38 "));
}

TEST_CASE_FIXTURE(two_problems, "a note is cut between characters") {
  auto work = next("w").work;
  finish(work, "k", 900, std::string(199, 'x') + "\xc3\xa4");
  CHECK(next("w").note_left == std::string(199, 'x'));
}

TEST_CASE_FIXTURE(two_problems, "a probe is a trial, and never the best") {
  auto work = next("w").work;
  auto probe = judged(work, "probe/k", 10, "");
  probe.effort = attempt_effort::probe;
  auto note = mind.on_finished(probe, 0ns);
  CHECK(note.accepted);
  CHECK_FALSE(note.improved);
  CHECK(mind.problems()[0].best_ns == 0);
  finish(next("w").work, "other", 900, "");
  auto again = next("w").work;
  REQUIRE(again.history.size() == 1);
  CHECK(again.history[0].effort == attempt_effort::probe);
  CHECK(again.history[0].objective_ns == 10);
  REQUIRE(again.history[0].times.size() == 1);
  CHECK(again.history[0].times[0].ns == 10);
}

TEST_CASE("rebalancing sends workers to the problem that gains") {
  portfolio_config config;
  config.share_by_attempts = true;
  config.allocation = *allocation_from_text("rebalance");
  auto mind = std::move(*portfolio::make(config, {{"p", {}}, {"q", {}}, {"r", {}}}));
  for (const char* name : {"p", "q", "r"}) {
    prepared_problem ready;
    ready.problem = name;
    ready.status = verdict_status::passed;
    ready.has_bounds = true;
    mind.on_ready(ready);
  }
  uint64_t best = 1'000'000;
  for (int i = 0; i < 60; ++i) {
    auto work = mind.next("w", 0ns).work;
    attempt_summary s;
    s.id = work.id;
    s.outcome = attempt_outcome::judged;
    s.status = verdict_status::passed;
    s.candidate.key = fmt::format("k{}", i);
    s.objective_ns = work.id.problem == "q" ? best = best * 9 / 10 : 1'000'000;
    mind.on_finished(s, 0ns);
  }
  auto problems = mind.problems();
  CHECK(problems[1].attempts_given > 25);
  CHECK(problems[0].attempts_given >= 9);
  CHECK(problems[2].attempts_given >= 9);
}

TEST_CASE_FIXTURE(two_problems, "a problem is told as finished once") {
  auto work = next("w").work;
  attempt_summary s;
  s.id = work.id;
  s.outcome = attempt_outcome::exhausted;
  s.reason = "nothing";
  mind.on_finished(s, 0ns);
  auto told = mind.take_finished();
  REQUIRE(told.size() == 1);
  CHECK(told[0].name == "p");
  CHECK(mind.take_finished().empty());
}
