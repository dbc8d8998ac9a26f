#include "planning/portfolio.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace gristmill;
using namespace std::chrono_literals;

namespace {

candidate_ref make_candidate(const std::string& key) {
  candidate_ref c;
  c.hash = "hash-of-" + key;
  c.key = key;
  c.source = {"source-of-" + key, 1};
  c.plan = {"plan-of-" + key, 1};
  return c;
}

struct rerun_fixture {
  std::optional<portfolio> mind;

  rerun_fixture() { start({}); }

  void start(portfolio_config config, std::vector<portfolio_problem> problems = {{"p", {}}}) {
    mind.emplace(*portfolio::make(std::move(config), std::move(problems)));
  }

  void ready(const std::string& name = "p", bool has_bounds = true) {
    prepared_problem p;
    p.problem = name;
    p.status = verdict_status::passed;
    p.has_bounds = has_bounds;
    REQUIRE(mind->on_ready(p));
  }

  planner_decision next(const std::string& worker = "w1", std::chrono::nanoseconds now = 0ns) {
    return mind->next(worker, now);
  }
  assignment give(const std::string& worker = "w1") {
    auto d = next(worker);
    REQUIRE_MESSAGE(d.kind == decision_kind::assigned, d.reason);
    return d.work;
  }

  planner_note end(const assignment& work, const std::string& key,
    verdict_status status = verdict_status::passed, uint64_t objective = 1000,
    attempt_outcome outcome = attempt_outcome::judged) {
    attempt_summary s;
    s.id = work.id;
    s.kind = work.kind;
    s.outcome = outcome;
    s.candidate = work.given ? *work.given : make_candidate(key);
    s.status = status;
    s.objective_ns = status == verdict_status::passed ? objective : 0;
    s.gpu_ns = 10;
    return mind->on_finished(s, 0ns);
  }
  planner_note broken(const assignment& work) {
    return end(work, {}, verdict_status::infrastructure, 0, attempt_outcome::infrastructure);
  }

  /// A new attempt whose candidate fails.
  assignment failed(const std::string& key, const std::string& worker = "w1") {
    auto work = give(worker);
    if (!work.given)
      REQUIRE(mind->claim({work.id, key}).granted);
    REQUIRE(end(work, key, verdict_status::runtime_error).accepted);
    return work;
  }

  rerun_note rerun(
    const assignment& work, const std::string& key, std::chrono::nanoseconds now = 0ns) {
    return mind->on_rerun({work.id.problem, to_string(work.id), make_candidate(key).hash}, now);
  }

  problem_view view(const std::string& name = "p") {
    for (const auto& v : mind->problems())
      if (v.name == name)
        return v;
    FAIL("no such problem");
    return {};
  }
};

} // namespace

TEST_CASE_FIXTURE(rerun_fixture, "without a request for a re-run nothing is tried twice") {
  ready();
  failed("a");
  CHECK_FALSE(give().given);
}

TEST_CASE_FIXTURE(
  rerun_fixture, "a victim is tried again as it was, before anything new, and the log says why") {
  ready();
  auto first = failed("a");
  auto note = rerun(first, "a");
  CHECK_MESSAGE(note.accepted, note.reason);
  auto d = next();
  REQUIRE(d.kind == decision_kind::assigned);
  CHECK(d.reason.starts_with("re-run: its GPU was quarantined (attempt p/cuda/0); "));
  CHECK(d.work.id.ordinal == 1);
  CHECK(d.work.kind == first.kind);
  REQUIRE(d.work.given);
  CHECK(*d.work.given == make_candidate("a"));
  auto other = give("w2");
  CHECK_FALSE_MESSAGE(other.given, "one re-run, not two");
  REQUIRE(other.in_flight.size() == 1);
  CHECK_MESSAGE(other.in_flight[0] == "a", "nobody else proposes it");
}

TEST_CASE_FIXTURE(rerun_fixture, "the new verdict takes the place of the old one") {
  ready();
  auto first = failed("a");
  failed("b");
  rerun(first, "a");
  const auto given = give();
  auto note = end(given, "a", verdict_status::passed, 400);
  CHECK(note.accepted);
  CHECK(note.improved);
  CHECK(note.rerun_of == "p/cuda/0");
  CHECK(view().best.hash == "hash-of-a");
  CHECK(view().best_ns == 400);
  auto work = give();
  REQUIRE(work.history.size() == 2);
  CHECK(work.history[0].key == "a");
  CHECK(work.history[0].status == verdict_status::passed);
  CHECK(work.history[0].objective_ns == 400);
  CHECK(work.history[1].status == verdict_status::runtime_error);
  CHECK_MESSAGE(given.history[0].status == verdict_status::runtime_error,
    "what somebody was given does not change under his eyes");
  CHECK_FALSE_MESSAGE(mind->claim({work.id, "a"}).granted, "it stays known");
}

TEST_CASE_FIXTURE(rerun_fixture, "an ordinary attempt replaces no verdict") {
  ready();
  failed("a");
  auto work = give();
  CHECK(mind->claim({work.id, "b"}).granted);
  CHECK(end(work, "b").rerun_of.empty());
  CHECK(give().history.size() == 2);
}

TEST_CASE_FIXTURE(rerun_fixture, "many victims are tried again in the order they were named") {
  ready();
  std::vector<assignment> works;
  for (int i = 0; i < 20; ++i)
    works.push_back(failed(fmt::format("k{}", i)));
  for (int i = 0; i < 20; ++i)
    CHECK(rerun(works[static_cast<size_t>(i)], fmt::format("k{}", i)).accepted);
  for (int i = 0; i < 20; ++i) {
    auto work = give();
    REQUIRE(work.given);
    CHECK(work.given->key == fmt::format("k{}", i));
    end(work, {}, verdict_status::passed);
  }
  CHECK_FALSE(give().given);
}

TEST_CASE_FIXTURE(rerun_fixture, "a candidate is tried again at most once, whoever asks when") {
  ready();
  auto first = failed("a");
  CHECK(rerun(first, "a").accepted);
  CHECK_FALSE_MESSAGE(rerun(first, "a").accepted, "it waits");
  auto again = give();
  CHECK_FALSE_MESSAGE(rerun(first, "a").accepted, "it is in flight");
  CHECK_FALSE(rerun(again, "a").accepted);
  end(again, {}, verdict_status::runtime_error);
  CHECK_FALSE_MESSAGE(rerun(first, "a").accepted, "it has been tried");
  auto refused = rerun(again, "a");
  CHECK_FALSE(refused.accepted);
  CHECK(refused.reason.find("'hash-of-a' was named for one before") != std::string::npos);
  CHECK_FALSE(give().given);
}

TEST_CASE_FIXTURE(rerun_fixture, "what is unknown is not tried again, and the reason names it") {
  ready();
  auto first = failed("a");
  auto passed = give();
  mind->claim({passed.id, "b"});
  end(passed, "b");
  CHECK(
    mind->on_rerun({"q", "q/cuda/0", "hash-of-a"}, 0ns).reason.find("'q'") != std::string::npos);
  auto unknown = mind->on_rerun({"p", "p/cuda/77", "hash-of-a"}, 0ns);
  CHECK_FALSE(unknown.accepted);
  CHECK(unknown.reason.find("'p/cuda/77'") != std::string::npos);
  CHECK_FALSE(mind->on_rerun({"p", "p/cuda/0", "hash-of-z"}, 0ns).accepted);
  CHECK_FALSE(mind->on_rerun({"p", "p/cuda/0", ""}, 0ns).accepted);
  CHECK_FALSE(mind->on_rerun({"p", "", "hash-of-a"}, 0ns).accepted);
  CHECK_FALSE_MESSAGE(rerun(passed, "b").accepted, "it has passed");
  CHECK_MESSAGE(rerun(first, "a").accepted, "a refusal uses nothing up");
}

TEST_CASE_FIXTURE(
  rerun_fixture, "an attempt that is named before its verdict is followed up when it has failed") {
  for (bool passes : {false, true}) {
    CAPTURE(passes);
    start({});
    ready();
    auto work = give();
    mind->claim({work.id, "a"});
    CHECK(rerun(work, "a").accepted);
    CHECK_FALSE_MESSAGE(rerun(work, "a").accepted, "once is enough");
    CHECK_FALSE_MESSAGE(give("w2").given, "nothing before the verdict");
    end(work, "a", passes ? verdict_status::passed : verdict_status::timeout);
    auto after = give("w1");
    CHECK(static_cast<bool>(after.given) == !passes);
  }
}

TEST_CASE_FIXTURE(rerun_fixture, "a finished problem is opened for the re-run alone") {
  portfolio_config c;
  c.search = false;
  start(c, {{"p", {make_candidate("x")}}, {"q", {make_candidate("y")}}});
  ready("p");
  auto first = failed("x");
  CHECK(first.kind == attempt_kind::planted);
  CHECK(view().state == problem_state::finished);
  auto reason = view().reason;
  CHECK(rerun(first, "x").accepted);
  CHECK(view().state == problem_state::open);
  auto again = give();
  CHECK(again.kind == attempt_kind::planted);
  CHECK_MESSAGE(next("w2").kind == decision_kind::idle, "nothing else of it is open");
  CHECK(end(again, {}).problem_finished);
  CHECK(view().state == problem_state::finished);
  CHECK(view().reason == reason);
  CHECK(view().best.key == "x");
}

TEST_CASE_FIXTURE(rerun_fixture, "a problem that the house has given up is not searched again") {
  portfolio_config c;
  c.infrastructure_in_row_max = 1;
  c.infrastructure_retries = 0;
  start(c, {{"p", {make_candidate("x")}}, {"q", {}}});
  ready("p");
  auto first = failed("x");
  REQUIRE(broken(give()).problem_finished);
  auto reason = view().reason;
  CHECK(rerun(first, "x").accepted);
  auto again = give();
  CHECK(again.given);
  CHECK(next("w2").kind == decision_kind::idle);
  CHECK(end(again, {}, verdict_status::passed, 5).problem_finished);
  CHECK(view().reason == reason);
  CHECK(view().best_ns == 5);
}

TEST_CASE_FIXTURE(rerun_fixture, "failures of ours before the victim's verdict are forgiven too") {
  portfolio_config c;
  c.infrastructure_retries = 1;
  start(c, {{"p", {make_candidate("x")}}});
  ready();
  broken(give());
  auto first = failed("x");
  CHECK(rerun(first, "x").accepted);
  broken(give());
  CHECK(give().given);
}

TEST_CASE_FIXTURE(rerun_fixture, "a problem does not end while a re-run of it is outstanding") {
  portfolio_config c;
  c.search = false;
  start(c, {{"p", {make_candidate("x")}}});
  ready();
  auto work = give();
  CHECK(rerun(work, "x").accepted);
  CHECK_FALSE(end(work, {}, verdict_status::timeout).problem_finished);
  CHECK(mind->stop_reason().empty());
  CHECK(end(give(), {}).problem_finished);
  CHECK(mind->done());
}

TEST_CASE_FIXTURE(rerun_fixture, "a baseline that was a victim opens its problem again") {
  start({}, {{"p", {make_candidate("x")}}, {"q", {}}});
  ready("p", false);
  auto base = give();
  REQUIRE(base.kind == attempt_kind::baseline);
  mind->claim({base.id, "base"});
  end(base, "base", verdict_status::runtime_error);
  REQUIRE(view().state == problem_state::finished);
  CHECK(rerun(base, "base").accepted);
  CHECK(view().state == problem_state::baseline);
  auto again = give();
  CHECK(again.kind == attempt_kind::baseline);
  REQUIRE(again.given);
  CHECK(again.given->key == "base");
  SUBCASE("and when it passes, everything goes on") {
    end(again, {}, verdict_status::passed, 700);
    CHECK(view().state == problem_state::open);
    CHECK(view().best_ns == 700);
    CHECK(give().kind == attempt_kind::planted);
  }
  SUBCASE("when it fails, the problem is finished for good") {
    end(again, {}, verdict_status::runtime_error);
    CHECK(view().state == problem_state::finished);
    CHECK(view().reason.starts_with("baseline failed: "));
    CHECK_FALSE(rerun(again, "base").accepted);
  }
  SUBCASE("when the house breaks, it is tried again like every baseline") {
    CHECK_FALSE(broken(again).problem_finished);
    auto third = give();
    REQUIRE(third.given);
    CHECK(third.given->key == "base");
    CHECK(broken(third).problem_finished);
  }
}

TEST_CASE_FIXTURE(rerun_fixture, "a baseline that is named before its verdict ends nothing") {
  ready("p", false);
  auto base = give();
  mind->claim({base.id, "base"});
  CHECK(rerun(base, "base").accepted);
  CHECK_FALSE(end(base, "base", verdict_status::runtime_error).problem_finished);
  auto again = give();
  REQUIRE(again.given);
  end(again, {});
  CHECK(view().state == problem_state::open);
}

TEST_CASE_FIXTURE(
  rerun_fixture, "a re-run that our failure hits is tried again, then the old verdict stands") {
  portfolio_config c;
  c.infrastructure_retries = 1;
  start(c);
  ready();
  auto first = failed("a");
  rerun(first, "a");
  broken(give());
  auto again = give();
  REQUIRE(again.given);
  CHECK(mind->on_worker_lost("w1", 0ns).size() == 1);
  auto after = give();
  CHECK_FALSE(after.given);
  REQUIRE(after.history.size() == 1);
  CHECK(after.history[0].status == verdict_status::runtime_error);
}

TEST_CASE_FIXTURE(rerun_fixture, "a re-run that was abandoned waits again") {
  ready();
  rerun(failed("a"), "a");
  auto work = give();
  end(work, {}, verdict_status::not_checked, 0, attempt_outcome::abandoned);
  REQUIRE(give().given);
}

TEST_CASE_FIXTURE(rerun_fixture, "a re-run counts in the budgets and gets none of its own") {
  portfolio_config c;
  c.attempt_budget = 3;
  start(c);
  ready();
  auto a = failed("a");
  auto b = failed("b");
  CHECK(rerun(a, "a").accepted);
  CHECK(rerun(b, "b").accepted);
  auto again = give();
  CHECK_MESSAGE(next("w2").kind == decision_kind::idle, "the third attempt is given out already");
  end(again, {});
  CHECK_MESSAGE(next().kind == decision_kind::stop, "the second re-run finds the budget spent");
  CHECK(mind->done());
  CHECK(mind->snapshot().gpu_ns == 30);
}

TEST_CASE_FIXTURE(rerun_fixture, "after the end of the run nothing is tried again") {
  SUBCASE("drained") {
    ready();
    auto work = failed("a");
    mind->drain("interrupted");
    auto refused = rerun(work, "a");
    CHECK_FALSE(refused.accepted);
    CHECK(refused.reason == "no re-run, nothing more is given out: interrupted");
  }
  SUBCASE("drained before the verdict of the victim") {
    portfolio_config c;
    c.search = false;
    start(c, {{"p", {make_candidate("x")}}});
    ready();
    auto work = give();
    CHECK(rerun(work, "x").accepted);
    mind->drain("interrupted");
    CHECK(end(work, {}, verdict_status::runtime_error).problem_finished);
    CHECK(next().kind == decision_kind::stop);
  }
  SUBCASE("all problems are finished") {
    portfolio_config c;
    c.search = false;
    start(c, {{"p", {make_candidate("x")}}});
    ready();
    auto work = failed("x");
    CHECK_FALSE(rerun(work, "x").accepted);
  }
  SUBCASE("the wall-clock budget is spent, although nobody has asked since") {
    portfolio_config c;
    c.wall_budget = 10s;
    start(c);
    ready();
    auto work = failed("a");
    CHECK_FALSE(rerun(work, "a", 10s).accepted);
  }
  CHECK(mind->done());
}

TEST_CASE_FIXTURE(rerun_fixture, "the queue of victims is bounded, and room is used again") {
  portfolio_config c;
  c.reruns_waiting_max = 2;
  start(c);
  ready();
  auto a = failed("a");
  auto b = failed("b");
  auto d = failed("d");
  auto open = give("w1");
  mind->claim({open.id, "o"});
  CHECK(rerun(open, "o").accepted);
  CHECK(rerun(a, "a").accepted);
  auto full = rerun(b, "b");
  CHECK_FALSE(full.accepted);
  CHECK(full.reason.find("2 candidates wait") != std::string::npos);
  end(open, "o"); // Passed: needs no re-run.
  CHECK(rerun(b, "b").accepted);
  CHECK_FALSE(rerun(d, "d").accepted);
}

TEST_CASE_FIXTURE(rerun_fixture, "the oldest failures are forgotten beyond the bound") {
  for (uint32_t kept : {0u, 2u}) {
    CAPTURE(kept);
    portfolio_config c;
    c.failures_remembered_max = kept;
    start(c);
    ready();
    auto a = failed("a");
    auto b = failed("b");
    auto d = failed("d");
    CHECK_FALSE(rerun(a, "a").accepted);
    CHECK(rerun(b, "b").accepted == (kept == 2));
    CHECK(rerun(d, "d").accepted == (kept == 2));
  }
}
