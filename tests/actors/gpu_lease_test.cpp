#include "actors/gpu_lease.hpp"
#include "actors/gpu_sleep.hpp"
#include "tests/support/actor_fixture.hpp"

#include <random>

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

struct broker_fixture : actor_fixture {
  fake_journal log = make_fake_journal(*this);
  gpu_lease_actor broker;

  void start_broker(uint32_t gpus, lease_table_config table = {}, const char* policy = "fifo") {
    gpu_lease_config settings;
    settings.table = table;
    settings.policy = *policy_by_name(policy);
    for (uint32_t i = 0; i < gpus; ++i)
      settings.gpus.push_back({"mock:h200#" + std::to_string(i), "h200", 0});
    settings.events = event_port{log.handle, start};
    broker = spawn<gpu_lease>(std::move(settings));
    settle();
  }

  lease_ack report(const fake_gpu& who, device_state state, uint64_t token = 0, uint32_t gpu = 0) {
    device_report what;
    what.gpu = gpu;
    what.state = state;
    what.token = token;
    what.model = "h200";
    what.reason = "test";
    return *answer(ask_as<lease_ack>(who.handle, broker, what));
  }

  reply<lease_ticket> request(const fake_holder& who, uint64_t number) {
    lease_request what;
    what.request = number;
    what.flow = {"silu", "worker"};
    what.need = "h200";
    what.attempt = "silu/cuda/" + std::to_string(number);
    return ask_as<lease_ticket>(who.handle, broker, what);
  }

  lease_ack command(const fake_holder& who, lease_verb verb, uint64_t number, uint64_t token = 0) {
    lease_command what;
    what.verb = verb;
    what.request = number;
    what.token = token;
    what.reason = "test";
    return *answer(ask_as<lease_ack>(who.handle, broker, what));
  }

  gpu_snapshot gpu(uint32_t index = 0) {
    return answer(ask<broker_snapshot>(broker, broker_query{}))->gpus.at(index);
  }
  uint32_t waiting() { return answer(ask<broker_snapshot>(broker, broker_query{}))->waiting; }
};

struct one_gpu : broker_fixture {
  fake_gpu executor = make_fake_gpu(*this);
  fake_holder anna = make_fake_holder(*this);
  fake_holder ben = make_fake_holder(*this);

  one_gpu() {
    start_broker(1);
    report(executor, device_state::up);
  }

  /// Ends the lease as an executor does.
  void release(uint64_t token) {
    lease_command done;
    done.token = token;
    done.reason = "done";
    answer(ask_as<lease_ack>(executor.handle, broker, done));
    report(executor, device_state::verified, token);
  }
};

TEST_SUITE_BEGIN("gpu lease");

TEST_CASE_FIXTURE(one_gpu, "a free GPU is granted at once, pushed with its executor") {
  auto ticket = answer(request(anna, 7));
  REQUIRE(ticket);
  CHECK(ticket->request == 7);
  REQUIRE(anna->grants.size() == 1);
  CHECK(anna->grants[0].what.request == 7);
  CHECK(anna->grants[0].what.granted.gpu == 0);
  CHECK(anna->grants[0].what.granted.token == 1);
  CHECK(anna->grants[0].what.granted.term == 120s);
  CHECK(anna->grants[0].executor == executor.pointer());
  CHECK(gpu().phase == gpu_phase::granted);
}

TEST_CASE_FIXTURE(one_gpu, "a GPU has one holder; the next is served when the last is verified") {
  request(anna, 1);
  auto place = answer(request(ben, 1));
  CHECK(place->ahead == 0);
  CHECK(ben->grants.empty());
  CHECK(report(executor, device_state::active, 1).applied);
  CHECK(gpu().phase == gpu_phase::active);
  lease_command done;
  done.token = 1;
  CHECK(answer(ask_as<lease_ack>(executor.handle, broker, done))->applied);
  CHECK(gpu().phase == gpu_phase::releasing);
  CHECK(ben->grants.empty());
  report(executor, device_state::verified, 1);
  REQUIRE(ben->grants.size() == 1);
  CHECK(ben->grants[0].what.granted.token == 2);
}

TEST_CASE_FIXTURE(one_gpu, "a grant follows a verified without waiting for the disk") {
  request(anna, 1);
  report(executor, device_state::active, 1);
  request(ben, 1);
  log->withhold = true;
  release(1);
  REQUIRE(ben->grants.size() == 1);
  CHECK(now() == 0s);
}

TEST_CASE_FIXTURE(broker_fixture, "nothing is granted before its block of tokens is on the disk") {
  log->withhold = true;
  start_broker(1);
  auto executor = make_fake_gpu(*this);
  auto anna = make_fake_holder(*this);
  report(executor, device_state::up);
  CHECK(answer(request(anna, 1))->ahead == 0);
  CHECK(anna->grants.empty());
  REQUIRE(log->count("token_block") == 1);
  CHECK(log->how[0] == durability::barrier);
  log->acknowledge();
  settle();
  REQUIRE(anna->grants.size() == 1);
  CHECK(anna->grants[0].what.granted.token <= log->last("token_block").token);
}

TEST_CASE_FIXTURE(broker_fixture, "a journal that cannot store the block gets no grant") {
  log->fails = failure{errc::io_failed, "disk full"};
  start_broker(1);
  auto executor = make_fake_gpu(*this);
  auto anna = make_fake_holder(*this);
  report(executor, device_state::up);
  request(anna, 1);
  CHECK(anna->grants.empty());
  CHECK(waiting() == 1);
}

TEST_CASE_FIXTURE(broker_fixture, "tokens go on above what earlier starts may have granted") {
  gpu_lease_config settings;
  settings.policy = make_fifo_policy();
  settings.gpus.push_back({"mock:h200#0", "h200", 2048});
  settings.events = event_port{log.handle, start};
  broker = spawn<gpu_lease>(std::move(settings));
  auto executor = make_fake_gpu(*this);
  auto anna = make_fake_holder(*this);
  report(executor, device_state::up);
  request(anna, 1);
  REQUIRE(anna->grants.size() == 1);
  CHECK(anna->grants[0].what.granted.token == 2049);
}

// ---- refusals
// ------------------------------------------------------------------------------------

TEST_CASE_FIXTURE(broker_fixture, "more waiters than allowed are refused with queue_full") {
  lease_table_config table;
  table.waiting_max = 1;
  start_broker(1, table);
  auto anna = make_fake_holder(*this);
  CHECK(answered(request(anna, 1)));
  CHECK(refusal(request(anna, 2)).code == errc::queue_full);
  // The refused request leaves nothing behind: the first one still stands in line.
  CHECK(waiting() == 1);
  CHECK_FALSE(command(anna, lease_verb::cancel, 2).applied);
  CHECK(command(anna, lease_verb::cancel, 1).applied);
}

TEST_CASE_FIXTURE(one_gpu, "a model that no GPU has is refused with not_found") {
  lease_request what;
  what.need = "b200";
  auto refused = refusal(ask_as<lease_ticket>(anna.handle, broker, what));
  CHECK(refused.code == errc::not_found);
  CHECK(refused.what.find("h200") != std::string::npos);
  // It does not count as waiting: the end of the broker is no news for it.
  end(broker);
  CHECK(anna->ended.empty());
}

TEST_CASE_FIXTURE(one_gpu, "a command that is stale or unknown does nothing and says so") {
  request(anna, 1);
  CHECK_FALSE(command(ben, lease_verb::cancel, 1).applied);
  CHECK_FALSE(command(anna, lease_verb::release, 0, 99).applied);
  CHECK_FALSE(command(anna, lease_verb::renew, 0, 99).applied);
  lease_command elsewhere;
  elsewhere.gpu = 77;
  CHECK_FALSE(answer(ask_as<lease_ack>(anna.handle, broker, elsewhere))->applied);
  elsewhere.verb = lease_verb::renew;
  CHECK_FALSE(answer(ask_as<lease_ack>(anna.handle, broker, elsewhere))->applied);
  CHECK(gpu().phase == gpu_phase::granted);
  CHECK(command(anna, lease_verb::renew, 0, 1).applied);
  CHECK(command(anna, lease_verb::release, 0, 1).applied);
  CHECK_FALSE(command(anna, lease_verb::release, 0, 1).applied);
}

TEST_CASE_FIXTURE(one_gpu, "only its executor reports for a GPU") {
  auto stranger = make_fake_gpu(*this);
  request(anna, 1);
  CHECK_FALSE(report(stranger, device_state::active, 1).applied);
  CHECK_FALSE(report(stranger, device_state::down).applied);
  CHECK_FALSE(report(executor, device_state::up, 0, 99).applied);
  CHECK(gpu().phase == gpu_phase::granted);
}

TEST_CASE_FIXTURE(one_gpu, "a message without a sender does nothing") {
  tell(broker, lease_request{});
  tell(broker, lease_command{});
  device_report down;
  down.state = device_state::down;
  tell(broker, down);
  CHECK(alive(broker));
  CHECK(waiting() == 0);
  CHECK(gpu().phase == gpu_phase::free);
}

// ---- the end of a lease
// --------------------------------------------------------------------------

TEST_CASE_FIXTURE(one_gpu, "a holder that ends while it waits leaves the line") {
  request(anna, 1);
  request(ben, 1);
  CHECK(waiting() == 1);
  end(ben.handle, caf::exit_reason::kill);
  CHECK(waiting() == 0);
}

TEST_CASE_FIXTURE(one_gpu, "a holder that ends with a grant frees the GPU, once it is verified") {
  request(anna, 1);
  request(ben, 1);
  end(anna.handle, caf::exit_reason::kill);
  CHECK(gpu().phase == gpu_phase::releasing);
  REQUIRE(executor->revoked.size() == 1);
  CHECK(executor->revoked[0].token == 1);
  CHECK(ben->grants.empty());
  report(executor, device_state::verified, 1);
  CHECK(ben->grants.size() == 1);
}

TEST_CASE_FIXTURE(
  one_gpu, "a holder that ends while its kernel runs has the executor end it first") {
  request(anna, 1);
  report(executor, device_state::active, 1);
  request(ben, 1);
  end(anna.handle, caf::exit_reason::kill);
  REQUIRE(executor->revoked.size() == 1);
  CHECK(ben->grants.empty());
  report(executor, device_state::verified, 1);
  CHECK(ben->grants.size() == 1);
  CHECK(log->last("lease_revoke").token == 1);
}

TEST_CASE_FIXTURE(one_gpu, "an executor that ends takes its GPU down and the holder is told") {
  request(anna, 1);
  report(executor, device_state::active, 1);
  request(ben, 1);
  end(executor.handle, caf::exit_reason::kill);
  CHECK(gpu().phase == gpu_phase::lost);
  REQUIRE(anna->ended.size() == 1);
  CHECK(anna->ended[0].token == 1);
  CHECK(ben->grants.empty());
  CHECK(waiting() == 1);
  CHECK(log->last("gpu_down").gpu == "mock:h200#0");

  // A new one proves that nothing of the old lease runs, then the GPU is free again.
  auto next = make_fake_gpu(*this);
  report(next, device_state::up);
  REQUIRE(next->revoked.size() == 1);
  CHECK(ben->grants.empty());
  report(next, device_state::verified, 1);
  REQUIRE(ben->grants.size() == 1);
  CHECK(ben->grants[0].executor == next.pointer());
  CHECK(ben->grants[0].what.granted.token == 2);
}

TEST_CASE_FIXTURE(
  one_gpu, "a replacement that comes before the news of a death ends the old lease") {
  request(anna, 1);
  report(executor, device_state::active, 1);
  auto next = make_fake_gpu(*this);
  CHECK(report(next, device_state::up).applied);
  REQUIRE(anna->ended.size() == 1);
  CHECK_FALSE(report(executor, device_state::verified, 1).applied);
  end(executor.handle, caf::exit_reason::kill);
  CHECK(gpu().phase == gpu_phase::verifying);
  report(next, device_state::verified, 1);
  CHECK(gpu().phase == gpu_phase::free);
}

TEST_CASE_FIXTURE(one_gpu, "an executor that is idle and ends takes only its GPU with it") {
  end(executor.handle);
  CHECK(gpu().phase == gpu_phase::lost);
  request(anna, 1);
  CHECK(anna->grants.empty());
  auto next = make_fake_gpu(*this);
  report(next, device_state::up);
  CHECK(anna->grants.size() == 1);
}

TEST_CASE_FIXTURE(one_gpu, "a grant that nobody acts on is withdrawn") {
  request(anna, 1);
  request(ben, 1);
  advance(5s);
  REQUIRE(anna->ended.size() == 1);
  CHECK(anna->ended[0].request == 1);
  CHECK(anna->ended[0].token == 1);
  report(executor, device_state::verified, 1);
  CHECK(ben->grants.size() == 1);
}

TEST_CASE_FIXTURE(one_gpu, "a term that is over is revoked, and a GPU never verified goes down") {
  request(anna, 1);
  report(executor, device_state::active, 1);
  advance(124s);
  CHECK(gpu().phase == gpu_phase::active);
  advance(1s);
  REQUIRE(executor->revoked.size() == 1);
  REQUIRE(anna->ended.size() == 1);
  CHECK(anna->ended[0].reason == "expired");
  advance(60s);
  CHECK(gpu().phase == gpu_phase::lost);
}

TEST_CASE_FIXTURE(one_gpu, "a release after the revocation changes nothing") {
  request(anna, 1);
  report(executor, device_state::active, 1);
  advance(125s);
  CHECK_FALSE(command(anna, lease_verb::release, 0, 1).applied);
  CHECK(gpu().phase == gpu_phase::releasing);
}

TEST_CASE_FIXTURE(one_gpu, "patience that is over ends the wait") {
  request(anna, 1);
  report(executor, device_state::active, 1);
  lease_request what;
  what.request = 2;
  what.patience = 3s;
  answer(ask_as<lease_ticket>(ben.handle, broker, what));
  advance(2s);
  CHECK(ben->ended.empty());
  advance(1s);
  REQUIRE(ben->ended.size() == 1);
  CHECK(ben->ended[0].request == 2);
  CHECK(ben->ended[0].token == 0);
}

TEST_CASE_FIXTURE(one_gpu, "a cancelled request leaves the line, a cancelled grant the GPU") {
  request(anna, 1);
  request(ben, 1);
  CHECK(command(ben, lease_verb::cancel, 1).applied);
  CHECK(waiting() == 0);
  CHECK(command(anna, lease_verb::cancel, 1).applied);
  CHECK(gpu().phase == gpu_phase::releasing);
}

TEST_CASE_FIXTURE(one_gpu, "who neither waits nor holds may end unnoticed") {
  request(anna, 1);
  report(executor, device_state::active, 1);
  release(1);
  auto events = log->events.size();
  end(anna.handle, caf::exit_reason::kill);
  CHECK(gpu().phase == gpu_phase::free);
  CHECK(log->events.size() == events);
  // The same number from somebody else is another request.
  request(ben, 1);
  CHECK(ben->grants.size() == 1);
}

TEST_CASE_FIXTURE(
  one_gpu, "a verified that belongs to no started lease does not let go of its holder") {
  request(anna, 1);
  report(executor, device_state::verified, 1);
  CHECK(gpu().phase == gpu_phase::granted);
  end(anna.handle, caf::exit_reason::kill);
  CHECK(gpu().phase == gpu_phase::releasing);
}

TEST_CASE_FIXTURE(one_gpu, "a number that was cancelled may be used again at once") {
  request(anna, 1);
  request(anna, 2);
  CHECK(command(anna, lease_verb::cancel, 1).applied);
  request(anna, 1);
  report(executor, device_state::verified, 1);
  REQUIRE(anna->grants.size() == 2);
  report(executor, device_state::active, 2);
  release(2);
  REQUIRE(anna->grants.size() == 3);
  CHECK(anna->grants[2].what.request == 1);
  end(anna.handle, caf::exit_reason::kill);
  CHECK(gpu().phase == gpu_phase::releasing);
}

TEST_CASE_FIXTURE(one_gpu, "a cancel without a sender does nothing") {
  lease_command cancel;
  cancel.verb = lease_verb::cancel;
  tell(broker, cancel);
  CHECK(alive(broker));
}

TEST_CASE_FIXTURE(
  one_gpu, "a holder that asks again while its last lease is being verified stays known") {
  request(anna, 1);
  report(executor, device_state::active, 1);
  request(anna, 2);
  release(1);
  REQUIRE(anna->grants.size() == 2);
  CHECK(anna->grants[1].what.granted.token == 2);
  end(anna.handle, caf::exit_reason::kill);
  CHECK(gpu().phase == gpu_phase::releasing);
}

TEST_CASE_FIXTURE(one_gpu, "at its end the broker tells everybody who waits") {
  request(anna, 1);
  request(ben, 5);
  end(broker);
  settle();
  REQUIRE(ben->ended.size() == 1);
  CHECK(ben->ended[0].request == 5);
}

TEST_CASE_FIXTURE(one_gpu, "the end of the broker is no news for whoever is done") {
  request(anna, 1);
  report(executor, device_state::active, 1);
  release(1);
  end(broker);
  CHECK(anna->ended.empty());
}

TEST_CASE_FIXTURE(one_gpu, "the log tells the life of a lease") {
  request(anna, 1);
  report(executor, device_state::active, 1);
  advance(2s);
  release(1);
  advance(100ms);
  std::vector<std::string> kinds;
  for (const auto& e : log->events)
    if (e.kind.rfind("lease", 0) == 0 || e.kind == "gpu_free") {
      kinds.push_back(e.kind);
      CHECK(e.attempt == "silu/cuda/1");
    }
  CHECK(kinds
    == std::vector<std::string>{
      "lease_request", "lease_grant", "lease_active", "lease_release", "gpu_free"});
  CHECK(log->last("gpu_free").token == 1);
  CHECK(log->last("gpu_free").t == 2s);
  CHECK(log->last("gpu_free").data == R"({"held_ns":2000000000})");
}

// ---- many
// ----------------------------------------------------------------------------------------

/// A worker that wants one lease after the other and measures nothing.
class greedy_holder final : public lease_holder_actor::base {
public:
  greedy_holder(caf::actor_config& config, gpu_lease_actor broker, uint64_t wanted,
    std::shared_ptr<uint64_t> served)
    : lease_holder_actor::base(config), broker_(std::move(broker)), wanted_(wanted),
      served_(std::move(served)) {}

  behavior_type make_behavior() override {
    ask_for_one();
    return {
      [this](const lease_granted& what, const caf::strong_actor_ptr& executor) {
        measure_request run;
        run.under = what.granted;
        seam::ask(this, caf::actor_cast<gpu_actor>(executor), run)
          .then(
            [this](const measurement&) {
              ++*served_;
              if (--wanted_ != 0)
                ask_for_one();
            },
            [](const caf::error&) {});
      },
      [](const lease_ended&) {},
    };
  }

  void on_exit() override { broker_ = nullptr; }

private:
  void ask_for_one() {
    lease_request what;
    what.request = wanted_;
    what.flow.agent = std::to_string(id());
    seam::ask(this, broker_, what).then([](const lease_ticket&) {}, [](const caf::error&) {});
  }

  gpu_lease_actor broker_;
  uint64_t wanted_;
  std::shared_ptr<uint64_t> served_;
};

TEST_CASE_FIXTURE(
  broker_fixture, "500 workers on 27 GPUs: each GPU goes on in the instant it is free") {
  constexpr uint32_t gpus = 27;
  start_broker(gpus, {}, "stride");
  for (uint32_t i = 0; i < gpus; ++i) {
    gpu_sleep_config settings;
    settings.gpu = i;
    settings.name = "sleep#" + std::to_string(i);
    settings.model = "h200";
    settings.broker = broker;
    settings.events = event_port{log.handle, start};
    settings.duration = 100ms;
    spawn<gpu_sleep>(std::move(settings));
  }
  settle();
  auto served = std::make_shared<uint64_t>(0);
  for (int i = 0; i < 500; ++i)
    spawn<greedy_holder>(broker, uint64_t{4}, served);
  settle();
  advance(10s);
  CHECK(*served == 2000);
  std::map<std::string, uint64_t> newest;
  std::map<std::string, caf::timespan> freed;
  for (const auto& e : log->events) {
    if (e.kind == "gpu_free")
      freed[e.gpu] = e.t;
    if (e.kind != "lease_grant")
      continue;
    CHECK_MESSAGE(e.token > newest[e.gpu], "a token was granted twice");
    newest[e.gpu] = e.token;
    if (freed.count(e.gpu) != 0)
      CHECK_MESSAGE(e.t == freed[e.gpu], "a GPU stood still although somebody waited");
  }
  CHECK(newest.size() == gpus);
}

TEST_CASE_FIXTURE(
  broker_fixture, "whoever dies and whenever, no GPU has two holders and none is lost") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    time.shuffle(seed);
    std::mt19937_64 chance{seed};
    start_broker(3, {}, seed % 2 == 0 ? "stride" : "fifo");
    std::vector<gpu_actor> executors;
    auto start_gpu = [&](uint32_t i) {
      gpu_sleep_config settings;
      settings.gpu = i;
      settings.model = "h200";
      settings.broker = broker;
      settings.events = event_port{log.handle, start};
      settings.duration = 1s;
      return spawn<gpu_sleep>(std::move(settings));
    };
    for (uint32_t i = 0; i < 3; ++i)
      executors.push_back(start_gpu(i));
    auto served = std::make_shared<uint64_t>(0);
    std::vector<lease_holder_actor> holders;
    for (int i = 0; i < 12; ++i)
      holders.push_back(spawn<greedy_holder>(broker, uint64_t{20}, served));
    for (int step = 0; step < 40; ++step) {
      advance(std::chrono::milliseconds{chance() % 700});
      if (chance() % 3 == 0) {
        auto i = chance() % holders.size();
        end(holders[i], caf::exit_reason::kill);
        holders[i] = spawn<greedy_holder>(broker, uint64_t{20}, served);
      }
      if (chance() % 5 == 0) {
        auto i = static_cast<uint32_t>(chance() % executors.size());
        end(executors[i], caf::exit_reason::kill);
        executors[i] = start_gpu(i);
      }
    }
    // Left alone, everything that waits is served.
    advance(600s);
    CHECK(waiting() == 0);
    for (uint32_t i = 0; i < 3; ++i)
      CHECK(gpu(i).phase == gpu_phase::free);
    CHECK(*served > 100);
    for (auto& e : executors)
      end(e);
    for (auto& h : holders)
      end(h);
    end(broker);
  }
  // A grant of a GPU comes only after its last one was seen to be over.
  std::map<std::string, bool> busy;
  for (const auto& e : log->events) {
    if (e.kind == "token_block" && e.token == 1024)
      busy.clear(); // the next seed
    if (e.kind == "lease_grant") {
      CHECK_FALSE(busy[e.gpu]);
      busy[e.gpu] = true;
    } else if (e.kind == "gpu_free" || e.kind == "gpu_up") {
      busy[e.gpu] = false;
    }
  }
}

TEST_SUITE_END();

} // namespace

namespace {

struct growing_fixture : broker_fixture {
  growing_lease_actor growing;

  void start_growing() {
    gpu_lease_config settings;
    settings.table.gpus_may_come = true;
    settings.policy = *policy_by_name("fifo");
    settings.token_floors["n1/cuda:0"] = 700;
    settings.gpus_max = 2;
    settings.events = event_port{log.handle, start};
    growing = spawn<gpu_lease>(std::move(settings));
    broker = growing;
    settle();
  }
  ~growing_fixture() { growing = nullptr; }

  reply<device_joined> join(const std::string& name, const std::string& model = "h200") {
    return ask<device_joined>(growing, device_join{name, model, "sm_90a", "n1", 0});
  }
};

} // namespace

TEST_CASE_FIXTURE(growing_fixture, "who asks before the first GPU has joined waits for it") {
  start_growing();
  auto holder = make_fake_holder(*this);
  CHECK(answer(request(holder, 1)));
  CHECK(waiting() == 1);
  CHECK(answer(join("n1/cuda:0"))->gpu == 0);
  CHECK(holder->grants.empty()); // It is absent until its executor reports.
  auto executor = make_fake_gpu(*this);
  CHECK(report(executor, device_state::up).applied);
  REQUIRE(holder->grants.size() == 1);
  CHECK_MESSAGE(holder->grants[0].what.granted.token > 700, "the floor that the log knows");
}

TEST_CASE_FIXTURE(growing_fixture, "a GPU that joins again keeps its number and its tokens") {
  start_growing();
  CHECK(answer(join("n1/cuda:0"))->gpu == 0);
  CHECK(answer(join("n1/cuda:1"))->gpu == 1);
  CHECK(answer(join("n1/cuda:0"))->gpu == 0);
  CHECK(refusal(join("n1/cuda:0", "b200")).code == errc::invalid_input);
  CHECK(refusal(join("n1/cuda:2")).code == errc::queue_full);
}

TEST_CASE_FIXTURE(
  growing_fixture, "the holder on a lost machine hears which, as against a dead executor") {
  start_growing();
  answer(join("n1/cuda:0"));
  auto holder = make_fake_holder(*this);
  auto executor = make_fake_gpu(*this);
  request(holder, 1);
  report(executor, device_state::up);
  REQUIRE(holder->grants.size() == 1);
  self_of(executor.handle)
    ->send_exit(executor.handle, to_error({errc::node_lost, "node 'n1': gone"}));
  settle();
  REQUIRE(holder->ended.size() == 1);
  CHECK(holder->ended[0].reason == "node_lost: node 'n1': gone");
}
