#include "tests/gpu/lease/lease_fixture.hpp"

#include <algorithm>

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

TEST_CASE("an alarm is raised once, is over once, and can come again") {
  alarm_board board;
  broker_alarm a{"starvation", "", 7, "1 h"};
  broker_alarm b{"gpu_suspect", "g0", 0, "x"};
  auto first = board.update({a, b});
  CHECK(first.raised.size() == 2);
  CHECK(first.over.empty());
  a.detail = "2 h";
  auto second = board.update({a});
  CHECK(second.raised.empty());
  REQUIRE(second.over.size() == 1);
  CHECK(second.over[0].kind == "gpu_suspect");
  REQUIRE(board.list().size() == 1);
  CHECK(board.list()[0].detail == "2 h");
  CHECK(board.update({a, b}).raised.size() == 1);
  CHECK(board.update({}).over.size() == 2);
  CHECK(board.empty());
}

TEST_CASE("at most 256 alarms stand, and those that stand keep their place") {
  alarm_board board;
  std::vector<broker_alarm> many;
  for (uint64_t i = 1000; i > 0; --i)
    many.push_back({"starvation", "", i, ""});
  CHECK(board.update(many).raised.size() == 256);
  std::reverse(many.begin(), many.end());
  auto again = board.update(many);
  CHECK(again.raised.empty());
  CHECK(again.over.empty());
}

TEST_CASE_FIXTURE(table_fixture, "a flow that is served does not starve, however long its queue") {
  auto t = lease_active(alice);
  for (uint64_t i = 2; i < 60; ++i)
    REQUIRE(ask(alice, i));
  for (int i = 0; i < 50; ++i) {
    now += 100s;
    end(t);
    t = begin();
  }
  CHECK(now > 1h);
  CHECK(table->waiting() > 0);
  CHECK_FALSE(alarmed("starvation"));
}

TEST_CASE_FIXTURE(table_fixture, "starvation is an hour without a lease while waiting") {
  table->on_broker_command({broker_verb::drain, "", "maintenance"}, now, out);
  REQUIRE(ask(bob));
  pass_time(59min);
  CHECK(lines("alarm").empty());
  CHECK_FALSE(alarmed("starvation"));
  pass_time(1min);
  REQUIRE(lines("alarm").size() == 1);
  CHECK(lines("alarm")[0].reason == "starvation");
  CHECK(lines("alarm")[0].data.find("agent-2") != std::string::npos);
  pass_time(10min);
  CHECK(lines("alarm").size() == 1);
  table->on_broker_command({broker_verb::undrain, "", ""}, now, out);
  CHECK(grants().size() == 1);
  pass_time(30s);
  CHECK(lines("alarm_over").size() == 1);
}

TEST_CASE_FIXTURE(
  table_fixture, "starvation is also twenty times the usual wait, and at least a minute") {
  auto t = lease_active(alice);
  for (uint64_t i = 2; i < 12; ++i) {
    REQUIRE(ask(alice, i));
    now += 6s;
    end(t);
    t = begin();
  }
  REQUIRE(ask(bob));
  now += 119s;
  CHECK_FALSE(alarmed("starvation"));
  now += 1s;
  CHECK(alarmed("starvation"));
}

TEST_CASE_FIXTURE(
  table_fixture, "waiters for one kind of GPU while another kind is free are told on") {
  empty();
  table->on_device_up(add({"a", "h200"}), now, out);
  table->on_device_up(add({"b", "b200"}), now, out);
  REQUIRE(ask_for(alice, 1, "h200"));
  begin(0);
  REQUIRE(ask_for(bob, 1, "h200"));
  pass_time(29s);
  CHECK_FALSE(alarmed("head_of_line"));
  pass_time(1s);
  REQUIRE(lines("alarm").size() == 1);
  CHECK(lines("alarm")[0].reason == "head_of_line");
  CHECK(lines("alarm")[0].data.find("h200") != std::string::npos);
}

TEST_CASE_FIXTURE(table_fixture, "a grant that nobody starts while others wait is told on") {
  REQUIRE(ask(alice));
  REQUIRE(ask(bob));
  pass_time(5s);
  REQUIRE(lines("alarm").size() == 1);
  CHECK(lines("alarm")[0].reason == "idle_while_leased");
}

TEST_CASE_FIXTURE(table_fixture, "nobody looks for alarms when nobody waits") {
  lease_active(alice);
  CHECK(table->next_deadline() == 125s);
  REQUIRE(ask(bob));
  CHECK(table->next_deadline() == 30s);
  table->on_cancel(bob, 1, now, out);
  pass_time(30s);
  CHECK(table->next_deadline() == 125s);
}

TEST_CASE_FIXTURE(table_fixture, "a snapshot lists waiters in order, with usage, alarms and ages") {
  start(1, {}, "fifo");
  lease_active(alice);
  now = 10s;
  REQUIRE(ask(bob));
  REQUIRE(ask(carol));
  now = 12s;
  auto s = table->snapshot({1}, now);
  CHECK(s.waiting == 2);
  REQUIRE(s.waiters.size() == 1);
  CHECK(s.waiters[0].flow.agent == "agent-2");
  CHECK(s.waiters[0].waited == 2s);
  CHECK(s.policy == "fifo");
  CHECK(s.gpus[0].flow.agent == "agent-1");
  CHECK(s.gpus[0].held == 12s);
  CHECK(s.gpus[0].term == 120s);
  CHECK(s.gpus[0].age == 12s);
  CHECK(table->snapshot({100}, now).waiters.size() == 2);
  CHECK(table->snapshot().waiters.empty());
}
