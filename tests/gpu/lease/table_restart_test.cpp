#include "tests/gpu/lease/lease_fixture.hpp"

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

struct restart_fixture : table_fixture {
  /// A broker that starts for the second time; tokens up to 1024 were reserved before.
  restart_fixture() {
    lease_table_config c;
    c.epoch = 2;
    empty(c);
    gpu_entry entry{"g0", "h200", 1024};
    entry.may_hold_lease_of_before = true;
    add(entry);
    out.clear();
  }

  device_report holding(uint64_t old_token, nanoseconds held) const {
    device_report r;
    r.state = device_state::holding;
    r.token = old_token;
    r.adopted.request = make(alice, 7);
    r.adopted.held = held;
    return r;
  }
};

} // namespace

TEST_CASE_FIXTURE(
  restart_fixture, "a lease of before is adopted, charged, and counted against its cap") {
  REQUIRE(ask(bob));
  CHECK(table->on_report(holding(700, 100s), now, out).applied);
  CHECK(phase() == gpu_phase::active);
  CHECK(token() == 700);
  REQUIRE(lines("lease_adopt").size() == 1);
  CHECK(lines("lease_adopt")[0].data.find("\"epoch\":2") != std::string::npos);
  CHECK(grants().empty());
  CHECK(table->next_deadline() == 25s);
  CHECK(table->on_report(holding(700, 100s), now, out).applied);
  now = 10s;
  CHECK(table->on_release(0, 700, "done", now, out).applied);
  table->on_verified(0, 700, now, out);
  REQUIRE(grants().size() == 1);
  CHECK(grants()[0].granted.granted.token == 1025);
  auto usage = table->snapshot().usage;
  REQUIRE(usage.size() == 2);
  CHECK(usage[0].held_ns == 110'000'000'000u);
}

TEST_CASE_FIXTURE(restart_fixture, "an adopted lease past its cap is revoked at once") {
  CHECK(table->on_report(holding(700, 200s), now, out).applied);
  CHECK(*table->next_deadline() <= now);
  pass_time(0s);
  CHECK(phase() == gpu_phase::releasing);
  CHECK(revokes().back().revoke.token == 700);
  // Nobody has claimed it, so nobody is told.
  CHECK(notices().empty());
}

TEST_CASE_FIXTURE(restart_fixture, "its client claims an adopted lease, once") {
  table->on_report(holding(700, 1s), now, out);
  CHECK_FALSE(table->on_claim(alice, 3, 0, 699, now, out).applied);
  CHECK(table->on_claim(alice, 3, 0, 700, now, out).applied);
  CHECK(table->on_claim(alice, 3, 0, 700, now, out).applied);
  CHECK_FALSE(table->on_claim(bob, 3, 0, 700, now, out).applied);
  CHECK_FALSE(table->on_claim(bob, 3, 9, 700, now, out).applied);
  table->on_holder_down(alice, now, out);
  CHECK(phase() == gpu_phase::releasing);
}

TEST_CASE_FIXTURE(restart_fixture, "a claim needs a number of its own") {
  REQUIRE(ask(alice, 3));
  table->on_report(holding(700, 1s), now, out);
  CHECK_FALSE(table->on_claim(alice, 3, 0, 700, now, out).applied);
  CHECK(table->on_claim(alice, 4, 0, 700, now, out).applied);
}

TEST_CASE_FIXTURE(
  restart_fixture, "an idle executor of before is fenced before anybody gets its GPU") {
  REQUIRE(ask(bob));
  table->on_device_up(0, now, out);
  CHECK(grants().empty());
  REQUIRE(revokes().size() == 1);
  CHECK(revokes()[0].revoke.token == 1024);
  // A late word of an old token does not make it a lease again.
  CHECK_FALSE(table->on_report(holding(700, 1s), now, out).applied);
  CHECK(revokes().size() == 2);
  table->on_verified(0, 1024, now, out);
  CHECK(grants().size() == 1);
}

TEST_CASE_FIXTURE(
  restart_fixture, "of an executor that says nothing the same is demanded after the longest cap") {
  REQUIRE(ask(bob));
  pass_time(604s);
  CHECK(revokes().empty());
  pass_time(1s);
  CHECK(revokes().size() == 1);
  CHECK(phase() == gpu_phase::verifying);
  CHECK(grants().empty());
  table->on_verified(0, 1024, now, out);
  CHECK(grants().size() == 1);
}

TEST_CASE_FIXTURE(restart_fixture, "a lease that cannot be one is not adopted, and ended") {
  auto r = holding(700, 1s);
  r.adopted.request.what = static_cast<lease_class>(9);
  CHECK_FALSE(table->on_report(r, now, out).applied);
  CHECK(phase() == gpu_phase::verifying);
  REQUIRE(revokes().size() == 1);
}

TEST_CASE_FIXTURE(restart_fixture, "a token that was never granted is not adopted") {
  CHECK_FALSE(table->on_report(holding(1025, 1s), now, out).applied);
  CHECK_FALSE(table->on_report(holding(0, 1s), now, out).applied);
  CHECK(phase() == gpu_phase::absent);
  CHECK(out.empty());
}

TEST_CASE_FIXTURE(restart_fixture, "an executor that runs two tokens of before has to end both") {
  table->on_report(holding(700, 1s), now, out);
  out.clear();
  CHECK_FALSE(table->on_report(holding(800, 1s), now, out).applied);
  CHECK(phase() == gpu_phase::releasing);
  CHECK(revokes().back().revoke.token == 800);
  table->on_verified(0, 700, now, out);
  CHECK(phase() == gpu_phase::releasing);
  table->on_verified(0, 800, now, out);
  CHECK(phase() == gpu_phase::free);
}

TEST_CASE_FIXTURE(restart_fixture,
  "a token of before that starts on a suspect GPU is ended before any probe counts") {
  table->on_report(holding(700, 1s), now, out);
  table->on_release(0, 700, "done", now, out);
  table->on_verified(0, 700, {probe_outcome::could_not, ""}, now, out);
  CHECK(phase() == gpu_phase::suspect);
  out.clear();
  CHECK_FALSE(table->on_activated(0, 800, now, out).applied);
  CHECK(phase() == gpu_phase::verifying);
  CHECK(revokes().back().revoke.token == 800);
  CHECK_FALSE(table->on_probed(0, {}, now, out).applied);
  table->on_verified(0, 800, now, out);
  CHECK(phase() == gpu_phase::free);
}

TEST_CASE_FIXTURE(restart_fixture, "the epoch stands in the snapshot and in every grant") {
  CHECK(table->snapshot().epoch == 2);
  table->on_device_up(0, now, out);
  table->on_verified(0, 1024, now, out);
  REQUIRE(ask(bob));
  CHECK(lines("lease_grant")[0].data.find("\"epoch\":2") != std::string::npos);
}

TEST_CASE_FIXTURE(
  table_fixture, "a lost GPU comes back under a new boot id and after a passed probe") {
  empty();
  auto gpu = add({"g0", "h200"});
  CHECK(table->on_device_up(gpu, "boot-1", now, out).applied);
  CHECK(phase() == gpu_phase::free);
  auto t = lease_active(alice);
  REQUIRE(ask(bob));
  table->on_device_down(gpu, "no heartbeat", now, out);
  CHECK(notices()[0].ended.reason == "node_lost: no heartbeat");
  CHECK(phase() == gpu_phase::lost);
  CHECK_FALSE(table->on_device_up(gpu, "boot-1", now, out).applied);
  CHECK_FALSE(table->on_device_up(gpu, "", now, out).applied);
  CHECK(phase() == gpu_phase::lost);
  CHECK(table->on_device_up(gpu, "boot-2", now, out).applied);
  // Its last lease first.
  CHECK(phase() == gpu_phase::verifying);
  table->on_verified(gpu, t, {probe_outcome::could_not, ""}, now, out);
  CHECK(phase() == gpu_phase::suspect);
  CHECK(grants().empty());
  table->on_probed(gpu, {}, now, out);
  CHECK(grants().size() == 1);
  CHECK(lines("lease_grant")[0].data.find("boot-2") != std::string::npos);
}

TEST_CASE_FIXTURE(
  table_fixture, "a node that has started anew before the news of its end closes its lease") {
  empty();
  auto gpu = add({"g0", "h200"});
  table->on_device_up(gpu, "boot-1", now, out);
  lease_active(alice);
  CHECK(table->on_device_up(gpu, "boot-2", now, out).applied);
  REQUIRE(notices().size() == 1);
  CHECK(notices()[0].ended.reason == "node_lost: its node has started anew");
  CHECK(phase() == gpu_phase::verifying);
  // A late word from before changes nothing.
  CHECK_FALSE(table->on_device_up(gpu, "boot-1", now, out).applied);
  CHECK(phase() == gpu_phase::verifying);
  CHECK_FALSE(table->on_device_up(gpu, std::string(129, 'x'), now, out).applied);
}

TEST_CASE_FIXTURE(table_fixture, "a new boot and a passed probe lift a quarantine") {
  empty();
  auto gpu = add({"g0", "h200"});
  table->on_device_up(gpu, "boot-1", now, out);
  table->quarantine(gpu, "off the bus", now, out);
  CHECK(table->on_device_up(gpu, "boot-1", now, out).applied);
  CHECK(phase() == gpu_phase::quarantined);
  table->on_device_up(gpu, "boot-2", now, out);
  CHECK(phase() == gpu_phase::suspect);
  table->on_probed(gpu, {}, now, out);
  CHECK(phase() == gpu_phase::free);
}

TEST_CASE_FIXTURE(table_fixture,
  "a GPU whose executor has gone during its quarantine is lost when that is lifted") {
  table->quarantine(0, "x", now, out);
  table->on_device_down(0, "its executor has ended", now, out);
  CHECK(phase() == gpu_phase::quarantined);
  table->on_broker_command({broker_verb::undrain, "g0", ""}, now, out);
  CHECK(phase() == gpu_phase::lost);
  table->on_device_up(0, now, out);
  CHECK(phase() == gpu_phase::suspect);
}
