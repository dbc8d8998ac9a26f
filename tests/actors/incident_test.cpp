// What others have already paid for when agents shared GPUs, each as a test of the real broker and
// the real executor: the lesson must hold here.

#include "actors/gpu_executor.hpp"
#include "actors/gpu_lease.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/scripted_probe.hpp"

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

struct shared_gpus : actor_fixture {
  fake_journal log = make_fake_journal(*this);
  fake_child_front children = make_fake_child_front(*this);
  uint64_t next_child = 1;
  uint32_t boots = 0;
  gpu_lease_actor broker;
  std::vector<gpu_actor> gpus;
  fake_holder anna = make_fake_holder(*this);
  fake_holder ben = make_fake_holder(*this);
  std::shared_ptr<scripted_probe> probe = std::make_shared<scripted_probe>();

  void begin(uint32_t count, lease_table_config table = {}) {
    gpu_lease_config settings;
    table.ttl = 30s;
    settings.table = table;
    settings.policy = make_stride_policy();
    for (uint32_t i = 0; i < count; ++i)
      settings.gpus.push_back({.name = "mock:h200#" + std::to_string(i), .model = "h200"});
    settings.events = event_port{log.handle, start};
    broker = spawn<gpu_lease>(std::move(settings));
    settle();
    for (uint32_t i = 0; i < count; ++i)
      gpus.push_back(start_gpu(i));
    children->script = [](const child_request&) { return std::nullopt; };
  }
  ~shared_gpus() {
    gpus.clear();
    end_all();
  }

  gpu_actor start_gpu(uint32_t index) {
    gpu_executor_config settings;
    settings.gpu = index;
    settings.name = "mock:h200#" + std::to_string(index);
    settings.model = "h200";
    settings.boot = "1." + std::to_string(++boots);
    settings.broker = broker;
    settings.child_front = children.handle;
    settings.events = event_port{log.handle, start};
    auto make = [this](std::chrono::nanoseconds deadline) {
      child_request made;
      made.id = next_child++;
      made.deadline = deadline;
      return result<child_request>{made};
    };
    settings.steps.begin = [make](const measure_request&, std::chrono::nanoseconds deadline) {
      return make(deadline);
    };
    settings.steps.end = [](const measure_request&, const child_request&, const child_result& how) {
      measurement out;
      if (how.end != child_end::done)
        out.failure_text = to_string(how.end);
      return out;
    };
    settings.probe = probe;
    settings.steps.command = [make](
                               const std::vector<std::string>&, std::chrono::nanoseconds deadline) {
      return result<probe_child>{probe_child{*make(deadline), nullptr}};
    };
    auto made = spawn<gpu_executor>(std::move(settings));
    settle();
    return made;
  }

  reply<lease_ticket> request(
    const fake_holder& who, uint64_t number, const std::string& candidate = {}) {
    lease_request what;
    what.request = number;
    what.flow = {"silu", "worker"};
    what.candidate = candidate;
    return ask_as<lease_ticket>(who.handle, broker, what);
  }
  reply<measurement> measure(const fake_holder& who, size_t grant) {
    measure_request run;
    run.under = who->grants.at(grant).what.granted;
    return ask_as<measurement>(
      who.handle, caf::actor_cast<gpu_actor>(who->grants.at(grant).executor), run);
  }
  /// Ends the only child that runs.
  void end_child(child_end how = child_end::done) {
    REQUIRE(children->promises.size() == 1);
    auto ended = child_that_says({}, how);
    ended.id = children->promises.begin()->first;
    children.finish(*this, ended);
  }
  broker_snapshot look() { return *answer(ask<broker_snapshot>(broker, broker_query{10})); }
};

TEST_SUITE_BEGIN("incidents");

TEST_CASE_FIXTURE(shared_gpus,
  "incident: a GPU idle for 71 minutes while leased and waited for is an alarm, and taken back") {
  begin(1);
  request(anna, 1); // Never starts anything.
  request(ben, 1);
  CHECK(ben->grants.empty());
  advance(6s);
  CHECK(log->last("alarm").reason == "idle_while_leased");
  CHECK(log->last("lease_withdraw").token == 1);
  REQUIRE(ben->grants.size() == 1);
}

TEST_CASE_FIXTURE(
  shared_gpus, "incident: 43 of 43 calls died waiting for a lock: asking never blocks") {
  begin(1);
  request(anna, 1);
  measure(anna, 0);
  for (uint64_t call = 1; call <= 43; ++call) {
    auto ticket = answer(request(ben, call));
    REQUIRE(ticket);
    CHECK(ticket->ahead == call - 1);
  }
  CHECK(look().waiting == 43);
  CHECK(look().waiters.size() == 10);
}

TEST_CASE_FIXTURE(shared_gpus,
  "incident: a timeout that began before the lock was won: the clock starts at the grant") {
  begin(1);
  request(anna, 1);
  measure(anna, 0);
  request(ben, 1);
  advance(100s);
  end_child();
  auto late = measure(ben, 0);
  advance(119s);
  CHECK_MESSAGE(children->terminated.empty(), "its own 120 s are not over");
  end_child();
  CHECK(answer(late));
}

TEST_CASE_FIXTURE(
  shared_gpus, "incident: harnesses bypassed the lock: the device itself refuses without a token") {
  begin(1);
  measure_request run;
  run.under.gpu = 0;
  run.under.token = 0;
  CHECK(refusal(ask<measurement>(gpus[0], run)).code == errc::lease_expired);
  CHECK(children->requests.empty());
}

TEST_CASE_FIXTURE(shared_gpus,
  "incident: a poisoned context served errors for 22 h: every lease has a new process") {
  begin(1);
  for (uint64_t i = 1; i <= 3; ++i) {
    request(anna, i);
    auto measured = measure(anna, i - 1);
    end_child(i == 1 ? child_end::no_done : child_end::done);
    if (i == 1)
      end_child(); // The canary: what ran has faulted.
    CHECK(answer(measured)->failure_text.empty() == (i != 1));
  }
  CHECK(children->requests.size() == 4);
}

TEST_CASE_FIXTURE(
  shared_gpus, "incident: a kernel that never ends: the executor listens and kills from outside") {
  begin(1);
  children->obeys_terminate = false;
  request(anna, 1);
  measure(anna, 0);
  request(ben, 1);
  end(anna.handle, caf::exit_reason::kill);
  CHECK(children->terminated.size() == 1);
  advance(3s);
  CHECK(children->cancelled.size() == 1);
  REQUIRE(ben->grants.size() == 1);
  CHECK(ben->grants[0].what.granted.token == 2);
}

TEST_CASE_FIXTURE(
  shared_gpus, "incident: a probe blamed the hardware: could not probe is not faulty") {
  begin(1);
  end(gpus[0], caf::exit_reason::kill);
  children->obeys_cancel = false;
  gpus[0] = start_gpu(0); // Comes back suspect; its canary hangs.
  CHECK(look().gpus[0].phase == gpu_phase::suspect);
  advance(60s);
  CHECK(log->last("gpu_probe").reason == "could not probe");
  CHECK_MESSAGE(look().gpus[0].phase == gpu_phase::suspect, "not in quarantine");
  children->script = nullptr; // From now on it answers.
  children->promises.clear();
  advance(5min);
  CHECK(look().gpus[0].phase == gpu_phase::free);
}

TEST_CASE_FIXTURE(
  shared_gpus, "incident: failed probes in a row put a GPU aside until a person has looked") {
  begin(1);
  probe->says = {probe_outcome::failed, "canary 9 % slow"};
  children->script = nullptr;
  end(gpus[0], caf::exit_reason::kill);
  gpus[0] = start_gpu(0);
  advance(2min);
  CHECK(look().gpus[0].phase == gpu_phase::quarantined);
  request(anna, 1);
  CHECK(anna->grants.empty());
  probe->says = {};
  CHECK(
    answer(ask<lease_ack>(broker, broker_command{broker_verb::undrain, "mock:h200#0", "looked at"}))
      ->applied);
  settle();
  CHECK(anna->grants.size() == 1);
}

TEST_CASE_FIXTURE(shared_gpus,
  "incident: supervisor and child deadlocked on one lock: asking twice gives one place in line") {
  begin(1);
  auto first = answer(request(anna, 7));
  auto second = answer(request(anna, 7));
  REQUIRE(first);
  REQUIRE(second);
  CHECK(first->ticket == second->ticket);
  CHECK(anna->grants.size() == 1);
  CHECK(look().waiting == 0);
}

TEST_CASE_FIXTURE(
  shared_gpus, "incident: every job picked cuda:0 while others idled: leases spread over GPUs") {
  begin(3);
  for (uint64_t i = 1; i <= 3; ++i)
    request(anna, i);
  REQUIRE(anna->grants.size() == 3);
  std::set<uint32_t> used;
  for (const auto& grant : anna->grants)
    used.insert(grant.what.granted.gpu);
  CHECK_MESSAGE(used.size() == 3, "and one busy device does not serialise the others");
}

TEST_CASE_FIXTURE(shared_gpus,
  "incident: parallel work on one GPU spoiled what was cached: one child at a time, always") {
  begin(1);
  request(anna, 1);
  request(ben, 1);
  auto first = measure(anna, 0);
  CHECK(ben->grants.empty());
  CHECK(refusal(measure(anna, 0)).code == errc::lease_expired);
  CHECK(children->promises.size() == 1);
  end_child();
  CHECK(answered(first));
  REQUIRE(ben->grants.size() == 1);
}

TEST_CASE_FIXTURE(shared_gpus,
  "incident: one launch failure spoiled innocent candidates: poison is refused by hash") {
  begin(3);
  for (uint64_t i = 1; i <= 2; ++i) {
    request(anna, i, "bad");
    measure(anna, i - 1);
    end_child(child_end::no_done);
    end_child(); // The canary.
  }
  CHECK(anna->grants[0].what.granted.gpu != anna->grants[1].what.granted.gpu);
  auto refused = refusal(request(anna, 3, "bad"));
  CHECK(refused.code == errc::refused);
  CHECK(refused.what.find("mock:h200#0") != std::string::npos);
  CHECK(answer(request(anna, 4, "innocent")));
  CHECK(anna->grants.size() == 3);
}

TEST_CASE_FIXTURE(
  shared_gpus, "a drained GPU ends its lease and gets no other; an unknown name names the known") {
  begin(2);
  request(anna, 1);
  measure(anna, 0);
  auto drain = broker_command{broker_verb::drain, {}, "maintenance"};
  CHECK(answer(ask<lease_ack>(broker, drain))->applied);
  request(ben, 1);
  end_child();
  CHECK(ben->grants.empty());
  CHECK(look().gpus[0].phase == gpu_phase::draining);
  auto wrong =
    answer(ask<lease_ack>(broker, broker_command{broker_verb::drain, "mock:h200#7", {}}));
  CHECK_FALSE(wrong->applied);
  CHECK(wrong->note.find("mock:h200#1") != std::string::npos);
  CHECK(answer(ask<lease_ack>(broker, broker_command{broker_verb::undrain, {}, {}}))->applied);
  settle();
  CHECK(ben->grants.size() == 1);
}

TEST_CASE_FIXTURE(shared_gpus, "a broker that starts anew adopts what an executor still runs") {
  gpu_lease_config settings;
  settings.table.epoch = 2;
  settings.table.ttl = 30s;
  settings.policy = make_fifo_policy();
  settings.gpus.push_back({.name = "mock:h200#0",
    .model = "h200",
    .token_floor = 1024,
    .may_hold_lease_of_before = true});
  settings.events = event_port{log.handle, start};
  broker = spawn<gpu_lease>(std::move(settings));
  settle();
  request(ben, 1);
  CHECK_MESSAGE(ben->grants.empty(), "nothing before its executor has reported");
  auto executor = make_fake_gpu(*this);
  device_report holding;
  holding.state = device_state::holding;
  holding.token = 7;
  holding.boot = "1";
  holding.adopted.request.request = 3;
  holding.adopted.held = 5s;
  CHECK(answer(ask_as<lease_ack>(executor.handle, broker, holding))->applied);
  CHECK(log->last("lease_adopt").token == 7);
  CHECK(look().gpus[0].phase == gpu_phase::active);
  CHECK(look().epoch == 2);
  lease_command done;
  done.token = 7;
  CHECK(answer(ask_as<lease_ack>(executor.handle, broker, done))->applied);
  device_report verified;
  verified.state = device_state::verified;
  verified.token = 7;
  verified.boot = "1";
  CHECK(answer(ask_as<lease_ack>(executor.handle, broker, verified))->applied);
  settle();
  REQUIRE(ben->grants.size() == 1);
  CHECK(ben->grants[0].what.granted.token == 1025);
}

TEST_SUITE_END();

} // namespace
