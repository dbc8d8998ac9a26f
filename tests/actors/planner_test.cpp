#include "actors/planner.hpp"
#include "tests/support/actor_fixture.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

struct oracle_memory {
  std::vector<std::string> asked;
  /// Nothing: not answered until `answer`.
  std::function<std::optional<result<prepared_problem>>(const std::string&)> script;
  std::vector<std::pair<std::string, caf::typed_response_promise<prepared_problem>>> open;
};

prepared_problem ready(const std::string& problem, bool has_bounds = true) {
  prepared_problem out;
  out.problem = problem;
  out.status = verdict_status::passed;
  out.has_bounds = has_bounds;
  return out;
}

class scripted_oracle final : public oracle_actor::base {
public:
  scripted_oracle(caf::actor_config& config, std::shared_ptr<oracle_memory> memory)
    : oracle_actor::base(config), memory_(std::move(memory)) {}

  behavior_type make_behavior() override {
    return {[this](const prepare_request& what) -> caf::result<prepared_problem> {
              memory_->asked.push_back(what.problem);
              auto now = memory_->script ? memory_->script(what.problem) : ready(what.problem);
              if (!now) {
                auto reply = make_response_promise<prepared_problem>();
                memory_->open.emplace_back(what.problem, reply);
                return reply;
              }
              if (!*now)
                return to_error(now->error());
              return **now;
            },
      [](const draw_over&) {}};
  }

  void on_exit() override {
    for (auto& [problem, reply] : memory_->open)
      reply.deliver(to_error({errc::shutting_down, "the oracle has ended"}));
    memory_->open.clear();
  }

private:
  std::shared_ptr<oracle_memory> memory_;
};

struct scorer_memory {
  std::vector<std::string> prepared;
};

class listening_scorer final : public scorer_actor::base {
public:
  listening_scorer(caf::actor_config& config, std::shared_ptr<scorer_memory> memory)
    : scorer_actor::base(config), memory_(std::move(memory)) {}

  behavior_type make_behavior() override {
    return {[](const judge_request&) { return verdict{}; },
      [](const refused_request&) { return verdict{}; },
      [this](const prepared_problem& p) { memory_->prepared.push_back(p.problem); }};
  }

private:
  std::shared_ptr<scorer_memory> memory_;
};

class listening_supervisor final : public supervisor_actor::base {
public:
  listening_supervisor(caf::actor_config& config, std::shared_ptr<std::vector<run_ended>> ends)
    : supervisor_actor::base(config), ends_(std::move(ends)) {}

  behavior_type make_behavior() override {
    return {[](const start_working&) {}, [this](const run_ended& how) { ends_->push_back(how); },
      [](const drain_request&) {}, [](const planner_query&) { return planner_snapshot{}; },
      [](const rerun_request&) {}, [](const tick&) {}};
  }

private:
  std::shared_ptr<std::vector<run_ended>> ends_;
};

struct planned : actor_fixture {
  fake_journal journal = make_fake_journal(*this);
  std::shared_ptr<oracle_memory> oracle = std::make_shared<oracle_memory>();
  std::shared_ptr<scorer_memory> scorer = std::make_shared<scorer_memory>();
  std::shared_ptr<std::vector<run_ended>> ends = std::make_shared<std::vector<run_ended>>();
  oracle_actor oracle_handle = spawn<scripted_oracle>(oracle);
  portfolio_config mind;
  /// Candidates given by file, of each problem.
  uint32_t planted = 0;
  planner_actor whom;

  void begin(std::vector<std::string> names = {"p"}) {
    planner_config config;
    for (auto& name : names) {
      auto& p = config.problems.emplace_back(portfolio_problem{name, {}});
      for (uint32_t i = 0; i < planted; ++i) {
        auto& c = p.planted.emplace_back();
        c.key = c.hash = "given-" + std::to_string(i);
      }
    }
    config.mind = mind;
    config.oracle = oracle_handle;
    config.scorer = spawn<listening_scorer>(scorer);
    config.supervisor = spawn<listening_supervisor>(ends);
    config.events = event_port{journal.handle, start};
    auto made = portfolio::make(config.mind, config.problems);
    REQUIRE(made);
    whom = spawn<planner>(std::move(config), std::move(*made));
    tell(whom, start_working{});
  }

  reply<work_reply> request(const fake_holder& who, const std::string& name) {
    return ask_as<work_reply>(who.handle, whom, work_request{name});
  }

  assignment assigned(const reply<work_reply>& r) {
    auto got = answer(r);
    REQUIRE(got);
    REQUIRE(got->kind == work_kind::assigned);
    return got->work;
  }

  attempt_summary summary(const assignment& work, attempt_outcome outcome) {
    attempt_summary s;
    s.id = work.id;
    s.kind = work.kind;
    s.worker = "w";
    s.outcome = outcome;
    s.candidate.key = "key-" + std::to_string(work.id.ordinal);
    s.candidate.hash = s.candidate.key;
    s.status = verdict_status::passed;
    s.objective_ns = 1000;
    s.gpu_ns = 500;
    return s;
  }

  planner_snapshot seen() {
    auto got = answer(ask<planner_snapshot>(whom, planner_query{}));
    REQUIRE(got);
    return *got;
  }

  void announce_oracle() {
    oracle_handle = spawn<scripted_oracle>(oracle);
    tell(whom, peer_restarted{role::oracle}, caf::actor_cast<caf::strong_actor_ptr>(oracle_handle));
  }
};

std::optional<result<prepared_problem>> broken(const std::string&) {
  return fail(errc::child_failed, "the oracle child died");
}

} // namespace

TEST_CASE_FIXTURE(
  planned, "a request waits until there is work, and the whole attempt is in the log") {
  oracle->script = [](const std::string&) { return std::nullopt; };
  begin();
  auto w = make_fake_holder(*this);
  auto first = request(w, "w-0");
  CHECK_FALSE(answered(first));
  REQUIRE(oracle->open.size() == 1);
  oracle->open[0].second.deliver(ready("p"));
  oracle->open.clear();
  settle();
  auto work = assigned(first);
  CHECK(work.id.problem == "p");
  CHECK(scorer->prepared == std::vector<std::string>{"p"});
  auto claim = answer(ask<claim_reply>(whom, claim_request{work.id, "key-0"}));
  CHECK(claim->granted);
  CHECK(answer(ask<void>(whom, summary(work, attempt_outcome::judged))));
  auto snapshot = seen();
  CHECK(snapshot.attempts_finished == 1);
  CHECK(snapshot.gpu_ns == 500);
  CHECK(journal->count("problem_prepared") == 1);
  CHECK(journal->count("assigned") == 1);
  auto data = nlohmann::json::parse(journal->last("attempt_finished").data);
  CHECK(data.at("outcome") == "judged");
  CHECK(data.at("status") == "PASSED");
  CHECK(data.at("improved") == true);
}

TEST_CASE_FIXTURE(planned, "a key is given to one attempt only") {
  begin();
  auto a = make_fake_holder(*this), b = make_fake_holder(*this);
  auto first = assigned(request(a, "w-0")), second = assigned(request(b, "w-1"));
  CHECK(answer(ask<claim_reply>(whom, claim_request{first.id, "k"}))->granted);
  auto refused = answer(ask<claim_reply>(whom, claim_request{second.id, "k"}));
  CHECK_FALSE(refused->granted);
  CHECK(refused->taken == std::vector<std::string>{"k"});
}

TEST_CASE_FIXTURE(
  planned, "a second summary of an attempt, and one that nobody gave out, change nothing") {
  begin();
  auto w = make_fake_holder(*this);
  auto work = assigned(request(w, "w-0"));
  CHECK(answer(ask<void>(whom, summary(work, attempt_outcome::judged))));
  CHECK(answer(ask<void>(whom, summary(work, attempt_outcome::judged))));
  work.id.ordinal = 99;
  CHECK(answer(ask<void>(whom, summary(work, attempt_outcome::judged))));
  CHECK(seen().attempts_finished == 1);
  CHECK(journal->count("attempt_finished") == 1);
}

TEST_CASE_FIXTURE(
  planned, "a worker that dies gives its attempt back, and the next one gets work") {
  mind.attempt_budget = 1; // Nothing else could be given out.
  begin();
  auto a = make_fake_holder(*this), b = make_fake_holder(*this);
  auto work = assigned(request(a, "w-0"));
  auto second = request(b, "w-1");
  CHECK_FALSE(answered(second));
  end(a.handle, caf::exit_reason::kill);
  CHECK(assigned(second).id.ordinal == work.id.ordinal + 1);
  CHECK(journal->last("attempt_lost").attempt == to_string(work.id));
  CHECK(answer(ask<void>(whom, summary(work, attempt_outcome::judged))));
  CHECK_MESSAGE(journal->count("attempt_finished") == 0, "its late summary is not counted");
}

TEST_CASE_FIXTURE(
  planned, "the attempt of a worker whose machine is lost is given out again, and nothing failed") {
  mind.attempt_budget = 1;
  mind.infrastructure_retries = 0;
  mind.infrastructure_in_row_max = 1;
  begin();
  auto a = make_fake_holder(*this), b = make_fake_holder(*this), c = make_fake_holder(*this);
  auto work = assigned(request(a, "w-0"));
  auto second = request(b, "w-1");
  end(a.handle, caf::exit_reason::remote_link_unreachable);
  auto again = assigned(second);
  CHECK(journal->last("attempt_interrupted").attempt == to_string(work.id));
  CHECK(journal->count("attempt_lost") == 0);
  // So it is when its node sends it home.
  auto third = request(c, "w-2");
  self_of(b.handle)->send_exit(b.handle, to_error({errc::node_lost, "the node leaves"}));
  settle();
  assigned(third);
  CHECK(journal->count("attempt_interrupted") == 2);
  CHECK(again.id.ordinal == work.id.ordinal + 1);
}

TEST_CASE("an attempt has its verdict or is given up, never both") {
  verdict_book book;
  event verdict{.kind = "verdict", .attempt = "softmax/cuda/1"};
  CHECK(book.decided(verdict));
  REQUIRE(book.give_up("softmax/cuda/1"));
  CHECK_FALSE(book.give_up("softmax/cuda/1"));
  CHECK(book.is_given_up("softmax/cuda/1"));
  CHECK_FALSE(book.decided(verdict));
  event other{.kind = "verdict", .attempt = "softmax/cuda/2"};
  CHECK_FALSE(book.give_up("softmax/cuda/2"));
  CHECK_FALSE(book.decided(other));
  event third{.kind = "verdict", .attempt = "softmax/cuda/3"};
  CHECK(book.decided(third));
  book.counted("softmax/cuda/3");
  CHECK_FALSE(book.give_up("softmax/cuda/3"));
}

TEST_CASE_FIXTURE(planned, "a worker that dies while it waits is forgotten") {
  mind.attempt_budget = 1;
  begin();
  auto a = make_fake_holder(*this), b = make_fake_holder(*this), c = make_fake_holder(*this);
  auto work = assigned(request(a, "w-0"));
  auto dead = request(b, "w-1");
  auto waits = request(c, "w-2");
  end(b.handle, caf::exit_reason::kill);
  CHECK(answer(ask<void>(whom, summary(work, attempt_outcome::infrastructure))));
  CHECK_FALSE(answered(dead));
  assigned(waits);
}

TEST_CASE_FIXTURE(
  planned, "a drain stops whoever waits, lets the attempts in flight end, and ends the run") {
  mind.attempt_budget = 1;
  begin();
  auto a = make_fake_holder(*this), b = make_fake_holder(*this);
  auto work = assigned(request(a, "w-0"));
  auto waits = request(b, "w-1");
  tell(whom, drain_request{"interrupted"});
  CHECK(answer(waits)->kind == work_kind::stop);
  CHECK(ends->empty());
  CHECK(answer(ask<void>(whom, summary(work, attempt_outcome::judged))));
  REQUIRE(ends->size() == 1);
  CHECK(ends->at(0).reason == "interrupted");
  CHECK(ends->at(0).clean);
  CHECK(seen().finished);
  CHECK(journal->last("drain").reason == "interrupted");
  tell(whom, drain_request{"again"});
  CHECK_MESSAGE(ends->size() == 1, "told once");
}

TEST_CASE_FIXTURE(
  planned, "the wall-clock budget ends the run also when nobody asks and nothing comes") {
  mind.wall_budget = 10s;
  oracle->script = [](const std::string&) { return std::nullopt; }; // Never.
  begin();
  auto w = make_fake_holder(*this);
  auto waits = request(w, "w-0");
  advance(9s);
  CHECK(ends->empty());
  advance(1s);
  CHECK(answer(waits)->kind == work_kind::stop);
  CHECK(ends->size() == 1);
}

TEST_CASE_FIXTURE(planned, "with no worker left, the wall-clock budget ends the run all the same") {
  mind.wall_budget = 10s;
  begin();
  advance(10s);
  CHECK(ends->size() == 1);
}

TEST_CASE_FIXTURE(planned, "a preparation that fails for a reason of ours is tried again, twice") {
  oracle->script = broken;
  begin();
  CHECK(oracle->asked.size() == 3);
  CHECK(journal->count("prepare_retried") == 2);
  CHECK(
    journal->last("problem_finished").reason.find("the oracle child died") != std::string::npos);
  REQUIRE(ends->size() == 1);
  CHECK(scorer->prepared.empty());
}

TEST_CASE_FIXTURE(planned, "a reference that raises ends its problem, and the others go on") {
  oracle->script = [](const std::string& name) -> std::optional<result<prepared_problem>> {
    auto p = ready(name);
    if (name == "bad")
      p.status = verdict_status::invalid_reference;
    return p;
  };
  begin({"bad", "good"});
  CHECK(journal->last("problem_finished").problem == "bad");
  CHECK(ends->empty());
  auto w = make_fake_holder(*this);
  CHECK(assigned(request(w, "w-0")).id.problem == "good");
}

TEST_CASE_FIXTURE(planned, "so many problems are prepared at the same time, and no more") {
  oracle->script = [](const std::string&) { return std::nullopt; };
  begin({"a", "b", "c"});
  CHECK(oracle->asked.size() == 2);
  oracle->open[0].second.deliver(ready(oracle->open[0].first));
  oracle->open.erase(oracle->open.begin());
  settle();
  CHECK(oracle->asked.size() == 3);
}

TEST_CASE_FIXTURE(planned, "an oracle that dies costs a try; its successor gets the problems") {
  oracle->script = [](const std::string&) { return std::nullopt; };
  begin({"a", "b", "c"});
  end(oracle_handle, caf::exit_reason::kill);
  advance(10s);
  CHECK_MESSAGE(ends->empty(), "nothing is given up while nobody is there to ask");
  CHECK(journal->count("problem_finished") == 0);
  oracle->script = nullptr;
  announce_oracle();
  CHECK(journal->count("problem_prepared") == 3);
  CHECK(journal->count("problem_finished") == 0);
}

TEST_CASE_FIXTURE(planned, "a problem that kills its oracle each time is given up") {
  oracle->script = [](const std::string&) -> std::optional<result<prepared_problem>> {
    throw std::runtime_error("a bug");
  };
  begin();
  for (int i = 0; i < 2; ++i) {
    CHECK(ends->empty());
    announce_oracle();
  }
  CHECK(ends->size() == 1);
}

TEST_CASE_FIXTURE(
  planned, "a victim of a bad GPU goes to whoever waits, and both steps are logged") {
  begin();
  auto a = make_fake_holder(*this), b = make_fake_holder(*this);
  auto first = assigned(request(a, "w-0"));
  auto failed = summary(first, attempt_outcome::judged);
  failed.status = verdict_status::runtime_error;
  CHECK(answer(ask<void>(whom, failed)));
  auto attempt = to_string(first.id);
  tell(whom, rerun_request{"p", attempt, failed.candidate.hash});
  CHECK(journal->last("rerun_planned").attempt == attempt);
  CHECK(journal->last("rerun_planned").candidate == failed.candidate.hash);
  auto again = assigned(request(b, "w-1"));
  REQUIRE(again.given);
  CHECK(*again.given == failed.candidate);
  CHECK(journal->last("assigned").reason.starts_with("re-run: its GPU was quarantined"));
  auto better = summary(again, attempt_outcome::judged);
  better.candidate = *again.given;
  CHECK(answer(ask<void>(whom, better)));
  auto data = nlohmann::json::parse(journal->last("attempt_finished").data);
  CHECK(data.at("rerun_of") == attempt);
  CHECK(data.at("improved") == true);
  tell(whom, rerun_request{"p", attempt, failed.candidate.hash});
  CHECK(journal->count("rerun_planned") == 1);
  CHECK(journal->last("rerun_refused").reason.find("named for one before") != std::string::npos);
  tell(whom, rerun_request{"\xff", "\xff", "\xc3("});
  CHECK(journal->count("rerun_refused") == 2);
  CHECK(alive(whom));
}

TEST_CASE_FIXTURE(
  planned, "a re-run wakes a worker that had nothing to do, in a finished problem") {
  mind.search = false;
  planted = 1;
  oracle->script = [](const std::string& name) -> std::optional<result<prepared_problem>> {
    return name == "p" ? std::optional<result<prepared_problem>>{ready(name)} : std::nullopt;
  };
  begin({"p", "q"});
  auto a = make_fake_holder(*this);
  auto first = assigned(request(a, "w-0"));
  auto failed = summary(first, attempt_outcome::judged);
  failed.status = verdict_status::runtime_error;
  failed.candidate = *first.given;
  CHECK(answer(ask<void>(whom, failed)));
  CHECK(journal->count("problem_finished") == 1);
  auto waits = request(a, "w-0");
  CHECK_FALSE(answered(waits));
  tell(whom, rerun_request{"p", to_string(first.id), failed.candidate.hash});
  auto again = assigned(waits);
  CHECK(again.kind == attempt_kind::planted);
  auto better = summary(again, attempt_outcome::judged);
  better.candidate = *again.given;
  CHECK(answer(ask<void>(whom, better)));
  CHECK(journal->count("problem_finished") == 2);
  CHECK(nlohmann::json::parse(journal->last("problem_finished").data).at("best")
    == better.candidate.hash);
}

TEST_CASE_FIXTURE(planned, "names that are no UTF-8 do not end the planner") {
  begin();
  auto w = make_fake_holder(*this);
  auto work = assigned(request(w, "w-\xff"));
  auto s = summary(work, attempt_outcome::judged);
  s.candidate.key = "\xc3(";
  CHECK(answer(ask<void>(whom, s)));
  CHECK(alive(whom));
}

TEST_CASE_FIXTURE(planned, "whoever waits when the planner ends is told") {
  mind.attempt_budget = 1;
  begin();
  auto a = make_fake_holder(*this), b = make_fake_holder(*this);
  assigned(request(a, "w-0"));
  auto waits = request(b, "w-1");
  end(whom);
  CHECK(refusal(waits).code == errc::shutting_down);
}

namespace {

candidate_ref from_outside(const std::string& name) {
  candidate_ref c;
  c.hash = "hash-" + name;
  c.key = "agent/" + name;
  c.hypothesis = "faster";
  return c;
}

struct planted_from_outside : planned {
  fake_holder w = make_fake_holder(*this);

  planted_from_outside() {
    mind.search = false;
    mind.takes_plants = true;
    begin();
  }

  reply<plant_reply> plant(const std::string& name, const std::string& problem = "p") {
    return ask<plant_reply>(whom, plant_request{problem, from_outside(name)});
  }

  attempt_summary summary_of(
    const assignment& work, attempt_outcome outcome = attempt_outcome::judged) {
    auto s = summary(work, outcome);
    s.candidate = *work.given;
    return s;
  }
};

} // namespace

TEST_CASE_FIXTURE(planted_from_outside,
  "whoever plants a candidate hears of it when its attempt is over, and the log knows it") {
  auto planter = plant("a");
  CHECK_FALSE(answered(planter));
  auto work = assigned(request(w, "w-0"));
  REQUIRE(work.given);
  CHECK(work.given->hash == "hash-a");
  CHECK_FALSE(answered(planter));
  CHECK(answer(ask<void>(whom, summary_of(work))));
  auto told = answer(planter);
  REQUIRE(told);
  CHECK(told->kind == plant_kind::over);
  CHECK(told->summary.status == verdict_status::passed);
  CHECK(told->summary.objective_ns == 1000);
  CHECK(journal->count("planted") == 1);
  CHECK(journal->last("planted").candidate == "hash-a");
  CHECK(nlohmann::json::parse(journal->last("planted").data).at("hypothesis") == "faster");
  auto again = answer(plant("a"));
  REQUIRE(again);
  CHECK(again->kind == plant_kind::known);
  CHECK(again->earlier.objective_ns == 1000);
  CHECK(journal->count("planted") == 1);
}

TEST_CASE_FIXTURE(
  planted_from_outside, "a failure of ours is repeated before the planter is told") {
  auto planter = plant("a");
  for (int i = 0; i < 3; ++i) {
    CHECK_FALSE(answered(planter));
    auto work = assigned(request(w, "w-0"));
    CHECK(answer(ask<void>(whom, summary_of(work, attempt_outcome::infrastructure))));
  }
  auto told = answer(planter);
  REQUIRE(told);
  CHECK(told->kind == plant_kind::over);
  CHECK(told->summary.outcome == attempt_outcome::infrastructure);
}

TEST_CASE_FIXTURE(
  planted_from_outside, "a planter is refused with the reason, at once or at the end") {
  auto unknown = answer(plant("a", "q"));
  REQUIRE(unknown);
  CHECK(unknown->kind == plant_kind::refused);
  CHECK(unknown->reason == "the run has no problem 'q'");
  auto withdrawn = plant("b");
  tell(whom, plant_withdrawal{"p", "hash-b", "cancelled"});
  CHECK(answer(withdrawn)->reason == "it is not tried: it was withdrawn");
  CHECK(journal->count("plant_withdrawn") == 1);
  auto late = plant("c");
  tell(whom, drain_request{"enough"});
  CHECK(answer(late)->reason == "it is not tried: enough");
  CHECK(answer(plant("d"))->reason == "nothing more is tried: enough");
}

TEST_CASE_FIXTURE(planted_from_outside, "the run ends when nobody plants any more, not before") {
  auto idle = request(w, "w-0");
  CHECK(ends->empty());
  CHECK_FALSE(answered(idle));
  auto planter = plant("a");
  auto work = assigned(idle);
  tell(whom, plant_close{"the client has gone"});
  CHECK(ends->empty());
  CHECK(answer(ask<void>(whom, summary_of(work))));
  CHECK(answer(planter)->kind == plant_kind::over);
  REQUIRE(ends->size() == 1);
  CHECK(ends->front().clean);
  CHECK(journal->count("planting_closed") == 1);
}

TEST_CASE_FIXTURE(
  planted_from_outside, "too many planters are turned away, and the end answers all") {
  std::vector<reply<plant_reply>> all;
  for (int i = 0; i < 64; ++i)
    all.push_back(plant(std::to_string(i)));
  auto one_more = answer(plant("one more"));
  REQUIRE_FALSE(one_more);
  CHECK(from_error(sys, one_more.error()).code == errc::queue_full);
  end(whom, caf::exit_reason::user_shutdown);
  auto last = answer(all.back());
  REQUIRE_FALSE(last);
  CHECK(from_error(sys, last.error()).code == errc::shutting_down);
}
