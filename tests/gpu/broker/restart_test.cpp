// A broker that is killed and started again.

#include "tests/gpu/broker/core_fixture.hpp"

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

struct first_life {
  broker_memory memory;
  std::vector<lease_record> leases;
  broker_line grant;
};

/// One lease is out on one GPU, then the broker is killed.
first_life live_once() {
  broker_fixture b(settings_of(1));
  auto one = b.connect();
  b.request(one);
  first_life out;
  out.grant = b.granted(one);
  b.started(one, out.grant);
  out.memory = b.outside.kept;
  for (const auto& [gpu, record] : b.outside.records)
    out.leases.push_back(record);
  return out;
}

broker_settings again(const first_life& before) {
  auto settings = settings_of(1);
  settings.memory = before.memory;
  settings.leases = before.leases;
  return settings;
}

client_line adopt(const broker_line& grant) {
  auto line = broker_fixture::of(grant, client_verb::adopt);
  line.session = 1011;
  line.held = 1s;
  return line;
}

} // namespace

TEST_CASE(
  "a lease that is out is adopted with its token, and its cap counts from the first grant") {
  auto before = live_once();
  broker_fixture b(again(before));
  b.wait(3s);
  auto guard = b.connect();
  auto waiter = b.connect();
  b.request(waiter);
  CHECK_MESSAGE(b.waits(waiter), "nothing is granted on a GPU whose guard has not reported");
  b.say(guard, adopt(before.grant));
  auto adopted = b.heard(guard, broker_say::adopted);
  REQUIRE(adopted.has_value());
  CHECK(adopted->token == before.grant.token);
  CHECK(adopted->lease == before.grant.lease);
  CHECK(b.waits(waiter));
  b.started(guard, before.grant);
  for (int n = 0; n < 11; ++n) {
    b.wait(10s);
    b.say(guard, b.of(before.grant, client_verb::renew));
  }
  CHECK_FALSE(b.heard(guard, broker_say::revoke));
  b.wait(13s); // 126 s since the grant: the cap of 120 s and its grace are over.
  CHECK(b.heard(guard, broker_say::revoke).has_value());
  b.say(guard, b.of(before.grant, client_verb::ended));
  CHECK(b.granted(waiter).token > before.grant.token);
}

TEST_CASE("the epoch grows with every start") {
  auto before = live_once();
  CHECK(before.memory.epoch == 1);
  broker_fixture b(again(before));
  CHECK(b.outside.kept.epoch == 2);
}

TEST_CASE("a lease whose guard has died meanwhile is cleaned up at once") {
  auto before = live_once();
  auto settings = again(before);
  fake_outside outside;
  outside.keepers_live = false;
  broker_core core(std::move(settings), outside);
  auto now = std::chrono::nanoseconds{5h};
  REQUIRE(core.start(now).has_value());
  core.on_tick(now);
  REQUIRE(outside.cleaning.size() == 1);
  CHECK(outside.probing.empty());
  core.on_cleaned(0, before.grant.token, {}, 1, now);
  REQUIRE(outside.probing.size() == 1);
  core.on_probed(0, {}, now);
  CHECK(core.status(0, now)["gpus"][0]["phase"] == "free");
  CHECK(outside.records.empty());
}

TEST_CASE("a guard that lives but says nothing is ended after the time to live") {
  auto before = live_once();
  broker_fixture b(again(before));
  auto waiter = b.connect();
  b.request(waiter);
  b.wait(29s);
  CHECK(b.outside.cleaning.empty());
  b.wait(2s);
  REQUIRE(b.outside.cleaning.size() == 1);
  b.cleaned();
  auto next = b.granted(waiter);
  CHECK_MESSAGE(next.token > before.grant.token, "no token is ever granted twice");
  // Too late.
  auto guard = b.connect();
  b.say(guard, adopt(before.grant));
  CHECK(b.heard(guard, broker_say::error)->code == errc::lease_expired);
}

TEST_CASE("after a restart of the machine nothing is adopted and tokens go on") {
  auto before = live_once();
  auto settings = again(before);
  settings.boot = "boot-2";
  broker_fixture b(std::move(settings));
  auto one = b.connect();
  b.request(one);
  CHECK(b.granted(one).token > before.grant.token);
  CHECK(b.outside.cleaning.empty());
}

TEST_CASE("a lease is adopted by its own user only, and by its name only") {
  auto before = live_once();
  broker_fixture b(again(before));
  auto thief = b.connect("", false, 2000);
  b.say(thief, adopt(before.grant));
  CHECK(b.heard(thief, broker_say::error)->code == errc::lease_expired);
  auto guess = adopt(before.grant);
  guess.lease = "guess";
  auto mine = b.connect();
  b.say(mine, guess);
  CHECK(b.heard(mine, broker_say::error)->code == errc::lease_expired);
  b.say(mine, adopt(before.grant));
  CHECK(b.heard(mine, broker_say::adopted).has_value());
}

TEST_CASE("drains and quotas outlive a restart") {
  auto before = live_once();
  before.leases.clear();
  before.memory.drained["sleep#0"] = "fan";
  before.memory.weights["alice"] = 3;
  broker_fixture b(again(before));
  auto one = b.connect("alice");
  b.request(one);
  CHECK(b.waits(one));
  CHECK(b.phase() == "draining");
  CHECK(b.core.status(0, b.now)["weights"]["alice"] == 3);
}

TEST_CASE("who has used how much outlives a restart") {
  broker_fixture b(settings_of(1));
  auto one = b.connect("alice");
  b.request(one);
  auto grant = b.granted(one);
  b.started(one, grant);
  b.wait(10s);
  b.say(one, b.of(grant, client_verb::ended));
  b.core.save_all();
  CHECK(b.outside.kept.policy == "stride");
  auto policy = make_stride_policy();
  CHECK(policy->load(b.outside.kept.policy_state).has_value());
}
