#include "actors/gpu_sleep.hpp"
#include "tests/support/actor_fixture.hpp"

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

measure_request run_under(uint64_t token, uint32_t gpu = 0) {
  measure_request out;
  out.under = lease{gpu, token, lease_class::timing, 60s};
  out.attempt = {"silu", "cuda", 3};
  return out;
}

struct one_sleeper : actor_fixture {
  fake_journal log = make_fake_journal(*this);
  fake_broker broker = make_fake_broker(*this);
  gpu_actor gpu = start_gpu();

  gpu_actor start_gpu(std::chrono::nanoseconds duration = 100ms) {
    gpu_sleep_config settings;
    settings.name = "sleep:100ms#0";
    settings.model = "sleep";
    settings.broker = broker.handle;
    settings.events = event_port{log.handle, start};
    settings.duration = duration;
    auto started = spawn<gpu_sleep>(std::move(settings));
    settle();
    return started;
  }
};

TEST_SUITE_BEGIN("gpu sleep");

TEST_CASE_FIXTURE(one_sleeper, "a lease is held for the duration and is no measurement") {
  CHECK(broker->reports.at(0).state == device_state::up);
  auto slept = ask<measurement>(gpu, run_under(5));
  CHECK(broker->count(device_state::active, 5) == 1);
  advance(99ms);
  CHECK_FALSE(answered(slept));
  CHECK(broker->commands.empty());
  advance(1ms);
  auto m = answer(slept);
  REQUIRE(m);
  CHECK(m->origin == time_origin::not_a_measurement);
  CHECK(m->held == 100ms);
  CHECK(m->token == 5);
  CHECK(m->workloads.empty());
  CHECK(broker->commands.at(0).reason == "done");
  CHECK(broker->count(device_state::verified, 5) == 1);
  settle();
  CHECK(log->last("measured").reason == "NOT A MEASUREMENT");
}

TEST_CASE_FIXTURE(one_sleeper, "old tokens, other GPUs and a second sleeper are refused") {
  auto slept = ask<measurement>(gpu, run_under(5));
  CHECK(refusal(ask<measurement>(gpu, run_under(5))).code == errc::lease_expired);
  CHECK(refusal(ask<measurement>(gpu, run_under(6))).code == errc::refused);
  CHECK(refusal(ask<measurement>(gpu, run_under(7, 1))).code == errc::invalid_input);
  advance(100ms);
  CHECK(answer(slept)->token == 5);
}

TEST_CASE_FIXTURE(one_sleeper, "a lease that is taken back ends the sleep") {
  auto slept = ask<measurement>(gpu, run_under(5));
  broker->applied = false;
  tell(gpu, lease_revoke{0, 5, "the holder is gone"});
  CHECK(broker->count(device_state::verified, 5) == 1);
  CHECK(refusal(slept).code == errc::lease_expired);
  // The timer of the sleep that was cut short does not end the next one early.
  broker->applied = true;
  advance(50ms);
  auto next = ask<measurement>(gpu, run_under(6));
  advance(50ms);
  CHECK_FALSE(answered(next));
  advance(50ms);
  CHECK(answered(next));
}

TEST_CASE_FIXTURE(
  one_sleeper, "an idle sleeper confirms a revocation at once and refuses the token") {
  tell(gpu, lease_revoke{0, 5, "withdrawn"});
  CHECK(broker->count(device_state::verified, 5) == 1);
  CHECK(refusal(ask<measurement>(gpu, run_under(5))).code == errc::lease_expired);
}

TEST_CASE_FIXTURE(one_sleeper, "at its end everybody is answered") {
  broker->withhold = true;
  auto finishing = ask<measurement>(gpu, run_under(5));
  advance(100ms);
  auto running = ask<measurement>(gpu, run_under(6));
  end(gpu);
  CHECK(refusal(finishing).code == errc::shutting_down);
  CHECK(refusal(running).code == errc::shutting_down);
}

TEST_CASE_FIXTURE(one_sleeper, "a long sleep is renewed, and ends when it is not") {
  auto sleeper = start_gpu(50s);
  auto slept = ask<measurement>(sleeper, run_under(5));
  advance(30s);
  CHECK(broker->commands.size() == 3);
  CHECK(broker->commands[0].verb == lease_verb::renew);
  CHECK_FALSE(answered(slept));
  broker->applied = false;
  advance(10s);
  CHECK(refusal(slept).code == errc::lease_expired);
  CHECK(broker->commands.back().verb == lease_verb::release);
  CHECK(broker->commands.back().outcome == lease_outcome::infrastructure);
}

TEST_CASE_FIXTURE(one_sleeper, "an idle sleeper passes a probe, a busy one cannot be probed") {
  tell(gpu, probe_order{0, 10s});
  CHECK(broker->reports.back().probe.outcome == probe_outcome::passed);
  ask<measurement>(gpu, run_under(5));
  tell(gpu, probe_order{0, 10s});
  CHECK(broker->reports.back().state == device_state::probed);
  CHECK(broker->reports.back().probe.outcome == probe_outcome::could_not);
}

TEST_SUITE_END();

} // namespace
