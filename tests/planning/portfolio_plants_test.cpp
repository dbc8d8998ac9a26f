// Candidates that come from outside while the run goes on.

#include "planning/portfolio.hpp"

#include <doctest/doctest.h>

using namespace gristmill;
using namespace std::chrono_literals;

namespace {

candidate_ref outside(const std::string& name) {
  candidate_ref c;
  c.hash = "hash-of-" + name;
  c.key = "agent/" + name;
  c.source = {"source-of-" + name, 1};
  c.plan = {"plan-of-" + name, 1};
  return c;
}

struct planting_fixture {
  std::optional<portfolio> mind;

  planting_fixture() { start(open_config()); }

  static portfolio_config open_config() {
    portfolio_config out;
    out.search = false;
    out.takes_plants = true;
    return out;
  }

  void start(portfolio_config config) {
    mind.emplace(*portfolio::make(std::move(config), {{"p", {}}, {"q", {}}}));
    for (const auto* name : {"p", "q"}) {
      prepared_problem ready;
      ready.problem = name;
      ready.status = verdict_status::passed;
      ready.has_bounds = true;
      REQUIRE(mind->on_ready(ready));
    }
  }

  planner_note end(const assignment& work, attempt_outcome outcome = attempt_outcome::judged,
    verdict_status status = verdict_status::passed) {
    attempt_summary s;
    s.id = work.id;
    s.kind = work.kind;
    s.outcome = outcome;
    s.candidate = work.given ? *work.given : candidate_ref{};
    s.status = status;
    s.objective_ns = status == verdict_status::passed ? 1000 : 0;
    return mind->on_finished(s, 0ns);
  }

  planner_decision next(const std::string& worker = "w") { return mind->next(worker, 0ns); }
  assignment give(const std::string& worker = "w") {
    auto decision = next(worker);
    REQUIRE_MESSAGE(decision.kind == decision_kind::assigned, decision.reason);
    return decision.work;
  }
};

} // namespace

TEST_CASE_FIXTURE(
  planting_fixture, "a run that takes candidates waits for them instead of ending") {
  CHECK(next().kind == decision_kind::idle);
  CHECK_FALSE(mind->done());
  CHECK(mind->problems()[0].state == problem_state::open);
}

TEST_CASE_FIXTURE(planting_fixture, "a candidate from outside gets an attempt of its own") {
  REQUIRE(mind->plant("p", outside("a"), 0ns).accepted);
  CHECK(mind->has_open("p", outside("a")));
  auto work = give();
  CHECK(work.id.problem == "p");
  CHECK(work.kind == attempt_kind::planted);
  REQUIRE(work.given);
  CHECK(work.given->hash == "hash-of-a");
  CHECK(mind->has_open("p", outside("a")));
  CHECK(end(work).accepted);
  CHECK_FALSE(mind->has_open("p", outside("a")));
  CHECK(next().kind == decision_kind::idle);
  CHECK(mind->problems()[0].best.hash == "hash-of-a");
}

TEST_CASE_FIXTURE(
  planting_fixture, "nothing is tried twice: the second asker gets the verdict of the first") {
  REQUIRE(mind->plant("p", outside("a"), 0ns).accepted);
  auto again = mind->plant("p", outside("a"), 0ns);
  CHECK_FALSE(again.accepted);
  CHECK_FALSE(again.known);
  CHECK(again.reason == "this very candidate is being tried");
  end(give(), attempt_outcome::judged, verdict_status::incorrect_numerical);
  again = mind->plant("p", outside("a"), 0ns);
  CHECK_FALSE(again.accepted);
  REQUIRE(again.known);
  CHECK(again.earlier.status == verdict_status::incorrect_numerical);
  // By content, whatever it is called.
  auto renamed = outside("a");
  renamed.key = "agent/other";
  CHECK(mind->plant("p", renamed, 0ns).known);
  // Another problem has not seen it.
  CHECK(mind->plant("q", outside("a"), 0ns).accepted);
}

TEST_CASE_FIXTURE(planting_fixture, "who plants where nothing can be tried is told why") {
  CHECK(mind->plant("r", outside("a"), 0ns).reason == "the run has no problem 'r'");
  CHECK_FALSE(mind->plant("p", {}, 0ns).accepted);
  mind->drain("enough");
  CHECK(mind->plant("p", outside("a"), 0ns).reason == "nothing more is tried: enough");
  portfolio_config closed;
  start(closed);
  CHECK(mind->plant("p", outside("a"), 0ns).reason == "the run takes no candidates from outside");
}

TEST_CASE_FIXTURE(planting_fixture, "budgets hold for candidates from outside") {
  auto config = open_config();
  config.attempt_budget = 1;
  start(config);
  REQUIRE(mind->plant("p", outside("a"), 0ns).accepted);
  REQUIRE(mind->plant("p", outside("b"), 0ns).accepted);
  auto work = give();
  CHECK(next("w2").kind == decision_kind::idle);
  end(work);
  CHECK(next().kind == decision_kind::stop);
  CHECK_FALSE(mind->has_open("p", outside("b")));
  CHECK(
    mind->plant("p", outside("c"), 0ns).reason.find("budget of 1 attempts") != std::string::npos);
}

TEST_CASE_FIXTURE(planting_fixture, "too many in line are turned away") {
  auto config = open_config();
  config.plants_waiting_max = 2;
  start(config);
  CHECK(mind->plant("p", outside("a"), 0ns).accepted);
  CHECK(mind->plant("q", outside("b"), 0ns).accepted);
  CHECK(
    mind->plant("p", outside("c"), 0ns).reason == "2 candidates wait for their attempt already");
  give();
  CHECK(mind->plant("p", outside("c"), 0ns).accepted);
}

TEST_CASE_FIXTURE(
  planting_fixture, "a candidate whose attempt we broke is tried again before its planter hears") {
  REQUIRE(mind->plant("p", outside("a"), 0ns).accepted);
  for (int i = 0; i < 3; ++i) {
    CHECK(mind->has_open("p", outside("a")));
    end(give(), attempt_outcome::infrastructure);
  }
  CHECK_FALSE(mind->has_open("p", outside("a")));
  CHECK(mind->plant("p", outside("a"), 0ns).known);
  CHECK(mind->problems()[0].state == problem_state::open);
}

TEST_CASE_FIXTURE(planting_fixture, "a candidate can be withdrawn before its attempt, not after") {
  REQUIRE(mind->plant("p", outside("a"), 0ns).accepted);
  CHECK_FALSE(mind->withdraw("p", "hash-of-b"));
  CHECK_FALSE(mind->withdraw("r", "hash-of-a"));
  CHECK(mind->withdraw("p", "hash-of-a"));
  CHECK_FALSE(mind->has_open("p", outside("a")));
  CHECK(next().kind == decision_kind::idle);
  REQUIRE(mind->plant("p", outside("a"), 0ns).accepted);
  give();
  CHECK_FALSE(mind->withdraw("p", "hash-of-a"));
}

TEST_CASE_FIXTURE(
  planting_fixture, "after the close what is in line is tried, and then the run ends") {
  REQUIRE(mind->plant("p", outside("a"), 0ns).accepted);
  mind->close_planting();
  CHECK_FALSE(mind->plant("p", outside("b"), 0ns).accepted);
  CHECK(mind->problems()[1].state == problem_state::finished);
  CHECK_FALSE(mind->done());
  end(give());
  CHECK(mind->problems()[0].state == problem_state::finished);
  CHECK(next().kind == decision_kind::stop);
  CHECK(mind->done());
}

TEST_CASE_FIXTURE(planting_fixture, "a problem without a baseline refuses, and tells its reason") {
  mind.emplace(*portfolio::make(open_config(), {{"p", {}}}));
  prepared_problem broken;
  broken.problem = "p";
  broken.status = verdict_status::invalid_reference;
  broken.reason = "it raises";
  REQUIRE(mind->plant("p", outside("a"), 0ns).accepted);
  mind->on_ready(broken);
  CHECK_FALSE(mind->has_open("p", outside("a")));
  CHECK(mind->done());
}

TEST_CASE_FIXTURE(planting_fixture, "a log that is told again gives the same line") {
  REQUIRE(mind->plant("p", outside("a"), 0ns).accepted);
  REQUIRE(mind->plant("p", outside("b"), 0ns).accepted);
  auto work = give();
  const auto before = mind->durable_text();
  start(open_config());
  mind->plant_again("p", outside("a"));
  mind->plant_again("p", outside("b"));
  mind->plant_again("p", outside("b"));
  REQUIRE(mind->assign_again(work.id, "w", work.kind, "hash-of-a"));
  CHECK(mind->durable_text() == before);
}
