#include "planning/portfolio.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace gristmill;
using namespace std::chrono_literals;

namespace {

candidate_ref make_candidate(const std::string& key) {
  candidate_ref c;
  c.hash = "hash-of-" + key;
  c.key = key;
  return c;
}

struct planner_fixture {
  std::optional<portfolio> mind;

  planner_fixture() { start({}, {{"p", {}}}); }

  void start(portfolio_config config, std::vector<portfolio_problem> problems) {
    mind.emplace(*portfolio::make(std::move(config), std::move(problems)));
  }

  void ready(const std::string& name = "p", bool has_bounds = false) {
    prepared_problem p;
    p.problem = name;
    p.status = verdict_status::passed;
    p.has_bounds = has_bounds;
    p.graph = {"graph", 5};
    REQUIRE(mind->on_ready(p));
  }

  assignment give(const std::string& worker = "w1", std::chrono::nanoseconds now = 0ns) {
    auto d = mind->next(worker, now);
    REQUIRE_MESSAGE(d.kind == decision_kind::assigned, d.reason);
    CHECK_FALSE(d.reason.empty());
    return d.work;
  }

  decision_kind kind_of_next(const std::string& worker = "w9") {
    return mind->next(worker, 0ns).kind;
  }

  attempt_summary summary(const assignment& work, attempt_outcome outcome, const std::string& key,
    uint64_t objective = 1000) {
    attempt_summary s;
    s.id = work.id;
    s.kind = work.kind;
    s.outcome = outcome;
    if (!key.empty())
      s.candidate = make_candidate(key);
    if (outcome == attempt_outcome::judged) {
      s.status = verdict_status::passed;
      s.objective_ns = objective;
      s.speedup = 1000.0 / static_cast<double>(objective);
    }
    s.gpu_ns = 10;
    s.reason = "why";
    return s;
  }

  planner_note end(const assignment& work, attempt_outcome outcome, const std::string& key,
    uint64_t objective = 1000) {
    if (!key.empty())
      mind->claim({work.id, key});
    return mind->on_finished(summary(work, outcome, key, objective), 0ns);
  }

  /// A problem whose baseline has passed with 1000 ns.
  void open(const std::string& name = "p") {
    ready(name);
    auto work = give("w1");
    REQUIRE(work.id.problem == name);
    REQUIRE(work.kind == attempt_kind::baseline);
    REQUIRE(end(work, attempt_outcome::judged, "base").accepted);
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

TEST_CASE("a portfolio needs problems with names of their own") {
  CHECK(portfolio::make({}, {}).error().code == errc::invalid_input);
  CHECK_FALSE(portfolio::make({}, {{"", {}}}));
  auto twice = portfolio::make({}, {{"p", {}}, {"p", {}}});
  REQUIRE_FALSE(twice);
  CHECK(twice.error().what.find("'p'") != std::string::npos);
  CHECK_FALSE(portfolio::make({}, {{"p", {make_candidate("a"), make_candidate("a")}}}));
}

TEST_CASE_FIXTURE(planner_fixture, "nothing is given out before a problem is prepared") {
  CHECK(kind_of_next() == decision_kind::idle);
  ready();
  CHECK(kind_of_next() == decision_kind::assigned);
}

TEST_CASE_FIXTURE(planner_fixture, "a problem that cannot be prepared ends with the reason") {
  prepared_problem p;
  p.problem = "p";
  p.status = verdict_status::invalid_reference;
  p.reason = "division by zero";
  CHECK(mind->on_ready(p));
  CHECK(view().state == problem_state::finished);
  CHECK(view().reason.find("INVALID_REFERENCE: division by zero") != std::string::npos);
  CHECK(kind_of_next() == decision_kind::stop);
  CHECK(mind->done());
  // Too late, and of somebody unknown.
  CHECK_FALSE(mind->on_ready(p));
  p.problem = "q";
  CHECK_FALSE(mind->on_ready(p));
}

TEST_CASE_FIXTURE(planner_fixture, "the baseline comes first, as ordinal 0 and alone") {
  ready();
  auto work = give();
  CHECK(work.kind == attempt_kind::baseline);
  CHECK(work.id == attempt_id{"p", "cuda", 0});
  CHECK(work.device_model == "h200");
  CHECK(work.graph.sha256 == "graph");
  CHECK_FALSE(work.given);
  CHECK(kind_of_next() == decision_kind::idle);
  end(work, attempt_outcome::judged, "base");
  CHECK(give("w2").kind == attempt_kind::search);
  CHECK(give("w3").id.ordinal == 2);
}

TEST_CASE_FIXTURE(planner_fixture, "with bounds from outside no baseline is measured") {
  ready("p", true);
  CHECK(give().kind == attempt_kind::search);
}

TEST_CASE_FIXTURE(planner_fixture, "a baseline that fails by infrastructure is tried once more") {
  ready();
  CHECK_FALSE(end(give(), attempt_outcome::infrastructure, "base").problem_finished);
  auto again = give();
  CHECK(again.kind == attempt_kind::baseline);
  CHECK(again.id.ordinal == 1);
  // Its key is free again.
  CHECK(mind->claim({again.id, "base"}).granted);
  CHECK(end(again, attempt_outcome::infrastructure, "base").problem_finished);
  CHECK(view().reason.starts_with("baseline failed: "));
  CHECK(kind_of_next() == decision_kind::stop);
}

TEST_CASE_FIXTURE(planner_fixture, "shares by attempts do not look at the time under lease") {
  for (bool by_attempts : {false, true}) {
    CAPTURE(by_attempts);
    portfolio_config c;
    c.share_by_attempts = by_attempts;
    start(c, {{"p", {}}, {"q", {}}});
    ready("p", true);
    ready("q", true);
    // Both have one attempt; that of "p" took longer.
    for (uint64_t gpu_ns : {1000, 1}) {
      auto work = give("w1");
      mind->claim({work.id, "key"});
      auto s = summary(work, attempt_outcome::judged, "key");
      s.gpu_ns = gpu_ns;
      REQUIRE(mind->on_finished(s, 0ns).accepted);
    }
    CHECK(give("w1").id.problem == (by_attempts ? "p" : "q"));
  }
}

TEST_CASE_FIXTURE(
  planner_fixture, "a problem that is being prepared keeps its turn when asked to") {
  for (bool wait : {false, true}) {
    CAPTURE(wait);
    portfolio_config c;
    c.wait_for_turn = wait;
    start(c, {{"p", {}}, {"q", {}}});
    ready("q", true);
    CHECK(kind_of_next() == (wait ? decision_kind::idle : decision_kind::assigned));
    if (!wait)
      continue;
    ready("p", true);
    CHECK(give("w1").id.problem == "p");
  }
}

TEST_CASE_FIXTURE(planner_fixture, "a problem that no template fits ends as no candidate") {
  ready();
  auto s = summary(give(), attempt_outcome::no_candidate, "");
  s.reason = "operator 'mm' belongs to no template family yet";
  CHECK(mind->on_finished(s, 0ns).problem_finished);
  CHECK(view().reason == "no candidate: operator 'mm' belongs to no template family yet");
  CHECK(kind_of_next() == decision_kind::stop);
}

TEST_CASE("what was given is judged although no plain kernel fits the problem") {
  auto made = portfolio::make({}, {{"p", {make_candidate("mine")}}});
  REQUIRE(made);
  prepared_problem prepared;
  prepared.problem = "p";
  prepared.status = verdict_status::passed;
  REQUIRE(made->on_ready(prepared));
  auto base = made->next("w", 0ns).work;
  REQUIRE(base.kind == attempt_kind::baseline);
  attempt_summary s;
  s.id = base.id;
  s.kind = attempt_kind::baseline;
  s.worker = "w";
  s.outcome = attempt_outcome::no_candidate;
  CHECK_FALSE(made->on_finished(s, 0ns).problem_finished);
  auto mine = made->next("w", 0ns).work;
  CHECK(mine.kind == attempt_kind::planted);
  CHECK(mine.given);
  s.id = mine.id;
  s.kind = attempt_kind::planted;
  s.outcome = attempt_outcome::judged;
  s.status = verdict_status::passed;
  s.candidate = *mine.given;
  s.objective_ns = 5;
  CHECK(made->on_finished(s, 0ns).problem_finished);
  CHECK(made->next("w", 0ns).kind == decision_kind::stop);
}

TEST_CASE_FIXTURE(planner_fixture, "a baseline that fails by itself ends the problem at once") {
  ready();
  auto s = summary(give(), attempt_outcome::judged, "base");
  s.status = verdict_status::incorrect_numerical;
  auto note = mind->on_finished(s, 0ns);
  CHECK(note.problem_finished);
  CHECK(view().reason == "baseline failed: INCORRECT_NUMERICAL: why");
  CHECK(mind->snapshot().problems_passed == 0);
}

TEST_CASE_FIXTURE(planner_fixture, "a problem that no template fits ends with the baseline") {
  ready();
  CHECK(end(give(), attempt_outcome::no_candidate, "").problem_finished);
  CHECK(view().reason.find("no candidate") != std::string::npos);
}

TEST_CASE_FIXTURE(planner_fixture, "an assignment carries what is known and what is in flight") {
  open();
  auto a = give("w1");
  REQUIRE(mind->claim({a.id, "a"}).granted);
  auto b = give("w2");
  REQUIRE(b.history.size() == 1);
  CHECK(b.history[0].key == "base");
  CHECK(b.history[0].objective_ns == 1000);
  CHECK(b.in_flight == std::vector<std::string>{"a"});
  end(a, attempt_outcome::judged, "a", 500);
  auto c = give("w1");
  CHECK(c.history.size() == 2);
  CHECK(c.history[1].key == "a");
  CHECK(c.in_flight.empty());
  CHECK_MESSAGE(&c.history[0] == &b.history[0], "the trials are shared, not copied");
}

TEST_CASE_FIXTURE(planner_fixture, "a key is tried once: known and claimed ones are refused") {
  open();
  auto a = give("w1");
  auto b = give("w2");
  CHECK(mind->claim({a.id, "a"}).granted);
  CHECK(mind->claim({a.id, "a"}).granted);
  auto refused = mind->claim({b.id, "a"});
  CHECK_FALSE(refused.granted);
  CHECK(refused.taken == std::vector<std::string>{"a", "base"});
  CHECK_FALSE(mind->claim({b.id, "base"}).granted);
  CHECK_FALSE(mind->claim({b.id, ""}).granted);
  CHECK_FALSE(mind->claim({{"p", "cuda", 99}, "z"}).granted);
  CHECK(mind->claim({b.id, "b"}).granted);
  end(a, attempt_outcome::judged, "a");
  CHECK_FALSE(mind->claim({b.id, "a"}).granted);
}

TEST_CASE_FIXTURE(planner_fixture, "a summary counts once") {
  open();
  auto a = give();
  CHECK(end(a, attempt_outcome::judged, "a", 400).accepted);
  auto again = end(a, attempt_outcome::judged, "a", 300);
  CHECK_FALSE(again.accepted);
  CHECK_FALSE(again.reason.empty());
  CHECK(view().best_ns == 400);
  CHECK(mind->snapshot().attempts_finished == 2);
}

TEST_CASE_FIXTURE(planner_fixture, "the best passed candidate is the incumbent") {
  open();
  CHECK(view().best.key == "base");
  CHECK(double(mind->snapshot().geomean) == doctest::Approx(1));
  CHECK(end(give(), attempt_outcome::judged, "fast", 500).improved);
  CHECK_FALSE(end(give(), attempt_outcome::judged, "slow", 800).improved);
  CHECK_FALSE(end(give(), attempt_outcome::judged, "equal", 500).improved);
  auto wrong = summary(give(), attempt_outcome::judged, "wrong", 1);
  wrong.status = verdict_status::incorrect_numerical;
  CHECK_FALSE(mind->on_finished(wrong, 0ns).improved);
  // Passed, and its promotion found no gain: the smaller time was luck.
  auto lucky = summary(give(), attempt_outcome::judged, "lucky", 450);
  lucky.incumbent_stays = true;
  CHECK_FALSE(mind->on_finished(lucky, 0ns).improved);
  // Passed, but below its floor: it waits for an audit and leads nowhere.
  CHECK_FALSE(mind
                ->on_finished(
                  [&] {
                    auto s = summary(give(), attempt_outcome::judged, "suspicious");
                    s.objective_ns = 0;
                    return s;
                  }(),
                  0ns)
                .improved);
  CHECK(view().best.key == "fast");
  CHECK(double(mind->snapshot().geomean) == doctest::Approx(2));
  CHECK(mind->snapshot().problems_passed == 1);
}

TEST_CASE_FIXTURE(planner_fixture, "an infrastructure failure is retried twice and is no verdict") {
  open();
  end(give(), attempt_outcome::infrastructure, "a");
  for (int i = 0; i < 2; ++i) {
    auto again = give();
    REQUIRE(again.given);
    CHECK(again.given->key == "a");
    CHECK(again.kind == attempt_kind::search);
    CHECK(again.history.size() == 1);
    CHECK(mind->claim({again.id, "a"}).granted);
    end(again, attempt_outcome::infrastructure, "a");
  }
  // Three failures: the key is known, so that nobody proposes it again, but not as a verdict.
  auto next = give();
  CHECK_FALSE(next.given);
  REQUIRE(next.history.size() == 2);
  CHECK(next.history[1].key == "a");
  CHECK(next.history[1].status == verdict_status::infrastructure);
  CHECK_FALSE(mind->claim({next.id, "a"}).granted);
  CHECK(view().best.key == "base");
}

TEST_CASE_FIXTURE(planner_fixture, "a candidate that waits for its second try is nobody else's") {
  open();
  auto other = give("w2");
  end(give("w1"), attempt_outcome::infrastructure, "a");
  CHECK_FALSE(mind->claim({other.id, "a"}).granted);
  end(give("w1"), attempt_outcome::judged, "a", 300);
  CHECK(view().best.key == "a");
}

TEST_CASE_FIXTURE(planner_fixture, "a summary that calls our failure a verdict is not believed") {
  open();
  auto s = summary(give(), attempt_outcome::judged, "a");
  s.status = verdict_status::infrastructure;
  mind->on_finished(s, 0ns);
  CHECK(give().given->key == "a");
}

TEST_CASE_FIXTURE(planner_fixture, "the attempts of a lost worker end and their keys are free") {
  open();
  auto a = give("w1");
  auto b = give("w2");
  REQUIRE(mind->claim({a.id, "a"}).granted);
  auto lost = mind->on_worker_lost("w1", 0ns);
  CHECK(lost == std::vector<attempt_id>{a.id});
  CHECK(mind->on_worker_lost("w1", 0ns).empty());
  CHECK(mind->claim({b.id, "a"}).granted);
  CHECK_FALSE(end(a, attempt_outcome::judged, "a", 1).accepted);
  CHECK(view().best_ns == 1000);
  CHECK(give("w1").kind == attempt_kind::search);
}

TEST_CASE_FIXTURE(planner_fixture, "a lost worker's baseline is tried once more") {
  ready();
  give("w1");
  CHECK(mind->on_worker_lost("w1", 0ns).size() == 1);
  CHECK(give("w2").kind == attempt_kind::baseline);
  mind->on_worker_lost("w2", 0ns);
  CHECK(view().state == problem_state::finished);
}

TEST_CASE_FIXTURE(planner_fixture, "a problem where everything of ours fails is ended") {
  open();
  int attempts = 0;
  while (view().state == problem_state::open && attempts < 1000) {
    ++attempts;
    end(give(), attempt_outcome::infrastructure, "");
  }
  CHECK(attempts == 6);
  CHECK(view().reason.find("in a row") != std::string::npos);
  CHECK(view().best.key == "base");
}

TEST_CASE_FIXTURE(planner_fixture, "one broken part that fails every worker once ends nothing") {
  open();
  std::vector<assignment> all;
  for (int w = 0; w < 16; ++w)
    all.push_back(give(fmt::format("w{}", w)));
  for (size_t i = 0; i < all.size(); ++i)
    end(all[i], attempt_outcome::infrastructure, fmt::format("k{}", i));
  CHECK(view().state == problem_state::open);
}

TEST_CASE_FIXTURE(planner_fixture, "a problem ends when its proposer has nothing more") {
  open();
  auto note = end(give(), attempt_outcome::exhausted, "");
  CHECK(note.problem_finished);
  CHECK(view().reason == "exhausted: why");
  CHECK(mind->stop_reason() == "all problems are finished");
  CHECK(mind->done());
}

TEST_CASE_FIXTURE(planner_fixture, "a proposer that did not know everything is asked again") {
  open();
  auto a = give("w1");
  auto b = give("w2");
  // It had nothing while another was in flight: not asked again before that one has ended …
  CHECK_FALSE(end(a, attempt_outcome::exhausted, "").problem_finished);
  CHECK(kind_of_next("w1") == decision_kind::idle);
  // … and then it is, because the verdict may open something.
  CHECK_FALSE(end(b, attempt_outcome::judged, "b").problem_finished);
  auto c = give("w1");
  CHECK(c.history.size() == 2);
  auto d = give("w2");
  end(c, attempt_outcome::judged, "c");
  // Its answer is older than that verdict.
  CHECK_FALSE(end(d, attempt_outcome::exhausted, "").problem_finished);
  CHECK(end(give("w2"), attempt_outcome::exhausted, "").problem_finished);
}

TEST_CASE_FIXTURE(planner_fixture, "a problem with a candidate to retry does not end before it") {
  open();
  auto a = give("w1");
  auto b = give("w2");
  end(a, attempt_outcome::infrastructure, "a");
  CHECK_FALSE(end(b, attempt_outcome::no_candidate, "").problem_finished);
  auto again = give("w1");
  CHECK(again.given->key == "a");
  CHECK(end(again, attempt_outcome::judged, "a").problem_finished);
}

TEST_CASE_FIXTURE(planner_fixture, "given candidates are tried in order before any search") {
  start({}, {{"p", {make_candidate("x"), make_candidate("y")}}});
  open();
  auto x = give("w1");
  CHECK(x.kind == attempt_kind::planted);
  CHECK(x.given->key == "x");
  auto y = give("w2");
  CHECK(y.given->key == "y");
  auto search = give("w3");
  CHECK(search.kind == attempt_kind::search);
  CHECK_FALSE(mind->claim({search.id, "x"}).granted);
}

TEST_CASE_FIXTURE(
  planner_fixture, "with the search off a problem ends after its given candidates") {
  portfolio_config c;
  c.search = false;
  start(c, {{"p", {make_candidate("x")}}, {"q", {}}});
  ready("p");
  ready("q");
  end(give("w1"), attempt_outcome::judged, "base");
  auto base_q = give("w1");
  CHECK(base_q.id.problem == "q");
  CHECK(end(base_q, attempt_outcome::judged, "base").problem_finished);
  auto x = give("w1");
  CHECK(x.kind == attempt_kind::planted);
  CHECK(kind_of_next() == decision_kind::idle);
  CHECK(end(x, attempt_outcome::judged, "x").problem_finished);
  CHECK(mind->done());
}

TEST_CASE_FIXTURE(planner_fixture, "a planted candidate that our failure hit stays a planted one") {
  portfolio_config c;
  c.search = false;
  start(c, {{"p", {make_candidate("x")}}});
  open();
  CHECK_FALSE(end(give(), attempt_outcome::infrastructure, "x").problem_finished);
  auto again = give();
  CHECK(again.kind == attempt_kind::planted);
  CHECK(end(again, attempt_outcome::judged, "x").problem_finished);
}

TEST_CASE_FIXTURE(planner_fixture, "the share is equal: fewest in flight, then least GPU time") {
  start({}, {{"a", {}}, {"b", {}}, {"c", {}}});
  for (const char* name : {"a", "b", "c"})
    ready(name, true);
  auto a = give("w1");
  auto b = give("w2");
  auto c = give("w3");
  CHECK(a.id.problem == "a");
  CHECK(b.id.problem == "b");
  CHECK(c.id.problem == "c");
  auto costs = [&](const assignment& work, const std::string& key, uint64_t gpu_ns) {
    auto s = summary(work, attempt_outcome::judged, key);
    s.gpu_ns = gpu_ns;
    mind->on_finished(s, 0ns);
  };
  costs(a, "1", 500);
  costs(b, "1", 100);
  // a and b have none in flight, b has used less; then a; then all have one.
  CHECK(give("w1").id.problem == "b");
  CHECK(give("w2").id.problem == "a");
  CHECK(give("w4").id.problem == "c");
}

TEST_CASE_FIXTURE(planner_fixture, "a worker that still has an attempt gets no second one") {
  open();
  give("w1");
  CHECK(kind_of_next("w1") == decision_kind::idle);
}

TEST_CASE_FIXTURE(
  planner_fixture, "the attempt budget counts verdicts, not baselines or failures") {
  portfolio_config c;
  c.attempt_budget = 2;
  start(c, {{"p", {}}});
  open();
  auto a = give("w1");
  auto b = give("w2");
  // Two are in flight: a third would be one too many, if both reach a verdict.
  CHECK(kind_of_next("w3") == decision_kind::idle);
  end(a, attempt_outcome::infrastructure, "a");
  auto again = give("w3");
  end(b, attempt_outcome::judged, "b");
  CHECK(kind_of_next("w1") == decision_kind::idle);
  end(again, attempt_outcome::judged, "a");
  CHECK(kind_of_next("w1") == decision_kind::stop);
  CHECK(mind->stop_reason().find("2 attempts") != std::string::npos);
  CHECK(mind->done());
}

TEST_CASE_FIXTURE(planner_fixture, "the wall-clock and the GPU budget stop the giving out") {
  portfolio_config c;
  c.wall_budget = 60s;
  start(c, {{"p", {}}});
  ready();
  CHECK(mind->next("w1", 59s).kind == decision_kind::assigned);
  CHECK(mind->next("w2", 60s).kind == decision_kind::stop);
  CHECK(mind->stop_reason().find("60 s") != std::string::npos);
  CHECK_FALSE(mind->done());
  portfolio_config g;
  g.gpu_budget_ns = 20;
  start(g, {{"p", {}}});
  open();
  end(give(), attempt_outcome::judged, "a");
  CHECK(kind_of_next() == decision_kind::stop);
  CHECK(mind->stop_reason().find("GPU budget") != std::string::npos);
}

TEST_CASE_FIXTURE(
  planner_fixture, "draining gives out nothing more and ends with the last attempt") {
  open();
  auto a = give();
  mind->drain("the user wants to stop");
  mind->drain("a second reason");
  CHECK(mind->next("w2", 0ns).kind == decision_kind::stop);
  CHECK(mind->next("w2", 0ns).reason == "the user wants to stop");
  CHECK_FALSE(mind->done());
  CHECK(end(a, attempt_outcome::judged, "a", 100).improved);
  CHECK(mind->done());
  CHECK(mind->snapshot().finished);
  CHECK(mind->snapshot().stop_reason == "the user wants to stop");
}

TEST_CASE_FIXTURE(planner_fixture, "an abandoned attempt frees its key and counts for nothing") {
  start({}, {{"p", {make_candidate("x")}}});
  open();
  auto x = give();
  end(x, attempt_outcome::abandoned, "x");
  auto again = give();
  CHECK(again.given->key == "x");
  CHECK(again.history.size() == 1);
}

TEST_CASE_FIXTURE(planner_fixture, "an attempt's seed depends on the run's seed and its id alone") {
  auto seed_of = [&](uint64_t seed, const std::string& problem) {
    portfolio_config c;
    c.seed = seed;
    start(c, {{problem, {}}});
    ready(problem, true);
    return give().seed;
  };
  auto first = seed_of(1, "p");
  CHECK(first == seed_of(1, "p"));
  CHECK(first != seed_of(2, "p"));
  CHECK(first != seed_of(1, "q"));
  CHECK(seed_of(0, "p") != 0);
}

TEST_CASE_FIXTURE(planner_fixture, "a snapshot counts problems, attempts and GPU time") {
  start({}, {{"p", {}}, {"q", {}}});
  open();
  auto work = give("w1");
  auto s = mind->snapshot();
  CHECK(s.problems_total == 2);
  CHECK(s.problems_finished == 0);
  CHECK(s.problems_passed == 1);
  CHECK(s.attempts_finished == 1);
  CHECK(s.attempts_in_flight == 1);
  CHECK(s.gpu_ns == 10);
  CHECK_FALSE(s.finished);
  end(work, attempt_outcome::judged, "a");
  CHECK(mind->snapshot().gpu_ns == 20);
}

TEST_CASE_FIXTURE(
  planner_fixture, "an attempt without a candidate is used up, and the next may fare better") {
  start({.attempt_budget = 2}, {{"p", {}}});
  open();
  end(give(), attempt_outcome::unproposed, "");
  auto second = give();
  CHECK(end(second, attempt_outcome::judged, "a", 900).improved);
  CHECK(kind_of_next() == decision_kind::stop);
}

TEST_CASE_FIXTURE(
  planner_fixture, "attempts in a row without a candidate end the problem with the reason") {
  portfolio_config config;
  config.unproposed_in_row_max = 3;
  start(config, {{"p", {}}});
  open();
  end(give(), attempt_outcome::unproposed, "");
  end(give(), attempt_outcome::unproposed, "");
  end(give(), attempt_outcome::judged, "a", 900);
  for (int i = 0; i < 2; ++i)
    CHECK_FALSE(end(give(), attempt_outcome::unproposed, "").problem_finished);
  auto note = end(give(), attempt_outcome::unproposed, "");
  CHECK(note.problem_finished);
  CHECK(note.reason == "3 attempts in a row brought no candidate, the last: why");
}

TEST_CASE_FIXTURE(
  planner_fixture, "workers that fail together need a longer row to end a problem") {
  portfolio_config config;
  config.unproposed_in_row_max = 2;
  start(config, {{"p", {}}});
  open();
  auto a = give("w1");
  auto b = give("w2");
  end(a, attempt_outcome::unproposed, "");
  CHECK_FALSE(end(b, attempt_outcome::unproposed, "").problem_finished);
  end(give("w1"), attempt_outcome::unproposed, "");
  CHECK(end(give("w1"), attempt_outcome::unproposed, "").problem_finished);
}

TEST_CASE_FIXTURE(
  planner_fixture, "a baseline that nobody proposes is tried again and then given up") {
  ready();
  auto first = give();
  REQUIRE(first.kind == attempt_kind::baseline);
  CHECK_FALSE(end(first, attempt_outcome::unproposed, "").problem_finished);
  CHECK(end(give(), attempt_outcome::unproposed, "").problem_finished);
}
