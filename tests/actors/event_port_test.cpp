#include "actors/event_port.hpp"
#include "tests/support/actor_fixture.hpp"

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

event of_kind(const char* kind) {
  return {.kind = kind};
}

struct somebody_who_notes : actor_fixture {
  fake_journal log = make_fake_journal(*this);
  fake_holder who = make_fake_holder(*this);
  event_port port{log.handle, start};

  lease_holder_actor::base* self() { return self_of(who.handle); }
};

TEST_SUITE_BEGIN("event port");

TEST_CASE_FIXTURE(somebody_who_notes, "an event carries the time since the start of the run") {
  advance(3s);
  port.note(self(), of_kind("a"));
  event stamped{.t = 1s, .kind = "b"};
  port.note(self(), stamped);
  settle();
  CHECK(log->last("a").t == 3s);
  CHECK(log->last("b").t == 1s);
}

TEST_CASE_FIXTURE(
  somebody_who_notes, "what is noted while an append is on its way follows in one") {
  log->withhold = true;
  port.note(self(), of_kind("first"));
  settle();
  for (int i = 0; i < 500; ++i)
    port.note(self(), of_kind("more"));
  settle();
  CHECK(log->events.size() == 1);
  CHECK(log->withheld() == 1);
  CHECK(port.unacknowledged() == 501);
  log->acknowledge();
  settle();
  CHECK(log->events.size() == 501);
  CHECK(log->withheld() == 1);
  log->withhold = false;
  log->acknowledge();
  settle();
  CHECK(port.unacknowledged() == 0);
}

TEST_CASE_FIXTURE(somebody_who_notes, "a kept event goes at once, after what was noted before it") {
  log->withhold = true;
  int on_disk = 0;
  port.note(self(), of_kind("on its way"));
  port.note(self(), of_kind("noted"));
  port.keep(
    self(), of_kind("kept"), [&](const result<void>& stored) { on_disk += stored ? 1 : 0; });
  settle();
  REQUIRE(log->events.size() == 3);
  CHECK(log->events[1].kind == "noted");
  CHECK(log->events[2].kind == "kept");
  CHECK(log->how[2] == durability::barrier);
  CHECK(on_disk == 0);
  log->acknowledge();
  settle();
  CHECK(on_disk == 1);
}

TEST_CASE_FIXTURE(
  somebody_who_notes, "a journal that fails is told to who keeps, once and for ever") {
  log->fails = failure{errc::io_failed, "disk full"};
  std::vector<failure> told;
  auto remember = [&](const result<void>& stored) {
    REQUIRE_FALSE(stored);
    told.push_back(stored.error());
  };
  port.keep(self(), of_kind("kept"), remember);
  settle();
  REQUIRE(told.size() == 1);
  CHECK(told[0] == failure{errc::io_failed, "disk full"});
  port.note(self(), of_kind("dropped"));
  port.keep(self(), of_kind("kept"), remember);
  settle();
  CHECK(told.size() == 2);
  CHECK(log->events.empty());
  CHECK(port.unacknowledged() == 0);
}

TEST_CASE_FIXTURE(somebody_who_notes, "a journal that is gone counts as one that fails") {
  end(log.handle);
  int told = 0;
  port.keep(self(), of_kind("kept"), [&](const result<void>& stored) { told += stored ? 0 : 1; });
  settle();
  CHECK(told == 1);
}

TEST_CASE_FIXTURE(somebody_who_notes, "closing hands over what is still here") {
  log->withhold = true;
  port.note(self(), of_kind("on its way"));
  port.note(self(), of_kind("still here"));
  port.close();
  settle();
  CHECK(log->count("still here") == 1);
  port.note(self(), of_kind("too late"));
  settle();
  CHECK(log->count("too late") == 0);
}

TEST_CASE_FIXTURE(somebody_who_notes, "a copy has events of its own") {
  log->withhold = true;
  port.note(self(), of_kind("on its way"));
  port.note(self(), of_kind("waits here"));
  event_port copy = port;
  CHECK(copy.unacknowledged() == 0);
  copy.note(self(), of_kind("of the copy"));
  settle();
  CHECK(log->count("of the copy") == 1);
  CHECK(log->count("waits here") == 0);
}

TEST_SUITE_END();

} // namespace
