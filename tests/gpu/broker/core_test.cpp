// The broker without sockets and without a clock.

#include "tests/gpu/broker/core_fixture.hpp"

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

TEST_CASE("a free GPU is granted at once, and the next in line gets it after the look") {
  broker_fixture b(settings_of(1));
  auto one = b.connect(), two = b.connect();
  b.request(one);
  auto grant = b.granted(one);
  CHECK(grant.gpu_name == "sleep#0");
  CHECK(grant.term == 120s);
  b.request(two);
  CHECK(b.heard(two, broker_say::ticket)->ahead == 0);
  CHECK(b.waits(two));
  b.started(one, grant);
  CHECK(b.phase() == "active");
  b.hold_probes = true;
  b.say(one, b.of(grant, client_verb::ended));
  CHECK_MESSAGE(b.waits(two), "nobody gets a GPU that was not looked at");
  b.hold_probes = false;
  b.settle();
  auto next = b.granted(two);
  CHECK(next.token > grant.token);
  CHECK(next.lease != grant.lease);
  CHECK(b.heard(one, broker_say::closed)->probe.outcome == probe_outcome::passed);
}

TEST_CASE("a lease is on the disk before its client hears of it, and off it at its end") {
  broker_fixture b(settings_of(1));
  auto one = b.connect();
  b.request(one);
  auto grant = b.granted(one);
  REQUIRE(b.outside.records.count("sleep#0") == 1);
  CHECK(b.outside.records["sleep#0"].lease == grant.lease);
  CHECK(b.outside.kept.tokens["sleep#0"] >= grant.token);
  b.started(one, grant);
  CHECK(b.outside.records["sleep#0"].session_started == 77);
  b.say(one, b.of(grant, client_verb::ended));
  CHECK(b.outside.records.empty());
}

TEST_CASE("without a durable block of tokens nothing is granted") {
  fake_outside outside;
  outside.disk_full = true;
  broker_core core(settings_of(1), outside);
  CHECK_FALSE(core.start(1s).has_value());
}

TEST_CASE("a waiting client that goes away leaves the line") {
  broker_fixture b(settings_of(1));
  auto one = b.connect(), two = b.connect(), three = b.connect();
  b.request(one);
  auto grant = b.granted(one);
  b.request(two);
  b.request(three);
  b.gone(two);
  b.started(one, grant);
  b.say(one, b.of(grant, client_verb::ended));
  CHECK(b.granted(three).token > grant.token);
  CHECK(b.outside.cleaning.empty());
}

TEST_CASE("a guard that is killed: what it kept is ended before the next grant") {
  broker_fixture b(settings_of(1));
  auto one = b.connect(), two = b.connect();
  b.request(one);
  b.started(one, b.granted(one));
  b.request(two);
  b.gone(one);
  REQUIRE(b.outside.cleaning.size() == 1);
  CHECK(b.waits(two));
  b.cleaned();
  CHECK(b.granted(two).token == 2);
}

TEST_CASE("a client that dies between the grant and its start holds nothing") {
  broker_fixture b(settings_of(1));
  auto one = b.connect(), two = b.connect();
  b.request(one);
  b.request(two);
  b.gone(one);
  b.cleaned();
  b.granted(two);
}

TEST_CASE("a process that does not end puts the GPU aside, and a person brings it back") {
  broker_fixture b(settings_of(1));
  auto one = b.connect(), two = b.connect();
  b.request(one);
  b.started(one, b.granted(one));
  b.request(two);
  b.gone(one);
  b.cleaned({probe_outcome::failed, "process 4711 does not end"});
  CHECK(b.waits(two));
  CHECK(b.phase() == "quarantined");
  client_line undrain;
  undrain.verb = client_verb::undrain;
  undrain.gpu_name = "sleep#0";
  b.say(two, undrain);
  CHECK(b.heard(two, broker_say::ack)->applied);
  b.granted(two);
}

TEST_CASE("after a look that fails or cannot be had, nobody gets the GPU before one that passes") {
  broker_fixture b(settings_of(1));
  auto one = b.connect();
  b.request(one);
  auto grant = b.granted(one);
  b.started(one, grant);
  b.found = {probe_outcome::could_not, "no nvidia-smi"};
  b.say(one, b.of(grant, client_verb::ended));
  CHECK(b.heard(one, broker_say::closed)->probe.outcome == probe_outcome::could_not);
  CHECK(b.phase() == "suspect");
  b.wait(5min);
  CHECK_MESSAGE(b.phase() == "suspect", "could not probe is not faulty: no quarantine");
  b.found = {};
  b.wait(10min);
  CHECK(b.phase() == "free");
  b.request(one, true, {}, 2);
  grant = b.granted(one);
  b.started(one, grant);
  b.found = {probe_outcome::failed, "foreign process 4711"};
  b.say(one, b.of(grant, client_verb::ended));
  CHECK(b.phase() != "free");
  b.found = {};
  b.wait(5min);
  CHECK(b.phase() == "free");
}

TEST_CASE("a guard that is silent for the time to live loses its lease") {
  broker_fixture b(settings_of(1));
  auto one = b.connect(), two = b.connect();
  b.request(one);
  b.started(one, b.granted(one));
  b.request(two);
  b.wait(31s);
  auto revoke = b.heard(one, broker_say::revoke);
  REQUIRE(revoke.has_value());
  CHECK(revoke->token == 1);
  CHECK(b.waits(two));
  // It does not answer: the broker ends what is left by itself.
  b.wait(21s);
  REQUIRE(b.outside.cleaning.size() == 1);
  CHECK(b.outside.cleaning[0].token == 1);
  b.cleaned();
  b.granted(two);
}

TEST_CASE("a guard that renews keeps its lease to the cap, not longer") {
  broker_fixture b(settings_of(1));
  auto one = b.connect();
  b.request(one);
  auto grant = b.granted(one);
  b.started(one, grant);
  for (int n = 0; n < 11; ++n) {
    b.wait(10s);
    b.say(one, b.of(grant, client_verb::renew));
    CHECK(b.heard(one, broker_say::ack)->applied);
  }
  CHECK_FALSE(b.heard(one, broker_say::revoke));
  b.wait(16s);
  CHECK(b.heard(one, broker_say::revoke).has_value());
}

TEST_CASE("who works under the lease itself need not renew, and is ended after the cap") {
  broker_fixture b(settings_of(1));
  auto one = b.connect();
  b.request(one, false);
  b.granted(one);
  b.wait(100s);
  CHECK_FALSE(b.heard(one, broker_say::revoke));
  CHECK(b.phase() == "active");
  b.wait(26s);
  CHECK(b.heard(one, broker_say::revoke).has_value());
  b.wait(21s);
  REQUIRE(b.outside.cleaning.size() == 1);
  CHECK(b.outside.cleaning[0].holder_too);
}

TEST_CASE("patience runs out while waiting, never while holding") {
  broker_fixture b(settings_of(1));
  auto one = b.connect(), two = b.connect();
  b.request(one, true, 5s);
  auto grant = b.granted(one);
  b.started(one, grant);
  b.request(two, true, 5s);
  b.wait(6s);
  CHECK(b.heard(two, broker_say::over).has_value());
  CHECK_FALSE(b.heard(one, broker_say::revoke));
}

TEST_CASE("lines about a lease count only from its keeper and with its name") {
  broker_fixture b(settings_of(1));
  auto one = b.connect(), thief = b.connect();
  b.request(one);
  auto grant = b.granted(one);
  b.started(one, grant);
  b.say(thief, b.of(grant, client_verb::ended));
  CHECK(b.phase() == "active");
  b.say(thief, b.of(grant, client_verb::renew));
  CHECK_FALSE(b.heard(thief, broker_say::ack)->applied);
  auto guessed = b.of(grant, client_verb::ended);
  guessed.lease = "guess";
  b.say(one, guessed);
  CHECK(b.phase() == "active");
  // Twice is once.
  b.say(one, b.of(grant, client_verb::ended));
  b.say(one, b.of(grant, client_verb::ended));
  CHECK(b.phase() == "free");
}

TEST_CASE("a session that is not the client's own is not believed") {
  broker_fixture b(settings_of(1));
  auto one = b.connect();
  b.request(one);
  auto line = b.of(b.granted(one), client_verb::started);
  line.session = 1;
  b.say(one, line);
  CHECK(b.outside.records["sleep#0"].session == 0);
}

TEST_CASE("two stages of one pipeline share a lease: the second asks whether it is valid") {
  broker_fixture b(settings_of(1));
  auto one = b.connect(), inner = b.connect();
  b.request(one);
  auto grant = b.granted(one);
  b.started(one, grant);
  b.wait(20s);
  b.say(inner, b.of(grant, client_verb::check));
  auto ack = b.heard(inner, broker_say::ack);
  REQUIRE(ack.has_value());
  CHECK(ack->applied);
  CHECK(ack->left == 100s);
  b.say(one, b.of(grant, client_verb::ended));
  b.say(inner, b.of(grant, client_verb::check));
  CHECK_FALSE(b.heard(inner, broker_say::ack)->applied);
}

TEST_CASE("nobody asks in another's name, but the owner of the broker may") {
  broker_fixture b(settings_of(1));
  auto mine = b.connect("user1000/x", false);
  CHECK(b.heard(mine, broker_say::hello)->as == "user1000/x");
  auto other = b.connect("root/x", false);
  CHECK(b.heard(other, broker_say::error)->code == errc::refused);
  CHECK(b.outside.closed.count(other) == 1);
  auto owner = b.connect("anybody/x", true);
  CHECK(b.heard(owner, broker_say::hello)->as == "anybody/x");
}

TEST_CASE("drain and quota are for the owner; quota weighs from the next request on") {
  broker_fixture b(settings_of(1));
  auto guest = b.connect("", false), owner = b.connect("alice/x");
  client_line drain;
  drain.verb = client_verb::drain;
  drain.reason = "fan";
  b.say(guest, drain);
  CHECK(b.heard(guest, broker_say::error)->code == errc::refused);
  client_line quota;
  quota.verb = client_verb::quota;
  quota.user = "alice";
  quota.weight = 3;
  b.say(owner, quota);
  CHECK(b.heard(owner, broker_say::ack)->applied);
  CHECK(b.outside.kept.weights["alice"] == 3);
  b.request(owner);
  CHECK(b.outside.records["sleep#0"].request.weight == 3);
}

TEST_CASE("a drained GPU grants nothing new and lets what runs go on") {
  broker_fixture b(settings_of(1));
  auto one = b.connect(), two = b.connect();
  b.request(one);
  auto grant = b.granted(one);
  b.started(one, grant);
  client_line drain;
  drain.verb = client_verb::drain;
  drain.gpu_name = "sleep#0";
  drain.reason = "fan";
  b.say(two, drain);
  CHECK(b.heard(two, broker_say::ack)->applied);
  CHECK(b.outside.kept.drained["sleep#0"] == "fan");
  b.request(two);
  b.say(one, b.of(grant, client_verb::ended));
  CHECK(b.waits(two));
  CHECK(b.phase() == "draining");
  drain.verb = client_verb::undrain;
  b.say(two, drain);
  CHECK(b.heard(two, broker_say::ack)->applied);
  b.granted(two);
  drain.gpu_name = "cuda:9";
  b.say(two, drain);
  CHECK_FALSE(b.heard(two, broker_say::ack)->applied);
}

TEST_CASE("a changed place is told, at most as often as asked for") {
  broker_fixture b(settings_of(1));
  std::vector<connection_id> all;
  for (int n = 0; n < 4; ++n)
    all.push_back(b.connect());
  b.request(all[0]);
  b.request(all[1]);
  b.request(all[2]);
  client_line line;
  line.verb = client_verb::request;
  line.request = 1;
  line.guarded = true;
  line.watch = 1s;
  b.say(all[3], line);
  CHECK(b.heard(all[3], broker_say::ticket)->ahead == 2);
  b.gone(all[1]);
  CHECK_FALSE(b.heard(all[3], broker_say::position));
  b.wait(1100ms);
  auto place = b.heard(all[3], broker_say::position);
  REQUIRE(place.has_value());
  CHECK(place->ahead == 1);
  b.wait(5s);
  CHECK_FALSE(b.heard(all[3], broker_say::position));
}

TEST_CASE("hello comes first, once, and in our protocol") {
  broker_fixture b(settings_of(1));
  auto bare = ++b.last;
  b.core.on_connect(bare, {}, b.now);
  b.request(bare);
  CHECK(b.heard(bare, broker_say::error).has_value());
  CHECK(b.outside.closed.count(bare) == 1);
  auto twice = b.connect();
  b.say(twice, client_line{});
  CHECK(b.outside.closed.count(twice) == 1);
  auto modern = ++b.last;
  b.core.on_connect(modern, {}, b.now);
  client_line hello;
  hello.protocol = 2;
  b.say(modern, hello);
  CHECK(b.heard(modern, broker_say::error)->code == errc::unsupported);
}

TEST_CASE("what the table refuses reaches the client with its reason") {
  broker_fixture b(settings_of(1));
  auto one = b.connect();
  client_line line;
  line.verb = client_verb::request;
  line.request = 1;
  line.need = "h200";
  b.say(one, line);
  CHECK(b.heard(one, broker_say::error)->code == errc::not_found);
  line.need = "";
  line.term = 1h;
  b.say(one, line);
  CHECK(b.heard(one, broker_say::error)->code == errc::invalid_input);
}

TEST_CASE("one connection cannot fill the line") {
  broker_fixture b(settings_of(1));
  auto one = b.connect();
  for (uint64_t n = 1; n <= 66; ++n)
    b.request(one, true, {}, n);
  CHECK(b.heard(one, broker_say::error)->code == errc::queue_full);
}

TEST_CASE("the end of the broker grants nothing more and keeps the line for the next one") {
  broker_fixture b(settings_of(1));
  auto one = b.connect(), two = b.connect();
  b.request(one);
  auto grant = b.granted(one);
  b.started(one, grant);
  b.request(two);
  b.core.drain(b.now);
  CHECK_FALSE(b.core.at_rest());
  b.say(one, b.of(grant, client_verb::ended));
  CHECK(b.waits(two));
  CHECK_FALSE(b.heard(two, broker_say::over));
  CHECK(b.core.at_rest());
  CHECK_MESSAGE(b.outside.kept.drained.empty(), "a restart lends again");
}
