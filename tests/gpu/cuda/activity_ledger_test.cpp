#include "gpu/cuda/activity_ledger.hpp"

#include <doctest/doctest.h>

using namespace gristmill;
using cuda::activity_ledger;
using cuda::traced_activity;

namespace {

device_activity kernel(const std::string& name) {
  return {"kernel", name, {4, 1, 1}, {256, 1, 1}, 0};
}

traced_activity seen(
  device_activity what, uint64_t window, uint32_t correlation, uint64_t start, uint64_t end) {
  return {std::move(what), start, end, correlation, window};
}

} // namespace

TEST_CASE("a call counts from its first start to its last end when the tracer saw all of it") {
  activity_ledger ledger(3);
  // Records come in any order; what the host asked for first has the smaller correlation.
  const auto entry = ledger.judge(2, {kernel("a"), kernel("b")},
    {seen(kernel("b"), 2, 8, 150, 420), seen(kernel("a"), 2, 7, 100, 200)}, 0);
  REQUIRE(entry.ns);
  CHECK(*entry.ns == 320);
  CHECK(ledger.findings().empty());
  CHECK(ledger.activities() == std::vector{kernel("a"), kernel("b")});
}

TEST_CASE("our own work between calls is nobody's") {
  activity_ledger ledger(3);
  const auto entry = ledger.judge(2, {kernel("a")},
    {seen(kernel("gm_scrub"), activity_ledger::ours, 1, 10, 20), seen(kernel("a"), 2, 2, 30, 40)},
    0);
  CHECK(entry.ns == 10);
  CHECK(ledger.findings().empty());
}

TEST_CASE("a call with a missing record, a dropped one or no times is taken again") {
  activity_ledger ledger(3);
  CHECK_FALSE(ledger.judge(2, {kernel("a"), kernel("b")}, {seen(kernel("a"), 2, 1, 1, 2)}, 0).ns);
  CHECK_FALSE(ledger.judge(3, {kernel("a")}, {seen(kernel("a"), 3, 2, 1, 2)}, 1).ns);
  CHECK_FALSE(ledger.judge(4, {kernel("a")}, {seen(kernel("a"), 4, 3, 0, 2)}, 0).ns);
  CHECK(ledger.taken_again() == 3);
  CHECK(ledger.findings().empty());
  CHECK_FALSE(ledger.given_up());
  const auto last = ledger.judge(5, {kernel("a")}, {}, 0);
  CHECK_FALSE(last.ns);
  CHECK(last.why_again.find("kernel a, grid 4x1x1, block 256x1x1") != std::string::npos);
  CHECK(ledger.given_up());
}

TEST_CASE("a record that comes late for a call that was taken again is no finding") {
  activity_ledger ledger(3);
  CHECK_FALSE(ledger.judge(2, {kernel("a")}, {}, 0).ns);
  CHECK(
    ledger
      .judge(3, {kernel("a")}, {seen(kernel("a"), 2, 1, 1, 2), seen(kernel("a"), 3, 2, 5, 9)}, 0)
      .ns
    == 4);
  CHECK(ledger.findings().empty());
}

TEST_CASE("a kernel that the plan does not name is a finding, and its time counts") {
  activity_ledger ledger(3);
  const auto entry = ledger.judge(
    2, {kernel("a")}, {seen(kernel("a"), 2, 1, 10, 20), seen(kernel("b"), 2, 2, 20, 90)}, 0);
  CHECK(entry.ns == 80);
  REQUIRE(ledger.findings().size() == 1);
  CHECK(ledger.findings()[0].rule == "extra_activity");
  CHECK(ledger.findings()[0].detail.find("kernel b") != std::string::npos);
}

TEST_CASE("another grid or another order than the plan's is a finding") {
  activity_ledger ledger(3);
  auto other = kernel("a");
  other.grid = {5, 1, 1};
  (void)ledger.judge(2, {kernel("a")}, {seen(kernel("a"), 2, 1, 1, 2), seen(other, 2, 2, 1, 2)}, 0);
  CHECK(ledger.findings().size() == 1);
  activity_ledger orders(3);
  CHECK(orders
          .judge(2, {kernel("a"), kernel("b")},
            {seen(kernel("b"), 2, 1, 1, 2), seen(kernel("a"), 2, 2, 2, 3)}, 0)
          .ns);
  CHECK(orders.findings().size() == 1);
}

TEST_CASE("every call of a measurement shows the same list") {
  activity_ledger ledger(3);
  (void)ledger.judge(2, {kernel("a")}, {seen(kernel("a"), 2, 1, 1, 2)}, 0);
  (void)ledger.judge(3, {kernel("b")}, {seen(kernel("b"), 3, 2, 3, 4)}, 0);
  REQUIRE(ledger.findings().size() == 1);
  CHECK(ledger.findings()[0].detail.find("one call did kernel a") != std::string::npos);
}

TEST_CASE("late work is told: after its call was counted, or asked for by no call") {
  activity_ledger ledger(3);
  (void)ledger.judge(2, {kernel("a")}, {seen(kernel("a"), 2, 1, 1, 2)}, 0);
  (void)ledger.judge(3, {kernel("a")},
    {seen(kernel("late"), 2, 2, 3, 4), seen(kernel("stray"), 0, 3, 3, 4),
      seen(kernel("stray"), 0, 4, 5, 6), seen(kernel("a"), 3, 5, 5, 6)},
    0);
  const auto findings = ledger.findings();
  REQUIRE(findings.size() == 2);
  CHECK(findings[0].rule == "activity_outside_call");
  CHECK(findings[0].detail.find("1 times more") != std::string::npos);
  CHECK(findings[1].rule == "extra_activity");
  CHECK_FALSE(findings[1].fatal);
}

TEST_CASE("a call that did nothing cannot be timed by its activities") {
  activity_ledger ledger(3);
  CHECK_FALSE(ledger.judge(2, {}, {}, 0).ns);
}
