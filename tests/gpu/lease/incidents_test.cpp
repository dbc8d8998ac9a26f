#include "tests/gpu/lease/lease_fixture.hpp"

#include <set>

// One test for each failure that others have paid for already, as far as it is the business of the
// broker's core. The others, and where they are taken care of:
//
// - Locks that were bypassed by absolute paths (first half) and kernels that ran in the process of
//   the runtime: the executors start each lease as a process of its own, and the device belongs to
//   the executor (tests/gpu/children, tests/actors/gpu_executor_test.cpp).
// - Rented slices of a host whose variance no pairing cancels; a best configuration that differs on
//   every run: a matter of statistics (scoring/), not of who may use a GPU. The broker lets one ask
//   for a node ("node=a").
// - A timer that falls back silently, cannot attach or records nothing: a measurement without a
//   reading is refused by the scorer (tests/actors), it never reaches the broker.

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

TEST_SUITE_BEGIN("incidents");

TEST_CASE_FIXTURE(table_fixture,
  "two stages of one pipeline each took the lock, and the box was idle for 71 minutes") {
  // A run has one lease, however often its parts ask for it.
  auto first = ask(alice, 1);
  auto again = ask(alice, 1);
  REQUIRE(again);
  CHECK(again->ticket == first->ticket);
  CHECK(grants().size() == 1);
  auto t = begin();
  // If they take two after all, the idle one is seen, told on and ended: 5 seconds, not 71 minutes.
  REQUIRE(ask(alice, 2));
  CHECK_FALSE(table->on_renew(0, t, 5s, now, out).applied);
  REQUIRE(lines("alarm").size() == 1);
  CHECK(lines("alarm")[0].reason == "idle_while_leased");
  table->on_verified(0, t, now, out);
  CHECK(grants().back().granted.request == 2);
  // And no wait is without an end.
  CHECK(table->next_deadline());
}

TEST_CASE_FIXTURE(table_fixture,
  "a check held the lock for an hour, and the calls of the others died at their limit of two "
  "minutes") {
  auto r = make(alice);
  r.what = lease_class::correctness;
  REQUIRE(table->on_request(alice, r, now, out));
  begin();
  out.clear();
  // Asking is answered at once, with the place in line; waiting is no open call.
  auto ticket = ask(bob);
  REQUIRE(ticket);
  CHECK(ticket->ahead == 0);
  CHECK(ticket->estimated_wait > 0s);
  // And the check has a cap.
  pass_time(65s);
  CHECK(phase() == gpu_phase::releasing);
  table->on_verified(0, token(), now, out);
  REQUIRE(grants().size() == 1);
  CHECK(grants()[0].holder == bob);
}

TEST_CASE_FIXTURE(table_fixture, "a time limit had begun before the lock was won") {
  auto t = lease_active(alice);
  REQUIRE(ask(bob));
  pass_time(100s);
  end(t);
  CHECK(grants().back().granted.granted.term == 120s);
  begin();
  // All of its time is left, and not 20 s of it.
  pass_time(60s);
  CHECK(phase() == gpu_phase::active);
  // The limit of the queue is another one.
  auto r = make(carol);
  r.patience = 30s;
  REQUIRE(table->on_request(carol, r, now, out));
  out.clear();
  pass_time(30s);
  REQUIRE(notices().size() == 1);
  CHECK(notices()[0].holder == carol);
  CHECK(phase() == gpu_phase::active);
}

TEST_CASE_FIXTURE(
  table_fixture, "a lock for each suite instead of one for the machine was bypassed") {
  auto t = lease_active(alice);
  end(t);
  out.clear();
  // Whoever starts work without a living lease is found at the device and told to stop.
  CHECK_FALSE(table->on_activated(0, t, now, out).applied);
  CHECK(revokes().size() == 1);
}

TEST_CASE_FIXTURE(table_fixture, "a fatal context error in one worker took down four GPUs") {
  start(4);
  for (uint64_t i = 1; i <= 4; ++i)
    REQUIRE(ask(alice, i));
  for (uint32_t gpu = 0; gpu < 4; ++gpu)
    begin(gpu);
  end(token(2), lease_outcome::fault, 2);
  CHECK(phase(2) == gpu_phase::free);
  for (uint32_t gpu : {0u, 1u, 3u})
    CHECK(phase(gpu) == gpu_phase::active);
}

TEST_CASE_FIXTURE(table_fixture,
  "a kernel without an end blocked its supervisor, and cancellations were never read") {
  start(2);
  lease_active(alice);
  auto t = token(0);
  // The cancellation is answered at once, although the executor says nothing any more.
  CHECK(table->on_cancel(alice, 1, now, out).applied);
  CHECK(revokes().size() == 1);
  // The broker goes on serving the others.
  REQUIRE(ask(bob));
  CHECK(grants().back().granted.granted.gpu == 1);
  // And does not wait for ever: the GPU is given up for lost.
  pass_time(60s);
  CHECK(phase(0) == gpu_phase::lost);
  CHECK_FALSE(table->in_use(0, t));
}

TEST_CASE_FIXTURE(table_fixture, "the health probe itself hung, and could not be killed") {
  auto t = lease_active(alice);
  end(t, lease_outcome::fine, 0, {probe_outcome::could_not, "no answer"});
  CHECK(phase() == gpu_phase::suspect);
  REQUIRE(probes().size() == 1);
  CHECK(probes()[0].probe.limit == 10s);
  pass_time(10s);
  // Its time is over: what it says later does not count, and it is asked again.
  CHECK_FALSE(table->on_probed(0, {}, now, out).applied);
  CHECK(phase() == gpu_phase::suspect);
  CHECK(alarmed("no_probe"));
  pass_time(5s);
  CHECK(probes().size() == 2);
}

TEST_CASE_FIXTURE(
  table_fixture, "a health probe blamed the hardware for a full memory and a busy card") {
  auto t = lease_active(alice);
  probe_report busy{probe_outcome::could_not, "out of memory"};
  out.clear();
  end(t, lease_outcome::fine, 0, busy);
  // The measurement stands, and the GPU is not called faulty, however long that goes on.
  CHECK(lines("lease_tainted").empty());
  CHECK(notices().empty());
  for (int i = 0; i < 100; ++i) {
    CHECK(phase() == gpu_phase::suspect);
    table->on_probed(0, busy, now, out);
    pass_time(5min);
  }
  CHECK(lines("gpu_quarantined").empty());
  table->on_probed(0, {}, now, out);
  CHECK(phase() == gpu_phase::free);
}

TEST_CASE_FIXTURE(table_fixture,
  "report 1: a lock was held for 25 minutes at 3 percent use; shortest first cut the waits") {
  start(1, {}, "sept");
  auto t = lease_active(alice);
  auto slow = make(bob, 1);
  slow.estimated_hold = 100s;
  auto quick = make(carol, 1);
  quick.estimated_hold = 1s;
  REQUIRE(table->on_request(bob, slow, now, out));
  REQUIRE(table->on_request(carol, quick, now, out));
  CHECK_FALSE(table->on_renew(0, t, 6s, now, out).applied);
  table->on_verified(0, t, now, out);
  REQUIRE(grants().size() == 1);
  CHECK(grants()[0].holder == carol);
}

TEST_CASE_FIXTURE(table_fixture,
  "report 2: parallel warm-up on one GPU picked bad configurations, which were kept") {
  for (uint64_t i = 0; i < 10; ++i)
    REQUIRE(ask(alice, i));
  CHECK(grants().size() == 1);
  CHECK(table->waiting() == 9);
}

TEST_CASE_FIXTURE(
  table_fixture, "report 3: eight of nine harnesses went past the lock of the machine") {
  auto t = lease_active(alice);
  table->on_release(0, t, "done", now, out);
  auto ack = table->on_verified(0, t, {probe_outcome::failed, "foreign process 4711"}, now, out);
  // What was measured beside a stranger does not count.
  CHECK(ack.note.starts_with("tainted"));
  REQUIRE(lines("lease_tainted").size() == 1);
  CHECK(lines("lease_tainted")[0].reason.find("4711") != std::string::npos);
  CHECK(phase() == gpu_phase::suspect);
}

TEST_CASE_FIXTURE(
  table_fixture, "report 4: a supervisor and its child waited for each other at one lock") {
  auto t = lease_active(alice);
  // The child works under the token of its parent; to ask again under its number is no wait.
  auto again = ask(alice, 1);
  REQUIRE(again);
  CHECK(again->estimated_wait == 0s);
  CHECK(table->waiting() == 0);
  CHECK(table->on_renew(0, t, now).applied);
}

TEST_CASE_FIXTURE(table_fixture,
  "report 5: candidates compared under separate holds of the lock were interleaved with others") {
  REQUIRE(ask_with(alice, 1, "challenger"));
  auto t = begin();
  REQUIRE(ask(bob));
  out.clear();
  // One lease spans the whole comparison: its token holds for each of the measurements, whatever
  // they run, until it is given back. Nobody comes between.
  for (int round = 0; round < 10; ++round) {
    pass_time(5s);
    CHECK(table->on_activated(0, t, now, out).applied);
    CHECK(table->on_renew(0, t, 0s, now, out).applied);
    CHECK(table->in_use(0, t));
  }
  CHECK(grants().empty());
  end(t);
  CHECK(grants().size() == 1);
}

TEST_CASE_FIXTURE(
  table_fixture, "report 6: only one kernel for each GPU gives numbers to depend on") {
  start(3);
  for (uint64_t i = 0; i < 9; ++i)
    REQUIRE(ask(alice, i));
  std::set<uint32_t> used;
  for (const auto& a : grants())
    CHECK(used.insert(a.granted.granted.gpu).second);
  CHECK(used.size() == 3);
}

TEST_CASE_FIXTURE(table_fixture, "report 7: one lock made different devices wait for each other") {
  start(2);
  lease_active(alice);
  REQUIRE(ask(bob));
  CHECK(grants().size() == 1);
  CHECK(table->waiting() == 0);
}

TEST_CASE_FIXTURE(table_fixture, "report 8: tuning ran while the GPU was busy with other work") {
  auto t = lease_active(alice);
  end(t, lease_outcome::fine, 0, {probe_outcome::failed, "3 GiB more than at rest"});
  REQUIRE(ask(bob));
  CHECK(grants().empty());
  table->on_probed(0, {}, now, out);
  CHECK(grants().size() == 1);
}

TEST_CASE_FIXTURE(table_fixture, "report 11: clocks stayed as they were after Ctrl-C") {
  lease_active(alice);
  auto t = token();
  table->on_holder_down(alice, now, out);
  CHECK(revokes().size() == 1);
  table->on_verified(0, t, {probe_outcome::failed, "clocks are not as locked"}, now, out);
  CHECK(phase() == gpu_phase::suspect);
  REQUIRE(ask(bob));
  CHECK(grants().empty());
}

TEST_CASE_FIXTURE(table_fixture, "report 15: every job took the first GPU while the others idled") {
  start(4);
  std::set<uint32_t> used;
  for (uint64_t i = 0; i < 4; ++i) {
    auto r = make(alice, i);
    r.need = "";
    REQUIRE(table->on_request(alice, r, now, out));
  }
  for (const auto& a : grants())
    used.insert(a.granted.granted.gpu);
  CHECK(used.size() == 4);
}

TEST_SUITE_END();
