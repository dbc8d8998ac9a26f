#include "actors/run_history.hpp"

#include "actors/llm_history.hpp"
#include "actors/run_events.hpp"
#include "journal/log_check.hpp"
#include "planning/allocation/allocation_text.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <functional>
#include <set>

using namespace gristmill;
using namespace std::chrono_literals;
using nlohmann::json;

namespace {

candidate_ref candidate(const std::string& key) {
  candidate_ref c;
  c.key = key;
  c.hash = "hash of " + key;
  c.source = {std::string(64, 'a'), 10};
  c.plan = {std::string(64, 'b'), 20};
  c.hypothesis = "tests " + key;
  return c;
}

portfolio_config config_of(const char* allocation) {
  portfolio_config config;
  config.seed = 7;
  config.share_by_attempts = true;
  config.allocation = *allocation_from_text(allocation);
  return config;
}

const char* allocation_of(uint64_t seed) {
  constexpr const char* all[] = {"equal", "rebalance", "floor(0.25, asha(first=2))", "ucb"};
  return all[seed % 4];
}

std::vector<portfolio_problem> three_problems() {
  return {{"a", {candidate("file/x"), candidate("file/y")}}, {"b", {}}, {"c/d", {}}};
}

/// A planner, its workers, scorer and broker as far as the log shows them, driven by a seed. Every
/// fact is an event; `stop_after` events the process is killed.
class world {
public:
  world(uint64_t seed, size_t stop_after)
    : random_(seed), stop_after_(stop_after),
      mind_(std::move(*portfolio::make(config_of(allocation_of(seed)), three_problems()))) {
    events.push_back({.seq = 1, .incarnation = 1, .kind = "run_started"});
    run();
  }

  /// What must have survived the end: verdicts on disk are counted, the rest is cut off.
  std::string expected() {
    for (const auto& [attempt, summary] : judged_)
      mind_.on_finished(summary, 0ns);
    for (const auto& id : mind_.in_flight())
      mind_.on_interrupted(id, gpu_ns_[to_string(id)], 0ns);
    return mind_.durable_text();
  }

  std::vector<event> events;

private:
  bool dead() const { return events.size() >= stop_after_; }

  void log(event e) {
    if (dead())
      return;
    e.t = std::chrono::nanoseconds{static_cast<int64_t>(events.size()) * 1000};
    e.seq = events.size() + 1;
    e.incarnation = 1;
    events.push_back(std::move(e));
  }

  uint64_t draw(uint64_t n) {
    random_ += 0x9e3779b97f4a7c15ull;
    auto z = random_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return (z ^ (z >> 31)) % n;
  }

  void run() {
    for (const auto* name : {"a", "b", "c/d"}) {
      if (dead())
        return;
      prepared_problem ready;
      ready.problem = name;
      ready.status = verdict_status::passed;
      ready.graph = {std::string(64, 'c'), 5};
      log(prepared_event(ready));
      mind_.on_ready(ready);
      note_finished();
    }
    for (int step = 0; step < 60 && !dead(); ++step)
      one_step();
  }

  void one_step() {
    auto worker = fmt::format("worker-{}", draw(3));
    if (!busy_.contains(worker)) {
      assign(worker);
    } else if (draw(12) == 0) {
      auto id = busy_.at(worker);
      busy_.erase(worker);
      mind_.on_worker_lost(worker, 0ns);
      log(lost_event(id, worker));
      note_finished();
    } else {
      finish(worker);
    }
  }

  void assign(const std::string& worker) {
    auto decision = mind_.next(worker, 0ns);
    if (decision.kind != decision_kind::assigned)
      return;
    work_[worker] = decision.work;
    busy_[worker] = decision.work.id;
    log(assigned_event(decision, worker));
    if (dead())
      return;
    if (decision.work.given)
      return;
    claim_request claim{decision.work.id, fmt::format("key-{}", draw(1000))};
    if (decision.work.kind == attempt_kind::search && mind_.claim(claim).granted) {
      keys_[worker] = claim.key;
      log(claimed_event(claim));
    }
  }

  void finish(const std::string& worker) {
    auto work = work_.at(worker);
    attempt_summary s;
    s.id = work.id;
    s.kind = work.kind;
    s.worker = worker;
    s.outcome = draw(6) == 0 ? attempt_outcome::infrastructure : attempt_outcome::judged;
    s.candidate = work.given ? *work.given
      : work.kind == attempt_kind::baseline
      ? candidate("plain")
      : candidate(keys_.contains(worker) ? keys_.at(worker) : "odd");
    s.effort = work.kind == attempt_kind::search && draw(3) == 0 ? attempt_effort::probe
                                                                 : attempt_effort::full;
    s.note = "note of " + s.candidate.key;
    s.reason = "because";
    lease(s, worker);
    if (dead())
      return;
    if (s.outcome == attempt_outcome::judged) {
      s.status = draw(4) == 0 ? verdict_status::incorrect_numerical : verdict_status::passed;
      if (s.status == verdict_status::passed) {
        s.objective_ns = 1000 + draw(1000);
        s.speedup = 1.0 / 3.0;
        s.floor_share = 0.1;
        s.times = {{"u1", s.objective_ns}, {"u2", 7}};
      }
      log(verdict_event(s));
      judged_[to_string(s.id)] = s;
      if (dead())
        return;
    }
    auto note = mind_.on_finished(s, 0ns);
    judged_.erase(to_string(s.id));
    busy_.erase(worker);
    keys_.erase(worker);
    log(finished_event(s, note));
    note_finished();
  }

  void lease(attempt_summary& s, const std::string&) {
    event grant{.kind = "lease_grant",
      .problem = s.id.problem,
      .attempt = to_string(s.id),
      .gpu = "mock:h200#0",
      .token = ++token_};
    log(grant);
    if (dead()) {
      gpu_ns_[to_string(s.id)] = 0;
      return;
    }
    auto from = events.back().t;
    grant.kind = "lease_release";
    grant.data = R"({"held_ns":1000})";
    log(grant);
    s.gpu_ns = static_cast<uint64_t>((events.back().t - from).count());
    gpu_ns_[to_string(s.id)] = s.gpu_ns;
  }

  static event verdict_event(const attempt_summary& s) {
    json data{{"kind", to_string(s.kind)}, {"effort", to_string(s.effort)},
      {"status", to_string(s.status)}, {"origin", "MODELLED"}, {"objective_ns", s.objective_ns},
      {"speedup", double(s.speedup)}, {"sol_score", 0.0}, {"floor_share", double(s.floor_share)},
      {"held_ns", s.gpu_ns}};
    add_candidate(data, s.candidate);
    data["workloads"] = json::array();
    for (const auto& t : s.times)
      data["workloads"].push_back({{"uuid", t.uuid}, {"time_ns", t.ns}, {"floor_ns", 1}});
    return {.kind = s.effort == attempt_effort::full ? "verdict" : "probe_verdict",
      .problem = s.id.problem,
      .attempt = to_string(s.id),
      .candidate = s.candidate.hash,
      .reason = s.reason,
      .data = text_of(data)};
  }

  void note_finished() {
    for (const auto& p : mind_.take_finished())
      log(problem_finished_event(p));
  }

  uint64_t random_;
  size_t stop_after_;
  portfolio mind_;
  std::map<std::string, attempt_id> busy_;
  std::map<std::string, assignment> work_;
  std::map<std::string, std::string> keys_;
  std::map<std::string, attempt_summary> judged_;
  std::map<std::string, uint64_t> gpu_ns_;
  uint64_t token_ = 0;
};

/// Of the log of a process that wrote its closing events and goes on.
std::vector<event> continued(std::vector<event> events, const restored_run& run) {
  for (auto e : run.closing) {
    e.seq = events.size() + 1;
    e.incarnation = 2;
    events.push_back(std::move(e));
  }
  return events;
}

} // namespace

TEST_CASE("at every prefix of a log the restored portfolio is the one that lived through it") {
  size_t prefixes = 0;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    auto whole = world(seed, 10'000).events.size();
    REQUIRE(whole > 60);
    for (size_t n = 1; n <= whole; ++n) {
      world killed(seed, n);
      REQUIRE(killed.events.size() == n);
      auto restored = restore_run(config_of(allocation_of(seed)), three_problems(), killed.events);
      REQUIRE_MESSAGE(restored, restored.error().what);
      INFO("seed " << seed << ", prefix " << n << " after " << killed.events.back().kind);
      REQUIRE(restored->mind.durable_text() == killed.expected());
      ++prefixes;
    }
  }
  MESSAGE(prefixes << " prefixes");
}

TEST_CASE("a log with its own closing restores to the same run and has nothing left to close") {
  for (uint64_t seed = 1; seed <= 4; ++seed)
    for (size_t n = 1; n < 150; n += 7) {
      world killed(seed, n);
      auto once = restore_run(config_of(allocation_of(seed)), three_problems(), killed.events);
      REQUIRE(once);
      auto twice = restore_run(
        config_of(allocation_of(seed)), three_problems(), continued(killed.events, *once));
      REQUIRE_MESSAGE(twice, twice.error().what);
      CHECK(twice->closing.empty());
      CHECK(twice->mind.durable_text() == once->mind.durable_text());
    }
}

TEST_CASE("closing closes every lease and every attempt exactly once") {
  for (size_t n = 1; n < 150; n += 5) {
    world killed(3, n);
    auto restored = restore_run(config_of(allocation_of(3)), three_problems(), killed.events);
    REQUIRE(restored);
    auto events = continued(killed.events, *restored);
    events.push_back({.seq = events.size() + 1,
      .incarnation = 2,
      .kind = "run_ended",
      .data = R"({"clean":true})"});
    auto found = check_log(events);
    for (const auto& f : found.faults)
      FAIL_CHECK("event " << f.seq << ": " << f.what);
    CHECK(found.open_leases == 0);
    CHECK(found.open_attempts == 0);
  }
}

TEST_CASE(
  "what models have cost is restored, and a call that was cut off is held once and for all") {
  world killed(2, 40);
  auto record = [](uint64_t id) {
    try_record r;
    r.id = id;
    r.problem = "a";
    r.agent = "w";
    r.reserved.nano_usd = 900;
    r.reserved.tokens = 90;
    r.reserved.calls = 1;
    return r;
  };
  auto ended = record(1);
  ended.spent.nano_usd = 500;
  ended.spent.calls = 1;
  auto events = killed.events;
  for (auto e : {sent_event(record(1)), call_event(ended), sent_event(record(2))}) {
    e.seq = events.size() + 1;
    e.t = events.back().t;
    events.push_back(std::move(e));
  }
  auto once = restore_run(config_of("equal"), three_problems(), events);
  REQUIRE_MESSAGE(once, once.error().what);
  REQUIRE(once->models.spent.size() == 1);
  const auto& account = once->models.spent[0];
  CHECK(account.problem == "a");
  CHECK(account.spent.nano_usd == 500);
  CHECK(account.spent.calls == 2);
  CHECK(account.held.nano_usd == 900);
  CHECK(account.last_try == 2);
  CHECK(std::count_if(once->closing.begin(), once->closing.end(), [](const event& e) {
    return e.kind == "llm_call";
  }) == 1);
  auto twice = restore_run(config_of("equal"), three_problems(), continued(events, *once));
  REQUIRE_MESSAGE(twice, twice.error().what);
  CHECK(twice->closing.empty());
  REQUIRE(twice->models.spent.size() == 1);
  CHECK(twice->models.spent[0].spent == account.spent);
  CHECK(twice->models.spent[0].held == account.held);
  // The rest of the run is as if no model had been asked.
  auto without = restore_run(config_of("equal"), three_problems(), killed.events);
  REQUIRE(without);
  CHECK(without->mind.durable_text() == once->mind.durable_text());
}

TEST_CASE("a resumed problem waits for its inputs, then goes on") {
  world killed(2, 40);
  auto restored = restore_run(config_of("equal"), three_problems(), killed.events);
  REQUIRE(restored);
  auto& mind = restored->mind;
  CHECK(mind.next("w", 0ns).kind == decision_kind::idle);
  prepared_problem ready;
  ready.problem = "a";
  ready.status = verdict_status::passed;
  CHECK(mind.on_ready(ready));
  CHECK(mind.next("w", 0ns).work.id.problem == "a");
}

TEST_CASE("a verdict whose attempt the planner had not told of yet is counted once") {
  world calm(2, 10'000);
  auto cut = calm.events;
  // The planner's own lines came too late: everything of its last attempts is lost, the scorer's
  // verdict is not.
  event verdict;
  for (size_t i = cut.size(); i-- > 0;)
    if (cut[i].kind == "verdict" && cut[i].problem == "a") {
      verdict = cut[i];
      cut.resize(i);
      break;
    }
  std::erase_if(cut, [&](const event& e) { return e.attempt == verdict.attempt; });
  cut.push_back(verdict);
  auto restored = restore_run(config_of("equal"), three_problems(), cut);
  REQUIRE_MESSAGE(restored, restored.error().what);
  auto text = restored->mind.durable_text();
  auto key = json::parse(verdict.data).at("key").get<std::string>();
  CHECK(text.find("known " + key) != std::string::npos);
  auto twice = restore_run(config_of("equal"), three_problems(), continued(cut, *restored));
  REQUIRE_MESSAGE(twice, twice.error().what);
  CHECK(twice->closing.empty());
  CHECK(twice->mind.durable_text() == text);
}

TEST_CASE("budgets go on: what was used counts, and a larger one opens the run again") {
  world calm(2, 10'000);
  auto config = config_of("equal");
  config.attempt_budget = 3;
  auto spent = restore_run(config, three_problems(), calm.events);
  REQUIRE(spent);
  CHECK(spent->mind.stop_reason_at(0ns) == "the budget of 3 attempts is spent");
  config.attempt_budget = 1000;
  auto more = restore_run(config, three_problems(), calm.events);
  REQUIRE(more);
  CHECK(more->mind.stop_reason_at(0ns).empty());
  config.wall_budget = 1ns;
  auto late = restore_run(config, three_problems(), calm.events);
  REQUIRE(late);
  CHECK(late->mind.stop_reason_at(late->used) == "the wall-clock budget of 1e-09 s is spent");
}

TEST_CASE("tokens of earlier starts are never given again, T_b and time are known") {
  world calm(2, 10'000);
  auto events = calm.events;
  events.push_back({.t = 1h, .kind = "token_block", .gpu = "mock:h200#1", .token = 2048});
  events.push_back({.t = 1h, .kind = "token_block", .gpu = "mock:h200#1", .token = 1024});
  auto restored = restore_run(config_of("equal"), three_problems(), events);
  REQUIRE(restored);
  CHECK(restored->token_floors == std::map<std::string, uint64_t>{{"mock:h200#1", 2048}});
  CHECK(restored->used == 1h);
  CHECK_FALSE(restored->baselines.empty());
}

TEST_CASE("a log that is not of this run is refused with its event") {
  world calm(2, 40);
  auto events = calm.events;
  for (auto& e : events)
    if (e.kind == "assigned" && e.problem == "b")
      e.attempt = "zz/cuda/0";
  auto other = restore_run(config_of("equal"), three_problems(), events);
  REQUIRE_FALSE(other);
  CHECK(other.error().what.find("(assigned): the run has no problem 'zz'") != std::string::npos);
  events = calm.events;
  for (auto& e : events)
    if (e.kind == "attempt_finished")
      e.data = R"({"kind":"search"})";
  auto broken = restore_run(config_of("equal"), three_problems(), events);
  REQUIRE_FALSE(broken);
  CHECK(broken.error().code == errc::invalid_input);
  CHECK(broken.error().what.find("(attempt_finished)") != std::string::npos);
}

TEST_CASE("a log of a version that kept too little says so") {
  event old{.seq = 1, .kind = "run_started", .data = R"({"seed":1})"};
  auto beginning = read_beginning(std::vector{old});
  REQUIRE_FALSE(beginning);
  CHECK(beginning.error().code == errc::unsupported);
  CHECK_FALSE(read_beginning(std::vector<event>{}));
}

TEST_CASE("names of attempts are read from the right, because names of problems may hold slashes") {
  auto id = attempt_id_from("c/d/cuda/12");
  REQUIRE(id);
  CHECK(*id == attempt_id{"c/d", "cuda", 12});
  for (const char* text :
    {"", "a", "a/b", "a/b/", "/b/1", "a//1", "a/b/x", "a/b/-1", "a/b/1x", "a/b/99999999999"})
    CHECK_FALSE(attempt_id_from(text));
}

TEST_CASE("the newest insights of each problem are restored, and broken ones are told") {
  world killed(2, 40);
  auto events = killed.events;
  auto note = [&](const std::string& problem, const std::string& data) {
    event e{.kind = "insight", .problem = problem, .data = data};
    e.seq = events.size() + 1;
    e.t = events.back().t;
    events.push_back(std::move(e));
  };
  note("a", R"({"agent": "w", "lines": ["old"]})");
  note("b", R"({"agent": "w", "lines": ["of b"]})");
  note("a", R"({"agent": "w", "lines": ["new", "newer"]})");
  auto restored = restore_run(config_of("equal"), three_problems(), events);
  REQUIRE_MESSAGE(restored, restored.error().what);
  CHECK(restored->insights.at("a") == std::vector<std::string>{"new", "newer"});
  CHECK(restored->insights.at("b") == std::vector<std::string>{"of b"});
  note("a", R"({"lines": 3})");
  auto broken = restore_run(config_of("equal"), three_problems(), events);
  REQUIRE_FALSE(broken);
  CHECK(broken.error().what.find("data.lines") != std::string::npos);
}

namespace {

/// A scorer's event about a search candidate of problem "a".
event scored(const std::string& kind, uint32_t ordinal, uint64_t objective, json more = {}) {
  json data{{"kind", ordinal == 0 ? "baseline" : "search"}, {"effort", "full"},
    {"status", "PASSED"}, {"origin", "MEASURED"}, {"objective_ns", objective}, {"speedup", 1.0},
    {"sol_score", 0.5}, {"floor_share", 0.5}, {"held_ns", 10}, {"workloads", json::array()}};
  add_candidate(data, candidate("k" + std::to_string(ordinal)));
  if (more.is_object())
    data.update(more);
  return {.kind = kind,
    .problem = "a",
    .attempt = "a/cuda/" + std::to_string(ordinal),
    .candidate = "hash of k" + std::to_string(ordinal),
    .data = text_of(data)};
}

} // namespace

TEST_CASE("the incumbent is restored from promotions, and so is how many were tried") {
  const auto restored_from = [](const std::vector<event>& scored_events) {
    prepared_problem ready;
    ready.problem = "a";
    ready.status = verdict_status::passed;
    std::vector<event> events{
      {.seq = 1, .incarnation = 1, .kind = "run_started"}, prepared_event(ready)};
    std::string given;
    for (const auto& e : scored_events) {
      if (e.attempt != given) {
        planner_decision decision;
        decision.work.id = *attempt_id_from(e.attempt);
        decision.work.kind =
          decision.work.id.ordinal == 0 ? attempt_kind::baseline : attempt_kind::search;
        events.push_back(assigned_event(decision, "w"));
      }
      given = e.attempt;
      events.push_back(e);
      if (e.kind == "verdict")
        events.push_back(finished_event(*summary_of_verdict(e), {}));
    }
    auto restored = restore_run(config_of("equal"), {{"a", {}}}, events);
    REQUIRE_MESSAGE(restored, restored.error().what);
    return restored->best.of({"a", "cuda", 0});
  };
  const json stays{{"promotion", true}, {"incumbent_stays", true}};
  const json leads{{"promotion", true}, {"incumbent_stays", false}};
  std::vector<event> events{
    scored("verdict", 0, 1000), scored("screened", 1, 800), scored("verdict", 1, 990, stays)};
  CHECK(restored_from(events).candidate.key == "k0");
  CHECK(restored_from(events).tried == 2);
  // Side by side it was faster, on a day when everything was slower.
  events.push_back(scored("screened", 2, 900));
  events.push_back(scored("verdict", 2, 1010, leads));
  CHECK(restored_from(events).candidate.key == "k2");
  CHECK(restored_from(events).objective_ns == 1010);
  CHECK(restored_from(events).tried == 3);
  events.push_back(scored("verdict", 3, 1100));
  CHECK(restored_from(events).candidate.key == "k2");
  CHECK(restored_from(events).tried == 4);
}

TEST_CASE("an attempt that was screened and has no verdict is cut off") {
  world calm(2, 10'000);
  auto cut = calm.events;
  for (size_t i = cut.size(); i-- > 0;)
    if (cut[i].kind == "verdict") {
      cut[i].kind = "screened";
      cut.resize(i + 1);
      break;
    }
  const auto attempt = cut.back().attempt;
  auto restored = restore_run(config_of("equal"), three_problems(), cut);
  REQUIRE_MESSAGE(restored, restored.error().what);
  size_t interrupted = 0;
  for (const auto& e : restored->closing)
    interrupted += e.kind == "attempt_interrupted" && e.attempt == attempt ? 1 : 0;
  CHECK(interrupted == 1);
}
