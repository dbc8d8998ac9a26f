#include "actors/gpu_executor.hpp"
#include "actors/gpu_lease.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/scripted_probe.hpp"

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

/// Steps without files: the request names the attempt, the measurement says how the child ended.
struct scripted_steps {
  std::optional<failure> cannot_begin;
  std::vector<child_end> ended;
  /// Given to every measurement.
  std::vector<verdict_status> statuses{verdict_status::passed};
  uint64_t next_child = 100;

  measure_steps steps() {
    measure_steps out;
    out.begin = [this](const measure_request&,
                  std::chrono::nanoseconds deadline) -> result<child_request> {
      if (cannot_begin)
        return tl::unexpected<failure>(*cannot_begin);
      child_request child;
      child.id = next_child++;
      child.deadline = deadline;
      return child;
    };
    out.end = [this](const measure_request&, const child_request&, const child_result& how) {
      ended.push_back(how.end);
      measurement out_of_child;
      out_of_child.device = "mock:h200";
      out_of_child.origin = time_origin::modelled;
      if (how.end != child_end::done)
        out_of_child.failure_text = "runner: " + to_string(how.end);
      else
        for (auto status : statuses) {
          workload_measurement w;
          w.status = status;
          out_of_child.workloads.push_back(w);
        }
      return out_of_child;
    };
    return out;
  }
};

measure_request run_under(uint64_t token, std::chrono::nanoseconds term = 60s) {
  measure_request out;
  out.under = lease{0, token, lease_class::timing, term};
  out.attempt = {"silu", "cuda", 3};
  out.candidate.hash = "c0ffee";
  return out;
}

struct mock_fixture : actor_fixture {
  scripted_steps script;
  fake_journal log = make_fake_journal(*this);
  fake_child_front children = make_fake_child_front(*this);
  fake_broker broker = make_fake_broker(*this);

  gpu_actor start_gpu(gpu_lease_actor whose, std::string boot = {}) {
    gpu_executor_config settings;
    settings.boot = std::move(boot);
    settings.name = "mock:h200#0";
    settings.model = "h200";
    settings.broker = std::move(whose);
    settings.child_front = children.handle;
    settings.events = event_port{log.handle, start};
    settings.steps = script.steps();
    auto gpu = spawn<gpu_executor>(std::move(settings));
    settle();
    return gpu;
  }
  ~mock_fixture() { end_all(); }

  void let_children_run() {
    children->script = [](const child_request&) { return std::nullopt; };
  }
};

struct one_mock : mock_fixture {
  gpu_actor gpu = start_gpu(broker.handle);

  void finish(child_end how = child_end::done, uint64_t id = 100) {
    auto result = child_that_says({}, how);
    result.id = id;
    children.finish(*this, result);
  }
};

TEST_SUITE_BEGIN("gpu mock");

TEST_CASE_FIXTURE(one_mock, "a device reports up when it starts, with its model") {
  REQUIRE(broker->reports.size() == 1);
  CHECK(broker->reports[0].state == device_state::up);
  CHECK(broker->reports[0].model == "h200");
}

TEST_CASE_FIXTURE(one_mock, "a measurement is answered after its lease is released and verified") {
  let_children_run();
  auto measured = ask<measurement>(gpu, run_under(5));
  CHECK(broker->count(device_state::active, 5) == 1);
  REQUIRE(children->requests.size() == 1);
  CHECK_MESSAGE(children->requests[0].deadline == 65s, "behind the last step of the ladder");
  CHECK(children->requests[0].device == "mock:h200#0");
  advance(7s);
  CHECK_FALSE(answered(measured));
  CHECK(broker->commands.empty());
  broker->withhold = true;
  finish();
  REQUIRE(broker->commands.size() == 1);
  CHECK(broker->commands[0].verb == lease_verb::release);
  CHECK(broker->commands[0].token == 5);
  CHECK(broker->commands[0].reason == "done");
  CHECK(broker->count(device_state::verified, 5) == 1);
  CHECK_FALSE(answered(measured));
  broker->acknowledge();
  settle();
  auto m = answer(measured);
  REQUIRE(m);
  CHECK(m->token == 5);
  CHECK(m->attempt == attempt_id{"silu", "cuda", 3});
  CHECK(m->held == 7s);
  CHECK(m->origin == time_origin::modelled);
  CHECK(m->workloads.size() == 1);
  settle();
  CHECK(log->last("measured").gpu == "mock:h200#0");
  CHECK(log->last("measured").candidate == "c0ffee");
}

TEST_CASE_FIXTURE(one_mock, "a token that is not newer than every one seen starts nothing") {
  CHECK(answer(ask<measurement>(gpu, run_under(5))));
  CHECK(refusal(ask<measurement>(gpu, run_under(5))).code == errc::lease_expired);
  CHECK(refusal(ask<measurement>(gpu, run_under(4))).code == errc::lease_expired);
  CHECK(children->requests.size() == 1);
  CHECK(answer(ask<measurement>(gpu, run_under(6))));
}

TEST_CASE_FIXTURE(one_mock, "a lease of another GPU is refused") {
  auto wrong = run_under(5);
  wrong.under.gpu = 3;
  CHECK(refusal(ask<measurement>(gpu, wrong)).code == errc::invalid_input);
  CHECK(children->requests.empty());
}

TEST_CASE_FIXTURE(one_mock, "two measurements never run at the same time") {
  let_children_run();
  auto first = ask<measurement>(gpu, run_under(5));
  CHECK(refusal(ask<measurement>(gpu, run_under(6))).code == errc::refused);
  finish();
  CHECK(answer(first)->token == 5);
  CHECK(children->requests.size() == 1);
}

TEST_CASE_FIXTURE(
  one_mock, "the next measurement may begin while the broker still answers the last") {
  broker->withhold = true;
  auto first = ask<measurement>(gpu, run_under(5));
  let_children_run();
  auto second = ask<measurement>(gpu, run_under(6));
  CHECK(children->requests.size() == 2);
  CHECK_FALSE(answered(first));
  broker->acknowledge();
  settle();
  CHECK(answer(first)->token == 5);
  CHECK_FALSE(answered(second));
}

TEST_CASE_FIXTURE(one_mock, "a runner that broke off is an answer that says why") {
  children->script = [](const child_request&) {
    return scripted_child{child_that_says({}, child_end::no_done), 1s, {}};
  };
  auto measured = ask<measurement>(gpu, run_under(5));
  advance(1s);
  auto m = answer(measured);
  REQUIRE(m);
  CHECK(m->failure_text == "runner: " + to_string(child_end::no_done));
  CHECK(broker->commands.back().reason == "fault");
  CHECK(broker->commands.back().outcome == lease_outcome::fault);
  CHECK(broker->count(device_state::verified, 5) == 1);
}

TEST_CASE_FIXTURE(one_mock, "the release says whether the candidate faulted or ran too long") {
  script.statuses = {verdict_status::passed, verdict_status::timeout};
  CHECK(answer(ask<measurement>(gpu, run_under(5))));
  CHECK(broker->commands.back().reason == "timeout");
  CHECK(broker->commands.back().outcome == lease_outcome::hang);
  script.statuses = {verdict_status::timeout, verdict_status::runtime_error};
  CHECK(answer(ask<measurement>(gpu, run_under(6))));
  CHECK(broker->commands.back().reason == "fault");
  CHECK(broker->commands.back().outcome == lease_outcome::fault);
  script.statuses = {verdict_status::passed};
  CHECK(answer(ask<measurement>(gpu, run_under(7))));
  CHECK(broker->commands.back().outcome == lease_outcome::fine);
}

TEST_CASE_FIXTURE(one_mock, "a job that cannot be made gives the lease back") {
  script.cannot_begin = failure{errc::not_found, "the code is gone"};
  auto m = answer(ask<measurement>(gpu, run_under(5)));
  REQUIRE(m);
  CHECK(m->failure_text == "the code is gone");
  CHECK(children->requests.empty());
  CHECK(broker->count(device_state::verified, 5) == 1);
}

TEST_CASE_FIXTURE(one_mock, "a child front that is full is an answer; nothing ran") {
  children->script = [](const child_request&) {
    return scripted_child{{}, {}, failure{errc::queue_full, "256 children wait"}};
  };
  auto m = answer(ask<measurement>(gpu, run_under(5)));
  REQUIRE(m);
  CHECK(script.ended == std::vector<child_end>{child_end::could_not_start});
  CHECK(alive(gpu));
  CHECK(broker->count(device_state::verified, 5) == 1);
}

TEST_CASE_FIXTURE(one_mock, "a child front that ends during a run takes the device down") {
  let_children_run();
  auto measured = ask<measurement>(gpu, run_under(5));
  end(children.handle);
  CHECK(refusal(measured).code == errc::child_failed);
  CHECK(broker->reports.back().state == device_state::down);
  CHECK(broker->count(device_state::verified, 5) == 0);
  CHECK_FALSE(alive(gpu));
}

TEST_CASE_FIXTURE(one_mock, "an answer that never comes takes the device down") {
  let_children_run();
  auto measured = ask<measurement>(gpu, run_under(5));
  children->promises.clear(); // lost
  advance(90s);
  CHECK(refusal(measured).code == errc::timed_out);
  CHECK(broker->reports.back().state == device_state::down);
  CHECK(broker->count(device_state::verified, 5) == 0);
}

TEST_CASE_FIXTURE(one_mock, "without a child front the device goes down and ends") {
  end(children.handle, caf::exit_reason::kill);
  CHECK(refusal(ask<measurement>(gpu, run_under(5))).code == errc::child_failed);
  CHECK(broker->reports.back().state == device_state::down);
  CHECK(broker->count(device_state::verified, 5) == 0);
  CHECK_FALSE(alive(gpu));
}

// ---- taken back
// ----------------------------------------------------------------------------------

TEST_CASE_FIXTURE(one_mock, "a revoked run is ended; verified comes only after its child is gone") {
  let_children_run();
  children->obeys_cancel = false;
  auto measured = ask<measurement>(gpu, run_under(5));
  children->obeys_terminate = false;
  tell(gpu, lease_revoke{0, 5, "expired"});
  CHECK_MESSAGE(children->terminated == std::vector<uint64_t>{100}, "SIGTERM first");
  CHECK(broker->count(device_state::ended, 5) == 1);
  advance(2s);
  CHECK(children->cancelled.empty());
  advance(1s);
  CHECK(children->cancelled == std::vector<uint64_t>{100});
  CHECK(broker->count(device_state::verified, 5) == 0);
  broker->applied = false; // The broker had ended the lease itself.
  finish(child_end::cancelled);
  CHECK(broker->count(device_state::verified, 5) == 1);
  auto refused = refusal(measured);
  CHECK(refused.code == errc::lease_expired);
  CHECK(refused.what.find("expired") != std::string::npos);
  CHECK_MESSAGE(broker->commands.back().outcome == lease_outcome::infrastructure,
    "nobody is blamed for a lease that was taken back");
}

TEST_CASE_FIXTURE(one_mock, "a result that comes in after the revocation is worth nothing") {
  let_children_run();
  children->obeys_cancel = false;
  children->obeys_terminate = false;
  auto measured = ask<measurement>(gpu, run_under(5));
  tell(gpu, lease_revoke{0, 5, "the holder is gone"});
  finish(child_end::done);
  CHECK(refusal(measured).code == errc::lease_expired);
}

TEST_CASE_FIXTURE(
  one_mock, "a release that the broker calls stale makes the result worth nothing") {
  let_children_run();
  auto measured = ask<measurement>(gpu, run_under(5));
  broker->applied = false; // The revocation is still on its way.
  finish();
  CHECK(refusal(measured).code == errc::lease_expired);
}

TEST_CASE_FIXTURE(one_mock, "an idle device confirms a revocation at once and refuses the token") {
  tell(gpu, lease_revoke{0, 5, "withdrawn"});
  CHECK(broker->count(device_state::verified, 5) == 1);
  CHECK(refusal(ask<measurement>(gpu, run_under(5))).code == errc::lease_expired);
  CHECK(children->requests.empty());
}

TEST_CASE_FIXTURE(one_mock, "a revocation of an older token does not end what runs") {
  let_children_run();
  auto measured = ask<measurement>(gpu, run_under(5));
  tell(gpu, lease_revoke{0, 4, "late"});
  CHECK(children->cancelled.empty());
  finish();
  CHECK(answer(measured)->token == 5);
}

TEST_CASE_FIXTURE(one_mock, "a revocation that crosses the release is not confirmed twice") {
  let_children_run();
  auto measured = ask<measurement>(gpu, run_under(5));
  broker->withhold = true;
  finish();
  tell(gpu, lease_revoke{0, 5, "done"});
  CHECK(broker->count(device_state::verified, 5) == 1);
  broker->acknowledge();
  settle();
  CHECK(answered(measured));
}

// ---- late or never
// -------------------------------------------------------------------------------

TEST_CASE_FIXTURE(one_mock, "a child that outlives the term is ended") {
  let_children_run();
  auto measured = ask<measurement>(gpu, run_under(5));
  advance(59s);
  CHECK(broker->count(device_state::ended, 5) == 0);
  advance(1s);
  CHECK_MESSAGE(broker->count(device_state::ended, 5) == 1, "told at once");
  CHECK(children->terminated.empty());
  advance(2s);
  CHECK(children->terminated == std::vector<uint64_t>{100});
  CHECK(children->cancelled.empty());
  auto m = answer(measured);
  REQUIRE(m);
  CHECK_FALSE(m->failure_text.empty());
  CHECK(broker->commands.back().outcome == lease_outcome::hang);
}

TEST_CASE_FIXTURE(one_mock, "what is said after the end of the term counts for nothing") {
  let_children_run();
  children->obeys_terminate = false;
  auto measured = ask<measurement>(gpu, run_under(5));
  advance(61s);
  finish(child_end::done);
  auto m = answer(measured);
  REQUIRE(m);
  CHECK_FALSE(m->failure_text.empty());
  CHECK(m->workloads.empty());
  CHECK(broker->commands.back().outcome == lease_outcome::hang);
}

TEST_CASE_FIXTURE(one_mock, "a child that does not heed SIGTERM is killed three seconds later") {
  let_children_run();
  children->obeys_terminate = false;
  auto measured = ask<measurement>(gpu, run_under(5));
  advance(64s);
  CHECK(children->terminated.size() == 1);
  CHECK(children->cancelled.empty());
  advance(1s);
  CHECK(children->cancelled.size() == 1);
  CHECK(answered(measured));
}

TEST_CASE_FIXTURE(one_mock, "the timer of a run that is over does not touch the next one") {
  CHECK(answer(ask<measurement>(gpu, run_under(5))));
  advance(40s);
  let_children_run();
  auto second = ask<measurement>(gpu, run_under(6));
  advance(20s);
  CHECK(children->terminated.empty());
  advance(42s);
  CHECK(children->terminated.size() == 1);
}

TEST_CASE_FIXTURE(one_mock, "a child that cannot be ended takes the device down until it is gone") {
  let_children_run();
  children->obeys_cancel = false;
  children->obeys_terminate = false;
  auto measured = ask<measurement>(gpu, run_under(5));
  advance(89s);
  CHECK_FALSE(answered(measured));
  advance(1s);
  CHECK(refusal(measured).code == errc::timed_out);
  CHECK(broker->reports.back().state == device_state::down);
  CHECK(refusal(ask<measurement>(gpu, run_under(6))).code == errc::refused);
  // The broker revokes on the way down; nothing is confirmed while the child may live.
  tell(gpu, lease_revoke{0, 5, "device down"});
  CHECK(broker->count(device_state::verified, 5) == 0);
  finish(child_end::cancelled);
  CHECK(broker->reports.back().state == device_state::up);
  tell(gpu, lease_revoke{0, 5, "came back"});
  CHECK(broker->count(device_state::verified, 5) == 1);
  children->script = nullptr;
  CHECK(answer(ask<measurement>(gpu, run_under(7)))->token == 7);
}

TEST_CASE_FIXTURE(one_mock, "at its end the device ends its child and answers everybody") {
  broker->withhold = true;
  auto finishing = ask<measurement>(gpu, run_under(5));
  let_children_run();
  auto running = ask<measurement>(gpu, run_under(6));
  end(gpu);
  CHECK(refusal(finishing).code == errc::shutting_down);
  CHECK(refusal(running).code == errc::shutting_down);
  CHECK(children->cancelled == std::vector<uint64_t>{101});
}

TEST_CASE_FIXTURE(one_mock, "a broker that is gone makes every result worth nothing") {
  end(broker.handle, caf::exit_reason::kill);
  CHECK(refusal(ask<measurement>(gpu, run_under(5))).code == errc::lease_expired);
  CHECK(alive(gpu));
}

// ---- with the real broker
// ------------------------------------------------------------------------

struct mock_and_broker : mock_fixture {
  gpu_lease_actor real = start_broker();
  gpu_actor gpu = start_gpu(real);
  fake_holder anna = make_fake_holder(*this);
  fake_holder ben = make_fake_holder(*this);

  gpu_lease_actor start_broker() {
    gpu_lease_config settings;
    settings.policy = make_fifo_policy();
    settings.gpus.push_back({"mock:h200#0", "h200", 0});
    settings.events = event_port{log.handle, start};
    return spawn<gpu_lease>(std::move(settings));
  }
  void request(const fake_holder& who, uint64_t number) {
    lease_request what;
    what.request = number;
    REQUIRE(answer(ask_as<lease_ticket>(who.handle, real, what)));
  }
  reply<measurement> measure(const fake_holder& who) {
    measure_request run = run_under(0);
    run.under = who->grants.back().what.granted;
    return ask_as<measurement>(who.handle, gpu, run);
  }
  gpu_phase phase() { return answer(ask<broker_snapshot>(real, broker_query{}))->gpus[0].phase; }
};

TEST_CASE_FIXTURE(mock_and_broker, "who asks again after its answer finds the GPU free") {
  request(anna, 1);
  auto measured = measure(anna);
  CHECK(answer(measured)->token == 1);
  CHECK(phase() == gpu_phase::free);
  request(anna, 2);
  CHECK(anna->grants.size() == 2);
  CHECK(answer(measure(anna))->token == 2);
}

TEST_CASE_FIXTURE(
  mock_and_broker, "a holder that dies during its run: the next runs under a new token") {
  let_children_run();
  request(anna, 1);
  measure(anna);
  request(ben, 1);
  end(anna.handle, caf::exit_reason::kill);
  CHECK(children->terminated.size() == 1);
  REQUIRE(ben->grants.size() == 1);
  children->script = nullptr;
  CHECK(answer(measure(ben))->token == 2);
  CHECK(phase() == gpu_phase::free);
}

TEST_CASE_FIXTURE(
  mock_and_broker, "a device that dies during a run: its holder and its asker are told") {
  let_children_run();
  request(anna, 1);
  auto measured = measure(anna);
  request(ben, 1);
  end(gpu, caf::exit_reason::kill);
  CHECK(refusal(measured).code == errc::shutting_down);
  REQUIRE(anna->ended.size() == 1);
  CHECK(phase() == gpu_phase::lost);
  gpu = start_gpu(real);
  REQUIRE(ben->grants.size() == 1);
  children->script = nullptr;
  CHECK(answer(measure(ben))->token == 2);
}

TEST_CASE_FIXTURE(mock_and_broker, "a child that hangs costs its GPU, not the run") {
  let_children_run();
  children->obeys_cancel = false;
  children->obeys_terminate = false;
  request(anna, 1);
  auto measured = measure(anna);
  request(ben, 1);
  advance(200s);
  CHECK(refusal(measured).code == errc::timed_out);
  CHECK(phase() == gpu_phase::lost);
  CHECK(ben->grants.empty());
  auto gone = child_that_says({}, child_end::cancelled);
  gone.id = 100;
  children.finish(*this, gone);
  REQUIRE(ben->grants.size() == 1);
  CHECK(ben->grants[0].what.granted.token == 2);
}

// ---- renewals, probes, successors
// ----------------------------------------------------------------

TEST_CASE_FIXTURE(one_mock, "a lease is renewed at a third of its TTL while its child runs") {
  let_children_run();
  auto measured = ask<measurement>(gpu, run_under(5));
  advance(9s);
  CHECK(broker->commands.empty());
  advance(1s);
  REQUIRE(broker->commands.size() == 1);
  CHECK(broker->commands[0].verb == lease_verb::renew);
  CHECK(broker->commands[0].token == 5);
  CHECK(broker->commands[0].idle == 0s);
  advance(20s);
  CHECK(broker->commands.size() == 3);
  finish();
  CHECK(answered(measured));
  advance(30s);
  CHECK_MESSAGE(broker->commands.size() == 4, "only the release came after");
}

TEST_CASE_FIXTURE(one_mock, "a lease that is not renewed ends its child") {
  let_children_run();
  auto measured = ask<measurement>(gpu, run_under(5));
  broker->applied = false;
  advance(10s);
  CHECK(children->terminated.size() == 1);
  CHECK(refusal(measured).code == errc::lease_expired);
}

TEST_CASE_FIXTURE(one_mock, "without a word from the broker nothing runs on beyond four fifths") {
  let_children_run();
  auto measured = ask<measurement>(gpu, run_under(5));
  broker->withhold = true;
  advance(23s);
  CHECK(children->terminated.empty());
  advance(1s);
  CHECK(children->terminated.size() == 1);
  broker->acknowledge();
  settle();
  CHECK(refusal(measured).code == errc::lease_expired);
}

TEST_CASE_FIXTURE(one_mock, "an idle device passes a probe, a busy one cannot be probed") {
  tell(gpu, probe_order{0, 10s});
  CHECK(broker->reports.back().state == device_state::probed);
  CHECK(broker->reports.back().probe.outcome == probe_outcome::passed);
  let_children_run();
  ask<measurement>(gpu, run_under(5));
  tell(gpu, probe_order{0, 10s});
  CHECK(broker->reports.back().state == device_state::probed);
  CHECK(broker->reports.back().probe.outcome == probe_outcome::could_not);
}

TEST_CASE_FIXTURE(one_mock, "processes that outlive SIGKILL take the device down for good") {
  let_children_run();
  auto measured = ask<measurement>(gpu, run_under(5));
  auto left = child_that_says({}, child_end::no_done);
  left.id = 100;
  left.group_left = true;
  children.finish(*this, left);
  CHECK(refusal(measured).code == errc::timed_out);
  CHECK(broker->reports.back().state == device_state::down);
  CHECK(broker->count(device_state::verified, 5) == 0);
  advance(600s);
  CHECK(broker->reports.back().state == device_state::down);
}

struct mock_with_canary : mock_fixture {
  std::shared_ptr<scripted_probe> probe = std::make_shared<scripted_probe>();
  gpu_actor gpu;

  mock_with_canary() {
    gpu_executor_config settings;
    settings.name = "mock:h200#0";
    settings.model = "h200";
    settings.broker = broker.handle;
    settings.child_front = children.handle;
    settings.events = event_port{log.handle, start};
    settings.steps = script.steps();
    settings.probe = probe;
    settings.steps.command = [](const std::vector<std::string>& command,
                               std::chrono::nanoseconds deadline) -> result<probe_child> {
      probe_child child;
      child.request.id = 900;
      child.request.argv = command;
      child.request.deadline = deadline;
      return child;
    };
    gpu = spawn<gpu_executor>(std::move(settings));
    settle();
  }
  ~mock_with_canary() { end_all(); }

  void end_child(uint64_t id, child_end how = child_end::done, int32_t status = 0) {
    auto ended = child_that_says({}, how);
    ended.id = id;
    ended.status = status;
    children.finish(*this, ended);
  }
};

TEST_CASE_FIXTURE(mock_with_canary, "a probe starts the canary, and its end is the answer") {
  tell(gpu, probe_order{0, 10s});
  CHECK(broker->reports.back().probe.outcome == probe_outcome::passed);
  children->script = [](const child_request&) {
    auto wrong = child_that_says({}, child_end::no_done);
    wrong.status = 1;
    return scripted_child{wrong, 1s, {}};
  };
  tell(gpu, probe_order{0, 10s});
  advance(1s);
  CHECK(broker->reports.back().probe.outcome == probe_outcome::failed);
  CHECK(children->requests.back().argv == std::vector<std::string>{"canary"});
  CHECK(children->requests.back().device == "mock:h200#0");
}

TEST_CASE_FIXTURE(mock_with_canary, "after a lease that went well no command is run") {
  CHECK(answer(ask<measurement>(gpu, run_under(5))));
  CHECK(probe->occasions == std::vector<probe_occasion>{probe_occasion::after_lease});
  CHECK(children->requests.size() == 1);
  CHECK(broker->count(device_state::verified, 5) == 1);
}

TEST_CASE_FIXTURE(
  mock_with_canary, "after a fault the canary runs between the release and the verified device") {
  let_children_run();
  auto measured = ask<measurement>(gpu, run_under(5));
  end_child(100, child_end::no_done);
  CHECK(broker->commands.back().outcome == lease_outcome::fault);
  CHECK(broker->count(device_state::ended, 5) == 1);
  CHECK(broker->count(device_state::verified, 5) == 0);
  CHECK_MESSAGE(refusal(ask<measurement>(gpu, run_under(6))).code == errc::refused,
    "nothing else runs meanwhile");
  tell(gpu, lease_revoke{0, 5, "released"});
  CHECK(broker->count(device_state::verified, 5) == 0);
  end_child(900, child_end::no_done);
  CHECK(broker->count(device_state::verified, 5) == 1);
  CHECK(broker->reports.back().probe.outcome == probe_outcome::passed);
  CHECK(answer(measured)->failure_text.empty() == false);
}

TEST_CASE_FIXTURE(
  mock_with_canary, "what was measured does not count when the probe after it fails") {
  script.statuses = {verdict_status::passed, verdict_status::runtime_error};
  let_children_run();
  auto measured = ask<measurement>(gpu, run_under(5));
  end_child(100);
  end_child(900, child_end::no_done, 1);
  CHECK(broker->reports.back().probe.outcome == probe_outcome::failed);
  auto why = refusal(measured);
  CHECK(why.code == errc::lease_expired);
  CHECK(why.what.find("probe") != std::string::npos);
}

TEST_CASE_FIXTURE(mock_with_canary, "a canary that gives no answer is no reason to drop a result") {
  script.statuses = {verdict_status::passed, verdict_status::runtime_error};
  let_children_run();
  children->obeys_cancel = false;
  auto measured = ask<measurement>(gpu, run_under(5));
  end_child(100);
  advance(9s);
  CHECK(broker->count(device_state::verified, 5) == 0);
  advance(1s);
  CHECK(broker->count(device_state::verified, 5) == 1);
  CHECK(broker->reports.back().probe.outcome == probe_outcome::could_not);
  CHECK(answer(measured)->token == 5);
}

TEST_CASE_FIXTURE(mock_with_canary, "a probe that hangs has its own deadline and blames nobody") {
  let_children_run();
  children->obeys_cancel = false;
  tell(gpu, probe_order{0, 10s});
  auto before = broker->reports.size();
  advance(9s);
  CHECK(broker->reports.size() == before);
  advance(1s);
  REQUIRE(broker->reports.size() == before + 1);
  CHECK(broker->reports.back().state == device_state::probed);
  CHECK(broker->reports.back().probe.outcome == probe_outcome::could_not);
  CHECK(children->cancelled == std::vector<uint64_t>{900});
  auto late = child_that_says({});
  late.id = 900;
  children.finish(*this, late);
  CHECK_MESSAGE(broker->reports.size() == before + 1, "a late answer is none");
}

TEST_CASE_FIXTURE(mock_and_broker,
  "the successor of a crashed executor gets no lease before the old process group is gone") {
  let_children_run();
  children->obeys_cancel = false; // It dies slowly.
  request(anna, 1);
  measure(anna);
  request(ben, 1);
  end(gpu, caf::exit_reason::kill);
  gpu = start_gpu(real, "1.2");
  advance(1s);
  CHECK(phase() == gpu_phase::lost);
  CHECK(ben->grants.empty());
  auto gone = child_that_says({}, child_end::cancelled);
  gone.id = 100;
  children.finish(*this, gone);
  REQUIRE(ben->grants.size() == 1);
  CHECK(ben->grants[0].what.granted.token == 2);
}

TEST_CASE_FIXTURE(mock_and_broker, "a device that was lost comes back after a passed probe") {
  end(gpu, caf::exit_reason::kill);
  CHECK(phase() == gpu_phase::lost);
  gpu = start_gpu(real, "1.2");
  CHECK(phase() == gpu_phase::free);
  CHECK(log->last("gpu_probe").reason == "passed");
}

TEST_SUITE_END();

} // namespace
