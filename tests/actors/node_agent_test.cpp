#include "actors/cluster_words.hpp"
#include "actors/measure_key.hpp"
#include "actors/node_agent.hpp"
#include "actors/node_proposer.hpp"
#include "actors/rehearsal.hpp"
#include "actors/search_library.hpp"
#include "actors/template_proposer.hpp"
#include "tests/actors/node_run.hpp"
#include "tests/support/actor_fixture.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <fstream>

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

struct hub_memory {
  std::vector<node_offer> offers;
  std::vector<node_ready> ready;
  std::vector<node_answer> answers;
  std::vector<std::pair<worker_started, caf::strong_actor_ptr>> started;
  std::vector<blobs_offered> offered;
  std::vector<node_leaving> leaving;

  const node_answer& answer_to(uint64_t id) const {
    const node_answer* found = nullptr;
    for (const auto& one : answers)
      if (one.id == id) {
        CHECK_MESSAGE(found == nullptr, "answered twice");
        found = &one;
      }
    REQUIRE_MESSAGE(found != nullptr, "no answer");
    return *found;
  }
  size_t answers_to(uint64_t id) const {
    return static_cast<size_t>(std::count_if(
      answers.begin(), answers.end(), [&](const node_answer& one) { return one.id == id; }));
  }
};

/// Remembers what nodes say.
class fake_hub final : public cluster_hub_actor::base {
public:
  fake_hub(caf::actor_config& config, std::shared_ptr<hub_memory> memory)
    : cluster_hub_actor::base(config), memory_(std::move(memory)) {}

  void on_exit() override { memory_->started.clear(); }

  behavior_type make_behavior() override {
    return {
      [](const cluster_hello&) { return cluster_greeting{}; },
      [this](const node_offer& what, const caf::strong_actor_ptr&, const caf::strong_actor_ptr&) {
        memory_->offers.push_back(what);
      },
      [this](const node_ready& what) { memory_->ready.push_back(what); },
      [this](const node_answer& what) { memory_->answers.push_back(what); },
      [this](const worker_started& what, const caf::strong_actor_ptr& worker) {
        memory_->started.emplace_back(what, worker);
      },
      [this](const blobs_offered& what, const caf::strong_actor_ptr&) {
        memory_->offered.push_back(what);
        return blobs_fetched{};
      },
      [this](const node_leaving& what) { memory_->leaving.push_back(what); },
      [](const place_worker&, const worker_peers&) { return caf::strong_actor_ptr{}; },
      [](const compile_request&) { return compiled_candidate{}; },
      [](const prepare_request&) { return prepared_problem{}; },
      [](const draw_over&) {},
      [](const judge_request&) { return evaluation{}; },
      [](const cluster_query&) { return cluster_snapshot{}; },
      [](const cluster_command&) { return cluster_ack{}; },
      [](const tick&) {},
    };
  }

private:
  std::shared_ptr<hub_memory> memory_;
};

/// Gives one attempt out, and says yes to everything.
struct giving_planner final : planner_actor::base {
  explicit giving_planner(caf::actor_config& config) : planner_actor::base(config) {}
  bool given = false;

  behavior_type make_behavior() override {
    return {[this](const work_request&) -> caf::result<work_reply> {
              if (std::exchange(given, true))
                return make_response_promise<work_reply>();
              work_reply reply{work_kind::assigned, {}, {}};
              reply.work.id = {"softmax", "cuda", 1};
              return reply;
            },
      [](const claim_request&) {
        return claim_reply{true, {}};
      },
      [](const attempt_summary&) {}, [](const drain_request&) {},
      [](const planner_query&) { return planner_snapshot{}; }, [](const start_working&) {},
      [](const peer_restarted&, const caf::strong_actor_ptr&) {}, [](const rerun_request&) {},
      [](const plant_request&) { return plant_reply{}; }, [](const plant_withdrawal&) {},
      [](const plant_close&) {}, [](const tick&) {}};
  }
};

struct keeper_script {
  std::shared_ptr<blob_store> from;
  std::shared_ptr<blob_store> to;
  std::vector<blob_fetch> fetches;
  std::optional<failure> fails;
};

/// Copies from store to store, as if the wire were nothing.
class fake_keeper final : public blob_keeper_actor::base {
public:
  fake_keeper(caf::actor_config& config, std::shared_ptr<keeper_script> script)
    : blob_keeper_actor::base(config), script_(std::move(script)) {}

  behavior_type make_behavior() override {
    return {
      [this](const blob_fetch& what, const caf::strong_actor_ptr&) -> caf::result<blobs_fetched> {
        script_->fetches.push_back(what);
        if (script_->fails)
          return to_error(*script_->fails);
        for (const auto& ref : what.blobs)
          if (!script_->to->has(ref))
            copy_blob(*script_->from, *script_->to, ref);
        return blobs_fetched{};
      },
      [](const blob_pull&) {},
      [](const blob_piece&) {},
      [](const tick&) {},
    };
  }

private:
  std::shared_ptr<keeper_script> script_;
};

struct one_node : actor_fixture {
  travelling_run run;
  temporary_folder there;
  fake_child_front children = make_fake_child_front(*this);
  std::shared_ptr<keeper_script> keeper = std::make_shared<keeper_script>();
  std::shared_ptr<hub_memory> hub = std::make_shared<hub_memory>();
  cluster_hub_actor hub_actor;
  std::vector<node_news> news;
  own_node_agent_actor agent;
  uint64_t next_task = 1;

  one_node() {
    children->script = [](const child_request& what) {
      return scripted_child{child_that_says(child_lines(what)), 1s, {}};
    };
    keeper->from = run.here->blobs;
    keeper->to = std::make_shared<blob_store>(*blob_store::open(there.path / "blobs"));
  }
  ~one_node() { end_all(); }

  void begin(bool sleeps = false) {
    node_agent_config config;
    config.node = "n1";
    config.boot = "b1";
    node_agent_device device;
    device.what.name = sleeps ? "sleep#0" : "mock:h200#0";
    device.what.label = sleeps ? "sleep" : "mock:h200";
    device.what.sleep_ns = 100'000'000;
    device.what.arch = "sm_90a";
    const auto& facts = run.here->facts;
    device.what.sm_count = facts.sm_count;
    device.what.shared_per_block = facts.smem_per_block;
    device.what.shared_per_sm = facts.smem_per_sm;
    device.what.l2_bytes = facts.l2_bytes;
    device.runner_name = sleeps ? "" : "mock:h200";
    config.devices = {device};
    config.compile_slots = 1;
    config.workers = 2;
    config.device_code = {"/usr/bin/clang++-19", "clang-19.1.7"};
    config.folders.directory = there.path / "work";
    config.folders.programs = there.path;
    config.folders.blobs = keeper->to;
    config.make_child_front = [this](caf::actor_system&) { return children.handle; };
    config.make_keeper = [this](
                           caf::actor_system& system) { return system.spawn<fake_keeper>(keeper); };
    config.on_news = [this](const node_news& what) { news.push_back(what); };
    agent = spawn<node_agent>(std::move(config));
    settle();
  }

  /// A hub has greeted the node.
  void connect() {
    hub_actor = spawn<fake_hub>(hub);
    tell(agent, cluster_greeting{}, caf::actor_cast<caf::strong_actor_ptr>(hub_actor));
  }

  void welcome(const run_terms& terms, std::vector<std::string> prepared = {}) {
    node_welcome yes;
    yes.taken = true;
    yes.run = terms.run;
    yes.terms = to_json(terms);
    yes.prepared = std::move(prepared);
    tell(agent, yes, caf::strong_actor_ptr{});
  }

  void join() {
    begin();
    connect();
    welcome(run.terms(), {"softmax"});
    advance(1s);
    REQUIRE(hub->ready.size() == 1);
    REQUIRE_MESSAGE(hub->ready[0].able, hub->ready[0].reason);
    REQUIRE(news.back().what == node_news::kind::ready);
  }

  node_task task(node_task_kind kind, std::chrono::nanoseconds deadline = 60s) {
    node_task out;
    out.id = next_task++;
    out.kind = kind;
    out.deadline = deadline;
    if (kind == node_task_kind::measure || kind == node_task_kind::quiet
      || kind == node_task_kind::probe)
      out.device = "mock:h200#0";
    return out;
  }

  const node_answer& done(const node_task& what, std::chrono::nanoseconds after = 1s) {
    tell(agent, what);
    advance(after);
    return hub->answer_to(what.id);
  }

  candidate_ref candidate() {
    assignment work;
    work.id = {"softmax", "cuda", 0};
    work.kind = attempt_kind::baseline;
    work.graph = *run.here->blobs->put(run.here->problems.at("softmax").graph_json);
    search_library library;
    auto proposed = propose_for(*run.here, work, library, search_strategy::guided);
    REQUIRE_MESSAGE(proposed, (proposed ? "" : proposed.error().what));
    return proposed->candidate;
  }

  node_task compile_task() {
    auto out = task(node_task_kind::compile);
    out.compile = {{"softmax", "cuda", 1}, candidate(), "h200"};
    return out;
  }

  /// Ready to be measured: its code lies on the node, as if it had been compiled here.
  node_task measure_task() {
    auto compiling = compile_task();
    auto made = done(compiling);
    REQUIRE_MESSAGE(!made.failed, made.what);
    auto out = task(node_task_kind::measure);
    out.measure.attempt = {"softmax", "cuda", 1};
    out.measure.candidate = compiling.compile.candidate;
    out.measure.units = made.compiled.units;
    out.measure.under.token = 5;
    for (const auto& unit : made.compiled.units) // The coordinator has fetched them.
      copy_blob(*keeper->to, *keeper->from, unit.code);
    return out;
  }

  node_task judge_task(const node_task& of, const measurement& measured) {
    auto out = task(node_task_kind::judge);
    out.judge.attempt = of.measure.attempt;
    out.judge.candidate = of.measure.candidate;
    out.judge.measured = measured;
    return out;
  }

  worker_peers peers() {
    auto somebody = caf::actor_cast<caf::strong_actor_ptr>(hub_actor);
    return {somebody, somebody, somebody, somebody, somebody, 3s};
  }
};

} // namespace

TEST_CASE_FIXTURE(one_node, "a node offers what it has, and is ready once it can work") {
  begin();
  connect();
  REQUIRE(hub->offers.size() == 1);
  const auto& offer = hub->offers[0];
  CHECK(offer.node == "n1");
  CHECK(offer.boot == "b1");
  CHECK(offer.devices.at(0).name == "mock:h200#0");
  CHECK(offer.compile_slots == 1);
  CHECK(offer.toolchain == "clang-19.1.7");
  CHECK(offer.oracle);
  CHECK(offer.held.empty());
  welcome(run.terms(), {"softmax"});
  CHECK_MESSAGE(hub->ready.empty(), "the problem is being prepared");
  advance(1s);
  REQUIRE(hub->ready.size() == 1);
  CHECK(hub->ready[0].able);
  CHECK(children->requests.at(0).profile == child_profile::oracle);
  CHECK_FALSE(keeper->fetches.empty());
}

TEST_CASE_FIXTURE(one_node, "a node that cannot work says why and offers itself again later") {
  begin();
  connect();
  auto terms = run.terms();
  SUBCASE("devices of another shape") {
    terms.facts.sm_count = 114;
  }
  SUBCASE("an interpreter that is not here") {
    terms.oracle = "torch";
  }
  SUBCASE("files that do not arrive") {
    keeper->fails = failure{errc::io_failed, "disk full"};
  }
  welcome(terms);
  REQUIRE(hub->ready.size() == 1);
  CHECK_FALSE(hub->ready[0].able);
  CHECK_FALSE(hub->ready[0].reason.empty());
  CHECK(news.back().what == node_news::kind::turned_away);
  keeper->fails.reset();
  connect();
  CHECK(hub->offers.size() == 2);
}

TEST_CASE_FIXTURE(one_node, "terms that do not read end no node") {
  begin();
  connect();
  node_welcome odd;
  odd.taken = true;
  odd.terms = "{}";
  tell(agent, odd, caf::strong_actor_ptr{});
  CHECK_FALSE(hub->ready.at(0).able);
  CHECK(alive(agent));
}

TEST_CASE_FIXTURE(one_node, "a node that is turned away, or not answered, connects again") {
  begin();
  connect();
  SUBCASE("turned away") {
    node_welcome no;
    no.reason = "the name is taken";
    tell(agent, no, caf::strong_actor_ptr{});
    CHECK(news.back().text == "the name is taken");
  }
  SUBCASE("not answered") {
    advance(30s);
  }
  REQUIRE(news.size() == 1);
  CHECK(news.back().what == node_news::kind::turned_away);
  welcome(run.terms());
  CHECK_MESSAGE(hub->ready.empty(), "it has given that hub up");
}

TEST_CASE_FIXTURE(one_node, "a node that is refused for good ends with the reason") {
  begin();
  connect();
  node_welcome no;
  no.reason = std::string(refused_for_good) + "its certificate is of \"n2\"";
  tell(agent, no, caf::strong_actor_ptr{});
  REQUIRE(news.size() == 1);
  CHECK(news[0].what == node_news::kind::broken);
  CHECK(news[0].text == no.reason);
  CHECK_FALSE(alive(agent));
}

TEST_CASE_FIXTURE(one_node, "each kind of task is done and answered") {
  join();
  auto compiling = compile_task();
  auto compiled = done(compiling);
  REQUIRE_MESSAGE(!compiled.failed, compiled.what);
  CHECK(compiled.compiled.status == verdict_status::passed);
  CHECK(keeper->to->has(compiled.compiled.units.at(0).code));

  auto preparing = task(node_task_kind::prepare);
  preparing.prepare.problem = "softmax";
  auto children_before = children->requests.size();
  auto prepared = done(preparing, 0s);
  CHECK(prepared.prepared.status == verdict_status::passed);
  CHECK_MESSAGE(children->requests.size() == children_before, "it is prepared already");

  auto measuring = measure_task();
  auto measured = done(measuring);
  REQUIRE_MESSAGE(!measured.failed, measured.what);
  CHECK(measured.ended.end == child_end::done);
  CHECK(measured.ended.lines.empty());
  CHECK(measured.measured.attempt == measuring.measure.attempt);
  CHECK(measured.measured.token == 5);
  CHECK(measured.measured.workloads.size() == 2);
  CHECK(children->requests.back().device == "mock:h200#0");
  const auto outputs = measured.measured.output_folder;
  CHECK(std::filesystem::exists(outputs));

  auto judged = done(judge_task(measuring, measured.measured));
  REQUIRE_MESSAGE(!judged.failed, judged.what);
  CHECK(judged.judged.workloads.size() == 2);
  CHECK_FALSE(std::filesystem::exists(outputs));

  auto ending = task(node_task_kind::end_draw);
  ending.over.draw = "softmax/cuda/1";
  CHECK_FALSE(done(ending, 0s).failed);
  CHECK_FALSE(done(task(node_task_kind::quiet), 0s).failed);

  auto probing = task(node_task_kind::probe);
  probing.command = {"gristmill-runner", "--canary", "mock:h200"};
  children->script = [](const child_request&) {
    scripted_child out;
    out.result.end = child_end::no_done;
    out.result.log = "fine";
    return out;
  };
  CHECK(done(probing).ended.log == "fine");
}

TEST_CASE_FIXTURE(one_node, "what makes no sense is refused by an answer, and the node goes on") {
  begin();
  connect();
  auto early = task(node_task_kind::compile);
  CHECK(done(early, 0s).code == errc::node_lost);
  welcome(run.terms(), {"softmax"});
  advance(1s);

  auto unknown = task(node_task_kind::measure);
  unknown.device = "cuda:0";
  CHECK(done(unknown, 0s).code == errc::not_found);

  auto own_program = task(node_task_kind::probe);
  own_program.command = {"/bin/sh", "-c", "true"};
  CHECK(done(own_program, 0s).code == errc::refused);

  auto elsewhere = task(node_task_kind::judge);
  elsewhere.judge.measured.output_folder = (there.path / "blobs").string();
  CHECK(done(elsewhere, 0s).code == errc::invalid_input);
  CHECK(std::filesystem::exists(there.path / "blobs"));

  auto gone = task(node_task_kind::judge);
  gone.judge.measured.output_folder =
    (there.path / "work" / "run-1" / "jobs" / "runner-9").string();
  CHECK_MESSAGE(done(gone, 0s).code == errc::node_lost, "it is to be measured again");

  auto no_problem = task(node_task_kind::prepare);
  no_problem.prepare.problem = "unknown";
  CHECK(done(no_problem, 0s).code == errc::not_found);

  auto no_units = task(node_task_kind::measure);
  no_units.measure.attempt.problem = "softmax";
  CHECK(done(no_units, 0s).failed);
  CHECK(alive(agent));
  CHECK(done(compile_task()).compiled.status == verdict_status::passed);
}

TEST_CASE_FIXTURE(one_node, "a full disk and a broken child fail the task, not the node") {
  join();
  keeper->fails = failure{errc::io_failed, "no space left on device"};
  auto full = done(compile_task(), 0s);
  CHECK(full.code == errc::io_failed);
  CHECK(full.what.find("no space left") != std::string::npos);
  keeper->fails = failure{errc::timed_out, "nothing came for 120 s"};
  auto slow = done(compile_task(), 0s);
  CHECK_MESSAGE(slow.code == errc::io_failed, "the work itself has not begun");
  CHECK(slow.what.find("nothing came") != std::string::npos);
  keeper->fails.reset();
  children->script = [](const child_request&) {
    scripted_child out;
    out.result.end = child_end::could_not_start;
    out.result.log = "no such program";
    return out;
  };
  auto broken = done(compile_task());
  CHECK(broken.code == errc::child_failed);
  CHECK(broken.what.find("no such program") != std::string::npos);
  CHECK(alive(agent));
}

TEST_CASE_FIXTURE(one_node, "a doubled task is done once") {
  join();
  auto what = measure_task();
  auto before = children->requests.size();
  tell(agent, what);
  tell(agent, what);
  advance(1s);
  tell(agent, what);
  advance(1s);
  CHECK(children->requests.size() == before + 1);
  CHECK(hub->answers_to(what.id) == 1);
}

TEST_CASE_FIXTURE(one_node, "a task that outlives its deadline is ended and answered once") {
  join();
  auto what = measure_task();
  what.deadline = 5s;
  children->script = [](const child_request&) { return std::nullopt; };
  SUBCASE("its child obeys") {
    auto late = done(what, 5s);
    CHECK_FALSE(late.failed);
    CHECK(late.ended.end == child_end::cancelled);
    CHECK_FALSE(late.measured.failure_text.empty());
  }
  SUBCASE("its child does not") {
    children->obeys_cancel = false;
    tell(agent, what);
    advance(5s);
    CHECK(children->cancelled.size() == 1);
    CHECK(hub->answers_to(what.id) == 0);
    advance(10s);
    CHECK(hub->answer_to(what.id).code == errc::timed_out);
    auto late = child_that_says({}, child_end::cancelled);
    late.id = children->requests.back().id;
    children.finish(*this, late);
    CHECK(hub->answers_to(what.id) == 1);
  }
  auto compiling = compile_task();
  compiling.compile.candidate.source = *run.here->blobs->put("// another one");
  compiling.deadline = 5s;
  CHECK(done(compiling, 5s).code == errc::timed_out);
}

TEST_CASE_FIXTURE(one_node, "a cancelled task is answered by what came of it") {
  join();
  auto what = measure_task();
  children->script = [](const child_request&) { return std::nullopt; };
  tell(agent, what);
  tell(agent, node_task_cancel{what.id, true});
  CHECK(children->terminated.size() == 1);
  tell(agent, node_task_cancel{what.id, false});
  CHECK(hub->answer_to(what.id).ended.end == child_end::cancelled);
  tell(agent, node_task_cancel{999, false});
  CHECK(alive(agent));
}

TEST_CASE_FIXTURE(one_node, "quiet is answered when the measurement has ended, and not before") {
  join();
  auto what = measure_task();
  tell(agent, what);
  auto quiet = task(node_task_kind::quiet);
  tell(agent, quiet);
  CHECK(hub->answers_to(quiet.id) == 0);
  advance(1s);
  CHECK(hub->answers_to(quiet.id) == 1);
}

TEST_CASE_FIXTURE(
  one_node, "what measures when the coordinator goes is handed in once to the one that comes") {
  join();
  auto what = measure_task();
  tell(agent, what);
  end(hub_actor, caf::exit_reason::kill);
  CHECK(news.back().what == node_news::kind::hub_lost);
  advance(1s);
  CHECK_MESSAGE(hub->answers_to(what.id) == 0, "nobody is there");
  connect();
  REQUIRE(hub->offers.size() == 2);
  CHECK(hub->offers[1].run == "run-1");
  REQUIRE(hub->offers[1].held.size() == 1);
  auto held = hub->offers[1].held[0];
  CHECK(held.key == measure_key(what.measure));
  CHECK(held.device == "mock:h200#0");
  CHECK(std::filesystem::exists(held.measured.output_folder));
  auto before = children->requests.size();
  welcome(run.terms(), {"softmax"});
  CHECK_MESSAGE(hub->ready.size() == 2, "all that was prepared is here still");
  CHECK(children->requests.size() == before);
  auto judged = done(judge_task(what, held.measured));
  CHECK_MESSAGE(!judged.failed, judged.what);
  CHECK_FALSE(std::filesystem::exists(held.measured.output_folder));
  end(hub_actor, caf::exit_reason::kill);
  connect();
  CHECK_MESSAGE(hub->offers.at(2).held.empty(), "it has been judged");
}

TEST_CASE_FIXTURE(
  one_node, "what still measures when the next coordinator comes answers when it is asked for") {
  join();
  auto what = measure_task();
  tell(agent, what);
  end(hub_actor, caf::exit_reason::kill);
  connect();
  CHECK(hub->offers.at(1).held.empty());
  welcome(run.terms(), {"softmax"});
  auto again = what;
  again.id = 100;
  again.measure.attempt.ordinal = 7;
  again.measure.under.token = 9;
  CHECK_MESSAGE(done(again, 0s).code == errc::node_lost, "the device is at work");
  advance(1s);
  again.id = 101;
  auto before = children->requests.size();
  auto measured = done(again, 0s);
  CHECK(children->requests.size() == before);
  CHECK_FALSE(measured.failed);
  CHECK(measured.what == "held");
  CHECK(measured.measured.token == 9);
  CHECK(measured.measured.attempt.ordinal == 7);
  CHECK(std::filesystem::exists(measured.measured.output_folder));
  again.id = 102;
  tell(agent, again);
  CHECK_MESSAGE(children->requests.size() == before + 1, "only once");
}

TEST_CASE_FIXTURE(one_node, "what was told and never judged is offered again") {
  join();
  auto what = measure_task();
  auto measured = done(what);
  tell(agent, node_farewell{"its stay is over"});
  CHECK(news.back().what == node_news::kind::hub_lost);
  connect();
  REQUIRE(hub->offers.at(1).held.size() == 1);
  CHECK(hub->offers[1].held[0].measured.output_folder == measured.measured.output_folder);
}

TEST_CASE_FIXTURE(one_node, "a farewell of an earlier stay does not end the one that begins") {
  join();
  tell(agent, node_farewell{"its stay is over"});
  connect();
  tell(agent, node_farewell{"it has connected anew"});
  welcome(run.terms());
  CHECK(hub->ready.size() == 2);
  CHECK(news.back().what == node_news::kind::ready);
}

TEST_CASE_FIXTURE(one_node, "nothing of a run is left when it is over, and another one may come") {
  join();
  auto what = measure_task();
  auto measured = done(what);
  auto running = measure_task();
  tell(agent, running);
  tell(agent, node_farewell{std::string(run_is_over)});
  CHECK(news.back().what == node_news::kind::run_over);
  CHECK_FALSE(std::filesystem::exists(there.path / "work" / "run-1"));
  advance(2s);
  CHECK(hub->answers_to(running.id) == 0);
  connect();
  CHECK(hub->offers.at(1).held.empty());
  auto terms = run.terms();
  terms.run = "run-2";
  welcome(terms);
  CHECK(hub->ready.size() == 2);
  CHECK(std::filesystem::exists(there.path / "work" / "run-2"));
}

TEST_CASE_FIXTURE(one_node, "a node that comes while the run ends hears that it is over") {
  begin();
  connect();
  node_welcome no;
  no.reason = std::string(run_is_over);
  tell(agent, no, caf::strong_actor_ptr{});
  REQUIRE(news.size() == 1);
  CHECK(news[0].what == node_news::kind::run_over);
}

TEST_CASE_FIXTURE(one_node, "a measurement of another run is never offered") {
  join();
  auto what = measure_task();
  tell(agent, what);
  end(hub_actor, caf::exit_reason::kill);
  connect();
  auto terms = run.terms();
  terms.run = "run-2";
  welcome(terms); // While the measurement still runs.
  advance(2s);
  end(hub_actor, caf::exit_reason::kill);
  connect();
  CHECK(hub->offers.at(2).run == "run-2");
  CHECK(hub->offers.at(2).held.empty());
}

TEST_CASE_FIXTURE(one_node, "workers are hosted up to the limit, and end with their hub") {
  join();
  for (uint32_t index : {4u, 4u, 5u, 6u})
    tell(agent, worker_order{index, false}, peers());
  REQUIRE(hub->started.size() == 4);
  CHECK(hub->started[0].first.started);
  CHECK(hub->started[0].first.index == 4);
  CHECK_MESSAGE(hub->started[1].second == hub->started[0].second, "a doubled order");
  CHECK(hub->started[2].first.started);
  CHECK_FALSE_MESSAGE(hub->started[3].first.started, "two places");
  CHECK_FALSE(hub->started[3].first.reason.empty());
  auto first = caf::actor_cast<worker_actor>(hub->started[0].second);
  auto second = caf::actor_cast<worker_actor>(hub->started[2].second);
  tell(agent, worker_order{4, true}, worker_peers{});
  CHECK_FALSE(alive(first));
  CHECK(alive(second));
  end(hub_actor, caf::exit_reason::kill);
  CHECK_FALSE(alive(second));
}

TEST_CASE_FIXTURE(one_node, "an idea of a node is told once the coordinator has its bytes") {
  begin();
  connect();
  auto terms = run.terms();
  for (const auto& ref : blobs_of(terms))
    copy_blob(*keeper->from, *keeper->to, ref);
  auto made = make_node_context(terms, {there.path / "run", there.path, keeper->to, "", {}});
  REQUIRE_MESSAGE(made, (made ? "" : made.error().what));
  node_proposer_config config;
  config.context = std::make_shared<const run_context>(*made);
  config.inner = spawn<template_proposer>(config.context);
  config.keeper = spawn<fake_keeper>(keeper);
  config.hub = hub_actor;
  auto inner = config.inner;
  auto proposer = spawn<node_proposer>(std::move(config));
  propose_request request;
  request.work.id = {"softmax", "cuda", 0};
  request.work.kind = attempt_kind::baseline;
  request.work.graph = *keeper->from->put(run.here->problems.at("softmax").graph_json);
  // It came with the problem's files, and the cache has let it go.
  std::filesystem::remove(*keeper->to->path(request.work.graph));
  SUBCASE("all is well") {
    auto idea = answer(ask<proposal>(proposer, request));
    REQUIRE(idea);
    REQUIRE(hub->offered.size() == 1);
    CHECK(
      hub->offered[0].blobs == std::vector<blob_ref>{idea->candidate.source, idea->candidate.plan});
    CHECK_MESSAGE(keeper->to->has(request.work.graph), "fetched before it was needed");
  }
  SUBCASE("what was given by file is with the coordinator already") {
    request.work.kind = attempt_kind::planted;
    request.work.given = candidate();
    CHECK(answer(ask<proposal>(proposer, request)));
    CHECK(hub->offered.empty());
  }
  SUBCASE("the graph does not arrive") {
    keeper->fails = failure{errc::io_failed, "no space left on device"};
    CHECK(refusal(ask<proposal>(proposer, request)).code == errc::io_failed);
  }
  end(proposer);
  CHECK_FALSE_MESSAGE(alive(inner), "it ends with the one around it");
}

TEST_CASE_FIXTURE(one_node, "a worker whose proposer asks models stays with the coordinator") {
  begin();
  connect();
  auto terms = run.terms();
  terms.proposer = "llm";
  welcome(terms);
  tell(agent, worker_order{0, false}, peers());
  CHECK_FALSE(hub->started.at(0).first.started);
  CHECK(hub->started[0].first.reason.find("llm") != std::string::npos);
  tell(agent, worker_order{1, false}, worker_peers{});
  CHECK_FALSE(hub->started.at(1).first.started);
}

TEST_CASE_FIXTURE(one_node, "a node that leaves lets its measurement end and be judged") {
  join();
  tell(agent, worker_order{0, false}, peers());
  auto what = measure_task();
  tell(agent, what);
  tell(agent, drain_request{"told to end"});
  CHECK(hub->leaving.size() == 1);
  CHECK_FALSE(alive(caf::actor_cast<worker_actor>(hub->started.at(0).second)));
  CHECK(done(compile_task(), 0s).code == errc::node_lost);
  advance(20s);
  CHECK_MESSAGE(alive(agent), "its outputs wait for a judge");
  auto measured = hub->answer_to(what.id);
  CHECK_FALSE(done(judge_task(what, measured.measured)).failed);
  SUBCASE("the hub lets it go") {
    tell(agent, node_farewell{"told to end"});
  }
  SUBCASE("nobody says anything") {
    advance(10s);
  }
  CHECK_FALSE(alive(agent));
  CHECK(news.back().what == node_news::kind::left);
}

TEST_CASE_FIXTURE(one_node, "a node that leaves is patient for two minutes, or until told twice") {
  join();
  auto what = measure_task();
  what.deadline = 1h;
  children->script = [](const child_request&) { return std::nullopt; };
  tell(agent, what);
  tell(agent, drain_request{"told to end"});
  SUBCASE("two minutes") {
    advance(119s);
    CHECK(alive(agent));
    advance(1s);
  }
  SUBCASE("told twice") {
    tell(agent, drain_request{"at once"});
  }
  CHECK_FALSE(alive(agent));
  CHECK(children->cancelled.size() == 1);
}

TEST_CASE_FIXTURE(one_node, "a node without a hub leaves at once") {
  begin();
  tell(agent, drain_request{"told to end"});
  CHECK_FALSE(alive(agent));
  CHECK(news.back().what == node_news::kind::left);
}

TEST_CASE_FIXTURE(one_node, "in a rehearsal a measurement is a wait, and says so") {
  begin(true);
  connect();
  welcome(run.terms(true), {"softmax"});
  CHECK(hub->ready.at(0).able);
  auto what = task(node_task_kind::measure);
  what.device = "sleep#0";
  tell(agent, what);
  advance(99ms);
  CHECK(hub->answers_to(what.id) == 0);
  advance(1ms);
  auto slept = hub->answer_to(what.id);
  CHECK(slept.measured.origin == time_origin::not_a_measurement);
  CHECK(slept.ended.end == child_end::done);
  CHECK(children->requests.empty());
  auto cancelled = task(node_task_kind::measure);
  cancelled.device = "sleep#0";
  tell(agent, cancelled);
  tell(agent, node_task_cancel{cancelled.id, false});
  CHECK(hub->answer_to(cancelled.id).ended.end == child_end::cancelled);
  auto compiling = task(node_task_kind::compile);
  CHECK(done(compiling, 0s).compiled.status == verdict_status::passed);
}

TEST_CASE_FIXTURE(one_node, "a worker waits for a lease as long as one of the coordinator's own") {
  begin(true);
  connect();
  welcome(run.terms(true), {"softmax"});
  auto broker = make_fake_broker(*this);
  auto with = peers();
  with.planner = caf::actor_cast<caf::strong_actor_ptr>(spawn<giving_planner>());
  with.compiler = caf::actor_cast<caf::strong_actor_ptr>(spawn<rehearsal_compiler>());
  with.lease = caf::actor_cast<caf::strong_actor_ptr>(broker.handle);
  tell(agent, worker_order{0, false}, with);
  tell(caf::actor_cast<worker_actor>(hub->started.at(0).second), start_working{});
  advance(1s);
  REQUIRE(broker->requests.size() == 1);
  CHECK(broker->requests[0].what.patience == 24h);
}

TEST_CASE_FIXTURE(one_node, "a node whose children have lost their front ends, and says so") {
  join();
  end(children.handle, caf::exit_reason::kill);
  CHECK_FALSE(alive(agent));
  CHECK(news.back().what == node_news::kind::broken);
  CHECK(hub->leaving.size() == 1);
}
