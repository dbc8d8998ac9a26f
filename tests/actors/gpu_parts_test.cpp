// One lease that spans several measurements, such as a candidate and its incumbent in turns.

#include "actors/gpu_executor.hpp"
#include "actors/gpu_lease.hpp"
#include "actors/gpu_sleep.hpp"
#include "tests/support/actor_fixture.hpp"

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

measure_request part_of(uint64_t token, uint32_t part, bool last, const std::string& candidate) {
  measure_request out;
  out.under = lease{0, token, lease_class::timing, 60s};
  out.attempt = {"silu", "cuda", 3};
  out.candidate.hash = candidate;
  out.part = part;
  out.last = last;
  return out;
}

struct parts_fixture : actor_fixture {
  fake_journal log = make_fake_journal(*this);
  fake_child_front children = make_fake_child_front(*this);
  fake_broker broker = make_fake_broker(*this);
  uint64_t next_child = 100;
  bool faults = false;

  ~parts_fixture() { end_all(); }

  gpu_actor start_mock(gpu_lease_actor whose) {
    gpu_executor_config settings;
    settings.name = "mock:h200#0";
    settings.model = "h200";
    settings.broker = std::move(whose);
    settings.child_front = children.handle;
    settings.events = event_port{log.handle, start};
    settings.steps.begin = [this](const measure_request&, std::chrono::nanoseconds deadline) {
      child_request made;
      made.id = next_child++;
      made.deadline = deadline;
      return result<child_request>{made};
    };
    settings.steps.end = [this](const measure_request&, const child_request&, const child_result&) {
      measurement out;
      workload_measurement w;
      w.status = faults ? verdict_status::runtime_error : verdict_status::passed;
      out.workloads.push_back(w);
      return out;
    };
    auto made = spawn<gpu_executor>(std::move(settings));
    settle();
    return made;
  }

  gpu_actor start_sleep(gpu_lease_actor whose) {
    gpu_sleep_config settings;
    settings.name = "sleep:100ms#0";
    settings.model = "sleep";
    settings.broker = std::move(whose);
    settings.events = event_port{log.handle, start};
    auto made = spawn<gpu_sleep>(std::move(settings));
    settle();
    return made;
  }

  size_t releases() const {
    size_t n = 0;
    for (const auto& c : broker->commands)
      n += c.verb == lease_verb::release ? 1 : 0;
    return n;
  }
};

/// The rules are the same for both executors.
struct both_kinds : parts_fixture {
  gpu_actor gpu;

  void begin(bool mock) { gpu = mock ? start_mock(broker.handle) : start_sleep(broker.handle); }
  reply<measurement> part(
    uint64_t token, uint32_t number, bool last, const std::string& who = "c") {
    auto asked = ask<measurement>(gpu, part_of(token, number, last, who));
    advance(100ms); // As long as a sleep; the mock's children end at once.
    return asked;
  }
};

TEST_SUITE_BEGIN("parts of a lease");

TEST_CASE_FIXTURE(both_kinds, "parts run under one token, and the last one gives the lease back") {
  bool mock = false;
  SUBCASE("mock") {
    mock = true;
  }
  SUBCASE("sleep") {}
  begin(mock);
  auto first = answer(part(5, 0, false, "candidate"));
  REQUIRE(first);
  CHECK(first->token == 5);
  CHECK(first->part == 0);
  CHECK(broker->count(device_state::verified, 5) == 0);
  CHECK(releases() == 0);
  advance(1s);
  auto second = answer(part(5, 1, false, "incumbent"));
  REQUIRE(second);
  CHECK(second->part == 1);
  CHECK(log->last("measured").candidate == "incumbent");
  auto third = answer(part(5, 7, true, "candidate"));
  REQUIRE(third);
  CHECK(third->part == 7);
  CHECK(releases() == 1);
  CHECK(broker->commands.back().reason == "done");
  CHECK(broker->count(device_state::active, 5) == 1);
  CHECK(broker->count(device_state::verified, 5) == 1);
  CHECK_MESSAGE(first->held + second->held + third->held <= 1300ms, "no moment is told twice");
  CHECK(first->held + second->held + third->held >= 1s);
}

TEST_CASE_FIXTURE(both_kinds, "a repeated part, an older one and an ended lease are refused") {
  bool mock = false;
  SUBCASE("mock") {
    mock = true;
  }
  SUBCASE("sleep") {}
  begin(mock);
  CHECK(answer(part(5, 3, false)));
  CHECK(refusal(part(5, 3, false)).code == errc::lease_expired);
  CHECK(refusal(part(5, 2, true)).code == errc::lease_expired);
  CHECK(refusal(part(4, 9, true)).code == errc::lease_expired);
  CHECK(refusal(part(6, 0, true)).code == errc::refused);
  CHECK(releases() == 0);
  CHECK(answer(part(5, 4, true)));
  CHECK_MESSAGE(refusal(part(5, 5, true)).code == errc::lease_expired, "given back");
  CHECK(answer(part(6, 0, true)));
}

TEST_CASE_FIXTURE(both_kinds, "a lease whose next part does not come ends by itself as idle") {
  bool mock = false;
  SUBCASE("mock") {
    mock = true;
  }
  SUBCASE("sleep") {}
  begin(mock);
  CHECK(answer(part(5, 0, false)));
  advance(4800ms);
  CHECK(releases() == 0);
  advance(200ms);
  CHECK(releases() == 1);
  CHECK(broker->commands.back().reason == "idle");
  CHECK(broker->commands.back().outcome == lease_outcome::fine);
  CHECK(broker->count(device_state::verified, 5) == 1);
  CHECK(refusal(part(5, 1, true)).code == errc::lease_expired);
  CHECK(log->count("measured") == 1);
}

TEST_CASE_FIXTURE(both_kinds, "the patience for a part begins anew at the end of each part") {
  bool mock = false;
  SUBCASE("mock") {
    mock = true;
  }
  SUBCASE("sleep") {}
  begin(mock);
  for (uint32_t i = 0; i < 3; ++i) {
    CHECK(answer(part(5, i, false)));
    advance(4s);
  }
  CHECK(releases() == 0);
  CHECK(answer(part(5, 3, true)));
}

TEST_CASE_FIXTURE(both_kinds, "a lease that is taken back between two parts is over at once") {
  bool mock = false;
  SUBCASE("mock") {
    mock = true;
  }
  SUBCASE("sleep") {}
  begin(mock);
  CHECK(answer(part(5, 0, false)));
  tell(gpu, lease_revoke{0, 5, "the holder is gone"});
  CHECK(broker->count(device_state::verified, 5) == 1);
  CHECK(broker->commands.back().outcome == lease_outcome::infrastructure);
  CHECK(refusal(part(5, 1, true)).code == errc::lease_expired);
  CHECK(answer(part(6, 0, true)));
}

TEST_CASE_FIXTURE(both_kinds, "a part is not answered when the broker no longer holds the lease") {
  bool mock = false;
  SUBCASE("mock") {
    mock = true;
  }
  SUBCASE("sleep") {}
  begin(mock);
  broker->applied = false; // Its revocation is still on its way.
  CHECK(refusal(part(5, 0, false)).code == errc::lease_expired);
  CHECK(broker->count(device_state::verified, 5) == 1);
}

TEST_CASE_FIXTURE(both_kinds, "an executor that ends between two parts leaves nobody waiting") {
  bool mock = false;
  SUBCASE("mock") {
    mock = true;
  }
  SUBCASE("sleep") {}
  begin(mock);
  CHECK(answer(part(5, 0, false)));
  end(gpu);
  CHECK(children->cancelled.empty());
}

TEST_CASE_FIXTURE(both_kinds, "a part that faults ends the lease, although it was not the last") {
  begin(true);
  CHECK(answer(part(5, 0, false)));
  faults = true;
  CHECK(answer(part(5, 1, false)));
  CHECK(broker->commands.back().outcome == lease_outcome::fault);
  CHECK(broker->count(device_state::verified, 5) == 1);
  CHECK(refusal(part(5, 2, true)).code == errc::lease_expired);
}

TEST_CASE_FIXTURE(both_kinds, "all parts share the term of the lease") {
  begin(true);
  CHECK(answer(part(5, 0, false)));
  CHECK(children->requests.back().deadline == 65s);
  for (uint32_t i = 1; i <= 14; ++i) {
    advance(3900ms);
    CHECK(answer(part(5, i, false)));
  }
  CHECK(children->requests.back().deadline < 10s);
  advance(4s);
  CHECK(releases() == 1);
  CHECK(broker->commands.back().reason == "timeout");
  CHECK_MESSAGE(broker->commands.back().outcome == lease_outcome::fine, "nothing ran");
}

TEST_CASE_FIXTURE(parts_fixture, "nobody else gets the GPU between two parts") {
  gpu_lease_config settings;
  settings.policy = make_fifo_policy();
  settings.gpus.push_back({"mock:h200#0", "h200", 0});
  settings.events = event_port{log.handle, start};
  auto real = spawn<gpu_lease>(std::move(settings));
  auto gpu = start_mock(real);
  auto anna = make_fake_holder(*this);
  auto ben = make_fake_holder(*this);
  lease_request what;
  what.request = 1;
  REQUIRE(answer(ask_as<lease_ticket>(anna.handle, real, what)));
  REQUIRE(answer(ask_as<lease_ticket>(ben.handle, real, what)));
  auto token = anna->grants.at(0).what.granted.token;
  auto measure = [&](uint32_t number, bool last, const std::string& who) {
    auto run = part_of(token, number, last, who);
    run.under = anna->grants.at(0).what.granted;
    return answer(ask_as<measurement>(anna.handle, gpu, run));
  };
  CHECK(measure(0, false, "candidate")->token == token);
  advance(4s);
  CHECK(ben->grants.empty());
  CHECK(measure(1, false, "incumbent")->token == token);
  advance(4s);
  CHECK(ben->grants.empty());
  CHECK(measure(2, true, "candidate")->token == token);
  settle();
  REQUIRE(ben->grants.size() == 1);
  CHECK(ben->grants[0].what.granted.token > token);
}

TEST_SUITE_END();

} // namespace
