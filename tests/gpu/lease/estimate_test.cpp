#include "tests/gpu/lease/lease_fixture.hpp"
#include "tests/gpu/lease/lease_world.hpp"

#include <algorithm>
#include <map>

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

/// Plays a queue on devices whose leases take about 50 ms and are handed over in 2 ms; notes what
/// each waiter was told when it asked, and how long it waited.
struct queue_play : table_fixture {
  struct wait {
    nanoseconds told{0};
    nanoseconds asked_at{0};
    nanoseconds waited{0};
  };
  std::map<uint64_t, wait> waits;
  std::map<nanoseconds, std::vector<uint32_t>> ends;
  chance random{7};

  void begin_granted() {
    for (const auto& a : grants()) {
      auto& w = waits[a.granted.request];
      w.waited = now - w.asked_at;
      auto gpu = a.granted.granted.gpu;
      table->on_activated(gpu, a.granted.granted.token, now, out);
      ends[now + 40ms + 1ms * random.below(21)].push_back(gpu);
    }
    std::erase_if(out, [](const auto& a) { return a.kind != lease_action_kind::reserve; });
    store_tokens();
    out.clear();
  }

  void end_next() {
    auto [at, gpus] = *ends.begin();
    ends.erase(ends.begin());
    for (auto gpu : gpus) {
      now = at;
      auto t = token(gpu);
      table->on_release(gpu, t, "done", now, out);
      now += 2ms;
      table->on_verified(gpu, t, now, out);
      begin_granted();
    }
  }

  void ask_as(uint64_t number, uint32_t user, uint32_t weight) {
    lease_request r;
    r.request = number;
    r.flow = {fmt::format("user-{}", user), "shell"};
    r.weight = weight;
    // The asker is wrong by far: what was measured counts.
    r.estimated_hold = 10s;
    auto ticket = table->on_request(number, r, now, out);
    REQUIRE(ticket);
    waits[number].told = ticket->estimated_wait;
    waits[number].asked_at = now;
    begin_granted();
  }
};

double ratio(nanoseconds actual, nanoseconds told) {
  return double(actual.count()) / double(std::max<int64_t>(told.count(), 1));
}

void check_quality(std::vector<double> ratios) {
  std::sort(ratios.begin(), ratios.end());
  auto median = ratios[ratios.size() / 2];
  auto good =
    std::count_if(ratios.begin(), ratios.end(), [](double r) { return r >= 0.3 && r <= 1.5; });
  MESSAGE("median actual/estimated ", median, ", in [0.3, 1.5]: ", good, " of ", ratios.size());
  CHECK(median >= 0.67);
  CHECK(median <= 1.5);
  CHECK(double(good) >= 0.9 * double(ratios.size()));
}

} // namespace

TEST_CASE_FIXTURE(
  queue_play, "200 waiters of three weighted users on two devices are told their wait") {
  for (const char* policy : {"fifo", "stride"}) {
    CAPTURE(policy);
    waits.clear();
    ends.clear();
    start(2, {}, policy);
    // Some leases before, from which the broker knows how long they take.
    for (uint64_t i = 0; i < 12; ++i)
      ask_as(10'000 + i, static_cast<uint32_t>(i % 3), i % 3 == 2 ? 2 : 1);
    while (!ends.empty())
      end_next();
    waits.clear();
    now += 1s;
    for (uint64_t i = 0; i < 200; ++i) {
      now += 500us;
      while (!ends.empty() && ends.begin()->first <= now)
        end_next();
      ask_as(1 + i, static_cast<uint32_t>(i % 3), i % 3 == 2 ? 2 : 1);
    }
    // And what the list says when all are there.
    std::map<uint64_t, nanoseconds> listed;
    std::map<uint64_t, nanoseconds> until;
    auto listed_at = now;
    for (const auto& w : table->snapshot({1000}, now).waiters)
      listed[w.ticket] = w.estimated_wait;
    while (!ends.empty())
      end_next();
    std::vector<double> at_request;
    std::vector<double> in_list;
    for (const auto& [number, w] : waits) {
      if (w.waited > 25ms)
        at_request.push_back(ratio(w.waited, w.told));
      // Tickets follow the requests: 12 before.
      auto it = listed.find(number + 12);
      if (it != listed.end())
        in_list.push_back(ratio(w.asked_at + w.waited - listed_at, it->second));
    }
    REQUIRE(at_request.size() > 150);
    check_quality(at_request);
    REQUIRE(in_list.size() > 150);
    check_quality(in_list);
  }
}

TEST_CASE("what a flow needed lately counts a quarter, and everybody's average for a new one") {
  flow_ledger l;
  lease_flow a{"p", "a"};
  lease_flow b{"p", "b"};
  CHECK(l.expected_hold(a, lease_class::timing, 30s) == 30s);
  l.on_held(a, lease_class::timing, 8s);
  CHECK(l.expected_hold(a, lease_class::timing, 30s) == 8s);
  CHECK(l.expected_hold(b, lease_class::timing, 30s) == 8s);
  CHECK(l.expected_hold(a, lease_class::profile, 30s) == 30s);
  l.on_held(a, lease_class::timing, 4s);
  CHECK(l.expected_hold(a, lease_class::timing, 30s) == 7s);
  l.on_held(b, lease_class::timing, 40s);
  CHECK(l.expected_hold(b, lease_class::timing, 30s) == 40s);
  CHECK(l.expected_hold(a, lease_class::timing, 30s) == 7s);
}

TEST_CASE("the ledger of the flows is bounded") {
  flow_ledger l(10);
  for (int i = 0; i < 1000; ++i) {
    l.on_grant({"p", fmt::format("{}", i)}, 1, 1s * i);
    l.on_charge({"p", fmt::format("{}", i)}, 5s);
  }
  CHECK(l.usage().size() == 10);
  CHECK(l.last_grant({"p", "0"}) == nanoseconds::min());
  CHECK(l.last_grant({"p", "999"}) == 999s);
}

TEST_CASE("looking ahead follows the policy for 512 grants, then the rate") {
  auto policy = *policy_by_name("fifo");
  std::vector<forecast_waiter> waiters;
  for (uint64_t t = 1; t <= 1000; ++t) {
    waiter w;
    w.ticket = t;
    w.est_hold = 1s;
    policy->on_request(w);
    waiters.push_back({t, any_need, 1s, 1h});
  }
  auto places = look_ahead(*policy, {{0, 1, 10s, 0, 10s}, {1, 1, 10s, 0, 10s}}, waiters, 10s);
  REQUIRE(places.size() == 1000);
  CHECK(places[0].wait == 0s);
  CHECK(places[511].wait == 255s);
  CHECK(places[999].ticket == 1000);
  CHECK(places[999].ahead == 999);
  CHECK(places[999].wait > 498s);
  CHECK(places[999].wait < 502s);
  // The policy itself has not been played on.
  CHECK(policy->pick({0, 1}, 10s) == 1u);
}

TEST_CASE("who waits for a GPU that nobody can give is told its patience") {
  auto policy = *policy_by_name("fifo");
  auto nobody = look_ahead(*policy, {}, {{1, any_need, 1s, 77s}}, 0s);
  REQUIRE(nobody.size() == 1);
  CHECK(nobody[0].wait == 77s);
  waiter w;
  w.ticket = 1;
  w.need = 5;
  policy->on_request(w);
  auto other = look_ahead(*policy, {{0, 1, 0s, 0, 0s}}, {{1, 5, 1s, 77s}}, 0s);
  CHECK(other[0].wait == 77s);
}

TEST_CASE_FIXTURE(table_fixture, "the place of a request is asked for by its number") {
  lease_active(alice);
  REQUIRE(ask(bob, 4));
  REQUIRE(ask(carol, 4));
  CHECK(table->position(bob, 4, now)->ahead == 0);
  CHECK(table->position(carol, 4, now)->ahead == 1);
  CHECK(
    table->position(carol, 4, now)->estimated_wait > table->position(bob, 4, now)->estimated_wait);
  CHECK(table->position(alice, 1, now)->estimated_wait == 0s);
  CHECK(table->position(carol, 5, now).error().code == errc::not_found);
}
