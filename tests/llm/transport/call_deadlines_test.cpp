#include "llm/transport/call_deadlines.hpp"

#include <doctest/doctest.h>

using namespace gristmill;
using namespace std::chrono_literals;

namespace {

using phase = call_deadlines::phase;

struct one_call {
  http_deadlines limits{.connect = 10s, .first_event = 60s, .idle = 300s, .wall = 1800s};
  call_deadlines call{limits, 600s, 250ms, 1000s};
};

void check_due(const call_deadlines& call, std::chrono::nanoseconds at, http_end how) {
  const auto due = call.next();
  REQUIRE(due);
  CHECK(due->at.count() == at.count());
  CHECK(due->how == how);
}

} // namespace

TEST_CASE_FIXTURE(
  one_call, "a call that waits for a connection has none of its own timers running") {
  check_due(call, 1600s, http_end::not_sent);
  CHECK_FALSE(call.was_sent());
}

TEST_CASE_FIXTURE(one_call, "each timer runs from its own moment") {
  call.connecting(1100s);
  check_due(call, 1110s, http_end::connect_timeout);
  call.sent(1105s);
  CHECK(call.was_sent());
  check_due(call, 1165s, http_end::first_event_timeout);
  call.event(1150s);
  check_due(call, 1450s, http_end::idle_timeout);
  call.byte(1400s);
  check_due(call, 1700s, http_end::idle_timeout);
  call.byte(2700s);
  check_due(call, 2905s, http_end::wall_timeout);
}

TEST_CASE_FIXTURE(one_call, "bytes that are no event do not satisfy the first-event timer") {
  call.sent(1000s);
  call.byte(1030s);
  check_due(call, 1060s, http_end::first_event_timeout);
}

TEST_CASE_FIXTURE(one_call, "a second attempt to connect or to send gives no more time") {
  call.connecting(1000s);
  call.connecting(1009s);
  check_due(call, 1010s, http_end::connect_timeout);
  call.sent(1009s);
  call.sent(1050s);
  call.connecting(1050s);
  check_due(call, 1069s, http_end::first_event_timeout);
}

TEST_CASE_FIXTURE(
  one_call, "a reader that has seen enough leaves the transfer its grace and no more") {
  call.sent(1000s);
  call.event(1001s);
  call.finished(1002s);
  check_due(call, 1002s + 250ms, http_end::complete);
  call.finished(1002s + 100ms);
  call.byte(1002s + 100ms);
  call.event(1002s + 100ms);
  check_due(call, 1002s + 250ms, http_end::complete);
}

TEST_CASE("a limit of 0 is none") {
  call_deadlines call({.connect = 0s, .first_event = 0s, .idle = 0s, .wall = 0s}, 600s, 250ms, 0s);
  call.connecting(1s);
  CHECK_FALSE(call.next());
  call.sent(2s);
  CHECK_FALSE(call.next());
  call.event(3s);
  CHECK_FALSE(call.next());
}

TEST_CASE("the wall is seen even when the first event is late") {
  call_deadlines call(
    {.connect = 1s, .first_event = 60s, .idle = 60s, .wall = 5s}, 600s, 250ms, 0s);
  call.sent(0s);
  check_due(call, 5s, http_end::wall_timeout);
}

TEST_CASE_FIXTURE(one_call, "a timer says in words what did not happen") {
  CHECK(call.explain(http_end::connect_timeout) == "no connection within 10 s");
  CHECK(call.explain(http_end::first_event_timeout) == "no event within 60 s after sending");
  CHECK(call.explain(http_end::idle_timeout) == "silent for 300 s in the middle of the answer");
  CHECK(call.explain(http_end::wall_timeout) == "not over 1800 s after sending");
  CHECK(call.explain(http_end::not_sent) == "no connection was free for it within 600 s");
}

TEST_CASE("alarms come out in the order of their times, and none before its time") {
  alarm_queue alarms;
  CHECK_FALSE(alarms.next());
  CHECK_FALSE(alarms.take_due(100s));
  alarms.arm(1, 30s);
  alarms.arm(2, 10s);
  alarms.arm(3, 20s);
  CHECK(alarms.next() == 10s);
  CHECK_FALSE(alarms.take_due(9s));
  CHECK(alarms.take_due(20s) == 2);
  CHECK(alarms.take_due(20s) == 3);
  CHECK_FALSE(alarms.take_due(20s));
  CHECK(alarms.size() == 1);
}
