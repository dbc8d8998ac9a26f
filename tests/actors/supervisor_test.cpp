#include "actors/rehearsal.hpp"
#include "actors/supervisor.hpp"
#include "tests/support/actor_fixture.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <map>
#include <nlohmann/json.hpp>

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

/// What the actors of a run saw, and the handles of those alive.
struct run_memory {
  std::map<std::string, uint32_t> made;
  std::vector<std::string> ended;
  std::map<std::string, caf::strong_actor_ptr> last;
  std::vector<std::string> announced;
  std::vector<std::string> drains;
  std::vector<std::string> reruns;
  uint32_t started_planner = 0;
  uint32_t started_worker = 0;
  /// These do not end when they are told to, only when they are killed.
  std::string stubborn;
};

/// Keeps the books about its own life; every fake member of the run has it.
template <class Base>
class member_of_run : public Base {
public:
  member_of_run(caf::actor_config& config, std::shared_ptr<run_memory> memory, std::string who)
    : Base(config), memory_(std::move(memory)), who_(std::move(who)) {
    ++memory_->made[who_];
    if (memory_->stubborn == who_)
      this->set_exit_handler([this](const caf::exit_msg& m) {
        if (m.reason == caf::exit_reason::kill)
          this->quit(m.reason);
      });
  }
  void on_exit() override { memory_->ended.push_back(who_); }

protected:
  std::shared_ptr<run_memory> memory_;
  std::string who_;
};

struct some_planner final : member_of_run<planner_actor::base> {
  using member_of_run::member_of_run;
  behavior_type make_behavior() override {
    return {[](const work_request&) { return work_reply{}; },
      [](const claim_request&) { return claim_reply{}; }, [](const attempt_summary&) {},
      [this](const drain_request& what) { memory_->drains.push_back(what.reason); },
      [](const planner_query&) {
        planner_snapshot s;
        s.problems_total = 3;
        return s;
      },
      [this](const start_working&) { ++memory_->started_planner; },
      [this](const peer_restarted& peer, const caf::strong_actor_ptr&) {
        memory_->announced.push_back("planner<-" + to_string(peer.which));
      },
      [this](const rerun_request& what) { memory_->reruns.push_back(what.candidate); },
      [](const plant_request&) { return plant_reply{}; }, [](const plant_withdrawal&) {},
      [](const plant_close&) {}, [](const tick&) {}};
  }
};

struct some_worker final : member_of_run<worker_actor::base> {
  using member_of_run::member_of_run;
  behavior_type make_behavior() override {
    return {[this](const start_working&) { ++memory_->started_worker; },
      [](const lease_granted&, const caf::strong_actor_ptr&) {}, [](const lease_ended&) {},
      [this](const peer_restarted& peer, const caf::strong_actor_ptr& handle) {
        memory_->announced.push_back(who_ + "<-" + to_string(peer.which));
        CHECK(handle
          == memory_
               ->last[peer.which == role::proposer ? "proposer-" + who_.substr(who_.find('-') + 1)
                                                   : to_string(peer.which)]);
      },
      [](const tick&) {}};
  }
};

struct some_gpu final : member_of_run<gpu_actor::base> {
  using member_of_run::member_of_run;
  behavior_type make_behavior() override {
    return {[](const measure_request&) { return measurement{}; }, [](const lease_revoke&) {},
      [](const probe_order&) {}, [](const tick&) {}};
  }
};

struct some_lease final : member_of_run<gpu_lease_actor::base> {
  using member_of_run::member_of_run;
  behavior_type make_behavior() override {
    return {[](const lease_request&) { return lease_ticket{}; },
      [](const lease_command&) { return lease_ack{}; },
      [](const device_report&) { return lease_ack{}; },
      [](const broker_query&) { return broker_snapshot{}; },
      [](const broker_command&) { return lease_ack{}; }, [](const tick&) {}};
  }
};

struct some_compiler final : member_of_run<compiler_actor::base> {
  using member_of_run::member_of_run;
  behavior_type make_behavior() override {
    return {[](const compile_request&) { return compiled_candidate{}; }};
  }
};

struct some_oracle final : member_of_run<oracle_actor::base> {
  using member_of_run::member_of_run;
  behavior_type make_behavior() override {
    return {[](const prepare_request&) { return prepared_problem{}; }, [](const draw_over&) {}};
  }
};

struct some_scorer final : member_of_run<scorer_actor::base> {
  using member_of_run::member_of_run;
  behavior_type make_behavior() override {
    return {[](const judge_request&) { return verdict{}; },
      [](const refused_request&) { return verdict{}; }, [](const prepared_problem&) {}};
  }
};

struct some_proposer final : member_of_run<proposer_actor::base> {
  using member_of_run::member_of_run;
  behavior_type make_behavior() override {
    return {[](const propose_request&) { return proposal{}; }};
  }
};

struct some_child_front final : member_of_run<child_front_actor::base> {
  using member_of_run::member_of_run;
  behavior_type make_behavior() override {
    return {[](const child_request&) { return child_result{}; }, [](const child_cancel&) {},
      [](const device_quiet_query& q) { return device_quiet{q.device}; },
      [](const child_result&) {}};
  }
};

/// Where the fake hub sends workers, and what it was asked.
struct hub_memory {
  std::vector<uint32_t> asked;
  /// Answers for the next ones; withheld while it is empty and `hold` is set.
  std::vector<caf::strong_actor_ptr> places;
  bool hold = false;
  std::vector<caf::typed_response_promise<caf::strong_actor_ptr>> open;
};

struct some_hub final : member_of_run<cluster_hub_actor::base> {
  some_hub(
    caf::actor_config& config, std::shared_ptr<run_memory> memory, std::shared_ptr<hub_memory> hub)
    : member_of_run(config, std::move(memory), "cluster_hub"), hub_(std::move(hub)) {}
  behavior_type make_behavior() override {
    return {[](const cluster_hello&) { return cluster_greeting{}; },
      [](const node_offer&, const caf::strong_actor_ptr&, const caf::strong_actor_ptr&) {},
      [](const node_ready&) {}, [](const node_answer&) {},
      [](const worker_started&, const caf::strong_actor_ptr&) {},
      [](const blobs_offered&, const caf::strong_actor_ptr&) { return blobs_fetched{}; },
      [](const node_leaving&) {},
      [this](
        const place_worker& what, const worker_peers& peers) -> caf::result<caf::strong_actor_ptr> {
        hub_->asked.push_back(what.index);
        auto self = caf::actor_cast<caf::strong_actor_ptr>(this);
        CHECK(peers.compiler == self);
        CHECK(peers.oracle == self);
        CHECK(peers.planner == memory_->last["planner"]);
        auto reply = make_response_promise<caf::strong_actor_ptr>();
        if (hub_->hold) {
          hub_->open.push_back(reply);
        } else if (hub_->places.empty()) {
          reply.deliver(caf::strong_actor_ptr{});
        } else {
          reply.deliver(hub_->places.front());
          hub_->places.erase(hub_->places.begin());
        }
        return reply;
      },
      [](const compile_request&) { return compiled_candidate{}; },
      [](const prepare_request&) { return prepared_problem{}; }, [](const draw_over&) {},
      [](const judge_request&) { return evaluation{}; },
      [](const cluster_query&) { return cluster_snapshot{}; },
      [](const cluster_command&) { return cluster_ack{}; }, [](const tick&) {}};
  }
  std::shared_ptr<hub_memory> hub_;
};

struct whole_run : actor_fixture {
  std::shared_ptr<run_memory> memory = std::make_shared<run_memory>();
  fake_journal journal = make_fake_journal(*this);
  std::shared_ptr<std::vector<run_ended>> ends = std::make_shared<std::vector<run_ended>>();
  supervisor_config config;
  supervisor_actor whom;

  template <class Actor>
  auto factory(const char* who) {
    return [m = memory, who](caf::actor_system& system, const run_peers&) {
      auto made = system.spawn<Actor>(m, std::string{who});
      m->last[who] = caf::actor_cast<caf::strong_actor_ptr>(made);
      return made;
    };
  }
  template <class Actor>
  auto numbered(const char* who) {
    return [m = memory, who](caf::actor_system& system, const run_peers&, uint32_t index) {
      auto name = std::string{who} + "-" + std::to_string(index);
      auto made = system.spawn<Actor>(m, name);
      m->last[name] = caf::actor_cast<caf::strong_actor_ptr>(made);
      return made;
    };
  }

  whole_run() {
    auto& make = config.make;
    make.journal = [j = journal.handle](caf::actor_system&, const run_peers&) { return j; };
    make.child_front = factory<some_child_front>("child_front");
    make.lease = factory<some_lease>("gpu_lease");
    make.compiler = factory<some_compiler>("compiler");
    make.oracle = factory<some_oracle>("oracle");
    make.scorer = factory<some_scorer>("scorer");
    make.planner = factory<some_planner>("planner");
    make.gpu = numbered<some_gpu>("gpu");
    make.proposer = numbered<some_proposer>("proposer");
    make.worker = numbered<some_worker>("worker");
    config.gpus = 2;
    config.workers = 2;
    config.run_started = {.kind = "run_started", .data = R"({"seed":1})"};
    config.on_end = [e = ends](const run_ended& how) { e->push_back(how); };
  }
  ~whole_run() {
    memory->last.clear();
    whom = nullptr;
  }

  void begin() {
    whom = spawn<supervisor>(config);
    tell(whom, start_working{});
  }

  void kill(const std::string& who) {
    REQUIRE(memory->last[who]);
    caf::anon_send_exit(memory->last[who], caf::exit_reason::kill);
    settle();
  }

  void check_end(const std::string& part, bool clean) {
    REQUIRE(ends->size() == 1);
    CHECK(ends->at(0).clean == clean);
    CHECK_MESSAGE(ends->at(0).reason.find(part) != std::string::npos, ends->at(0).reason);
    CHECK_FALSE(alive(whom));
    CHECK_FALSE(alive(journal.handle));
    auto data = nlohmann::json::parse(journal->last("run_ended").data);
    CHECK(data.at("clean") == clean);
    CHECK_MESSAGE(journal->events.back().kind == "run_ended", "the last line of the log");
  }

  size_t place(const std::string& who) {
    auto found = std::find(memory->ended.begin(), memory->ended.end(), who);
    REQUIRE(found != memory->ended.end());
    return static_cast<size_t>(found - memory->ended.begin());
  }
};

} // namespace

TEST_CASE_FIXTURE(whole_run, "everybody is started once, and the log begins with what was asked") {
  begin();
  CHECK(memory->made.size() == 12);
  for (const auto& [who, count] : memory->made)
    CHECK_MESSAGE(count == 1, who);
  CHECK(memory->started_planner == 1);
  CHECK(memory->started_worker == 2);
  CHECK(journal->events.at(0).kind == "run_started");
  CHECK(journal->how.at(0) == durability::barrier);
  CHECK(answer(ask<planner_snapshot>(whom, planner_query{}))->problems_total == 3);
}

TEST_CASE_FIXTURE(whole_run, "the end goes through its stages: who asks before who answers") {
  begin();
  tell(whom, run_ended{"all problems are finished", true});
  check_end("all problems are finished", true);
  CHECK(place("worker-1") < place("planner"));
  CHECK(place("worker-0") < place("proposer-0"));
  CHECK(place("planner") < place("oracle"));
  CHECK(place("planner") < place("gpu-0"));
  CHECK(place("gpu-1") < place("gpu_lease"));
  CHECK(place("scorer") < place("gpu_lease"));
  CHECK(place("gpu_lease") < place("child_front"));
  CHECK(refusal(ask<planner_snapshot>(whom, planner_query{})).code == errc::child_failed);
}

TEST_CASE_FIXTURE(whole_run, "the planner is told of victims as long as the run goes on") {
  memory->stubborn = "worker-0"; // Holds the end up.
  begin();
  tell(whom, rerun_request{"p", "p/cuda/3", "c"});
  CHECK(memory->reruns == std::vector<std::string>{"c"});
  tell(whom, run_ended{"all problems are finished", true});
  CHECK(ends->empty());
  tell(whom, rerun_request{"p", "p/cuda/4", "d"});
  CHECK(memory->reruns.size() == 1);
  advance(10s);
  check_end("all problems are finished", true);
}

TEST_CASE_FIXTURE(whole_run, "a run without children has no front for them") {
  config.make.child_front = nullptr;
  begin();
  tell(whom, run_ended{"done", true});
  check_end("done", true);
}

TEST_CASE_FIXTURE(
  whole_run, "an actor that will not end holds the shutdown up for one grace, and is killed") {
  memory->stubborn = "gpu-1";
  begin();
  tell(whom, run_ended{"done", true});
  advance(config.stage_grace - 1ns);
  CHECK(ends->empty());
  advance(1ns);
  check_end("done", true);
  CHECK(memory->ended.back() == "gpu-1");
}

TEST_CASE_FIXTURE(whole_run, "a journal that stores no more holds the end up for one grace only") {
  begin();
  journal->withhold = true;
  tell(whom, run_ended{"done", true});
  CHECK(ends->empty());
  advance(config.stage_grace);
  REQUIRE(ends->size() == 1);
  CHECK_FALSE(alive(journal.handle));
}

TEST_CASE_FIXTURE(whole_run, "a first drain is passed on, a second one aborts") {
  begin();
  tell(whom, drain_request{"interrupted"});
  CHECK(memory->drains == std::vector<std::string>{"interrupted"});
  CHECK(ends->empty());
  tell(whom, drain_request{"interrupted twice"});
  CHECK(memory->drains.size() == 1);
  check_end("aborted: interrupted twice", false);
}

TEST_CASE_FIXTURE(whole_run, "a drain that outlasts its grace is aborted; one that ends is clean") {
  begin();
  tell(whom, drain_request{"interrupted"});
  advance(config.drain_grace - 1ns);
  CHECK(ends->empty());
  SUBCASE("outlasts") {
    advance(1ns);
    check_end("grace period", false);
  }
  SUBCASE("ends") {
    tell(whom, run_ended{"interrupted", true});
    check_end("interrupted", true);
    advance(1min);
    CHECK(ends->size() == 1);
  }
}

TEST_CASE_FIXTURE(whole_run, "a compiler is replaced after a while and announced to every worker") {
  begin();
  kill("compiler");
  advance(config.back_off_first - 1ns);
  CHECK(memory->made["compiler"] == 1);
  advance(1ns);
  CHECK(memory->made["compiler"] == 2);
  CHECK(memory->announced == std::vector<std::string>{"worker-0<-compiler", "worker-1<-compiler"});
  CHECK(ends->empty());
  auto died = nlohmann::json::parse(journal->last("actor_died").data);
  CHECK(died.at("actor") == "compiler");
  CHECK(died.at("deaths") == 1);
  CHECK(nlohmann::json::parse(journal->last("actor_restarted").data).at("actor") == "compiler");
}

TEST_CASE_FIXTURE(
  whole_run, "a proposer is announced to its own worker, an oracle to planner and workers") {
  begin();
  kill("proposer-1");
  kill("oracle");
  advance(1s);
  auto announced = memory->announced;
  std::sort(announced.begin(), announced.end());
  CHECK(announced
    == std::vector<std::string>{
      "planner<-oracle", "worker-0<-oracle", "worker-1<-oracle", "worker-1<-proposer"});
}

TEST_CASE_FIXTURE(whole_run, "a worker and a gpu are replaced and set to work") {
  begin();
  kill("worker-0");
  kill("gpu-1");
  advance(1s);
  CHECK(memory->made["worker-0"] == 2);
  CHECK(memory->made["worker-1"] == 1);
  CHECK(memory->made["gpu-1"] == 2);
  CHECK(memory->started_worker == 3);
  tell(whom, run_ended{"done", true});
  check_end("done", true);
}

TEST_CASE_FIXTURE(
  whole_run, "each restart waits twice as long, up to a cap, and their number is limited") {
  config.back_off_max = 500ms;
  begin();
  std::vector<std::chrono::milliseconds> waits{100ms, 200ms, 400ms, 500ms, 500ms};
  for (size_t i = 0; i < waits.size(); ++i) {
    CAPTURE(i);
    kill("worker-1");
    advance(waits[i] - 1ns);
    CHECK(memory->made["worker-1"] == i + 1);
    advance(1ns);
    CHECK(memory->made["worker-1"] == i + 2);
  }
  CHECK(ends->empty());
  kill("worker-1");
  check_end("worker-1 died 6 times", false);
}

TEST_CASE_FIXTURE(whole_run, "the death of one that cannot be replaced ends the run, not clean") {
  std::string who;
  SUBCASE("planner") {
    who = "planner";
  }
  SUBCASE("gpu_lease") {
    who = "gpu_lease";
  }
  SUBCASE("scorer") {
    who = "scorer";
  }
  SUBCASE("child_front") {
    who = "child_front";
  }
  begin();
  kill(who);
  check_end(" died: ", false);
  CHECK(nlohmann::json::parse(journal->last("actor_died").data).at("deaths") == 1);
}

TEST_CASE_FIXTURE(whole_run, "the death of the journal ends the run, not clean") {
  begin();
  end(journal.handle, caf::exit_reason::kill);
  REQUIRE(ends->size() == 1);
  CHECK_FALSE(ends->at(0).clean);
  CHECK(ends->at(0).reason.find("journal died") != std::string::npos);
}

TEST_CASE_FIXTURE(whole_run, "nobody is restarted once the run ends") {
  begin();
  kill("worker-0");
  tell(whom, run_ended{"done", true});
  advance(10s);
  CHECK(memory->made["worker-0"] == 1);
  check_end("done", true);
}

TEST_CASE_FIXTURE(whole_run, "a supervisor that is killed takes everybody along and says so") {
  begin();
  end(whom, caf::exit_reason::kill);
  REQUIRE(ends->size() == 1);
  CHECK_FALSE(ends->at(0).clean);
  CHECK(memory->ended.size() == memory->made.size());
  CHECK_FALSE(alive(journal.handle));
}

namespace {

struct run_of_many : whole_run {
  std::shared_ptr<hub_memory> hub = std::make_shared<hub_memory>();

  run_of_many() {
    config.make.compiler = nullptr;
    config.make.oracle = nullptr;
    config.make.cluster = [m = memory, h = hub](caf::actor_system& system, const run_peers&) {
      return system.spawn<some_hub>(m, h);
    };
    config.workers = 1;
  }
  ~run_of_many() {
    hub->places.clear();
    hub->open.clear();
  }

  caf::strong_actor_ptr worker_elsewhere(const std::string& who) {
    auto made = spawn<some_worker>(memory, who);
    return caf::actor_cast<caf::strong_actor_ptr>(made);
  }
};

} // namespace

TEST_CASE_FIXTURE(run_of_many, "a worker lives where the hub says, and here when it says nothing") {
  config.workers = 2;
  hub->places = {worker_elsewhere("far")};
  begin();
  CHECK(hub->asked == std::vector<uint32_t>{0, 1});
  CHECK(memory->started_worker == 2);
  CHECK(memory->made["far"] == 1);
  CHECK(memory->made.count("worker-0") == 0);
  CHECK(memory->made.count("proposer-0") == 0);
  CHECK(memory->made["worker-1"] == 1);
  CHECK(memory->made["proposer-1"] == 1);
  tell(whom, run_ended{"done", true});
  check_end("done", true);
  CHECK(place("far") < place("planner"));
  CHECK(place("scorer") < place("cluster_hub"));
  CHECK(place("cluster_hub") < place("gpu_lease"));
}

TEST_CASE_FIXTURE(
  run_of_many, "a worker that is lost with its machine is placed anew, which is no death") {
  config.restarts_max = 0;
  auto far = worker_elsewhere("far-0");
  hub->places = {far};
  begin();
  for (int i = 1; i < 4; ++i) {
    auto next = worker_elsewhere("far-" + std::to_string(i));
    hub->places = {next};
    caf::anon_send_exit(
      far, i == 1 ? caf::exit_reason::user_shutdown : caf::exit_reason::remote_link_unreachable);
    settle();
    advance(config.back_off_first);
    far = next;
  }
  CHECK(hub->asked.size() == 4);
  CHECK(memory->started_worker == 4);
  CHECK(ends->empty());
  CHECK(journal->count("actor_died") == 0);
  // One that fails by itself is another matter.
  caf::anon_send_exit(far, caf::exit_reason::unhandled_exception);
  settle();
  check_end("worker-0 died", false);
}

TEST_CASE_FIXTURE(run_of_many, "a worker that moves to a node is placed anew, which is no death") {
  config.restarts_max = 0;
  begin();
  CHECK(memory->made["worker-0"] == 1);
  hub->places = {worker_elsewhere("far")};
  tell(caf::actor_cast<caf::actor>(memory->last["worker-0"]),
    caf::exit_msg{{}, to_error({errc::node_lost, "it moves"})});
  advance(config.back_off_first);
  CHECK(hub->asked.size() == 2);
  CHECK(memory->made["worker-0"] == 1);
  CHECK(memory->started_worker == 2);
  CHECK(journal->count("actor_died") == 0);
  CHECK(ends->empty());
}

TEST_CASE_FIXTURE(run_of_many, "a worker that comes while the run ends is sent home") {
  hub->hold = true;
  memory->stubborn = "planner"; // Holds the end up.
  begin();
  auto far = worker_elsewhere("far");
  tell(whom, run_ended{"done", true});
  REQUIRE(hub->open.size() == 1);
  hub->open[0].deliver(far);
  settle();
  CHECK_FALSE(alive(far));
  CHECK(memory->started_worker == 0);
  advance(20s);
  CHECK(ends->size() == 1);
}
