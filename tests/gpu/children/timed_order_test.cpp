// What is drawn for timed calls and blocks, and which calls are written out: pure classes.

#include "gpu/children/block_jobs.hpp"
#include "gpu/children/block_order.hpp"
#include "gpu/children/call_order.hpp"
#include "gpu/children/median.hpp"
#include "gpu/children/watchdog.hpp"
#include "gpu/children/written_calls.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <future>
#include <map>
#include <set>

using namespace gristmill;

namespace {

tensor_key key(uint8_t last) {
  tensor_key made;
  made.bytes.fill(7);
  made.bytes[3] = last;
  return made;
}

} // namespace

TEST_CASE("each call is drawn by itself: case, addresses and poison cannot be told from the last") {
  const call_order order(key(1), 0, 3, 2, 512);
  std::map<uint32_t, std::map<uint32_t, int>> followers;
  std::map<uint64_t, std::set<uint32_t>> cases_at;
  int shared = 0;
  uint32_t before = order.draw(0).which;
  for (uint32_t i = 1; i < 3000; ++i) {
    const auto call = order.draw(i);
    REQUIRE(call.which < 3);
    CHECK(call.poison < 3);
    CHECK(call.poison != call.which);
    REQUIRE(call.places.size() == 2);
    ++followers[before][call.which];
    cases_at[place_in_room(1 << 20, 1024, 256, call.places[0])].insert(call.which);
    shared += call.is_shared ? 1 : 0;
    before = call.which;
  }
  for (const auto& [which, next] : followers)
    for (uint32_t other = 0; other < 3; ++other)
      CHECK(next.at(other) > 200);
  // The same address sees all contents, and the same content all addresses.
  CHECK(cases_at.size() == 5);
  for (const auto& [address, cases] : cases_at)
    CHECK(cases.size() == 3);
  CHECK(shared > 1300);
  CHECK(shared < 1700);
}

TEST_CASE("the secret, the workload and nothing else decide the draws") {
  const auto which = [](const call_order& order) {
    std::vector<uint32_t> all;
    for (uint32_t i = 0; i < 64; ++i)
      all.push_back(order.draw(i).which);
    return all;
  };
  const auto first = which({key(1), 0, 8, 2, 0});
  CHECK(first == which({key(1), 0, 8, 2, 0}));
  CHECK(first != which({key(2), 0, 8, 2, 0}));
  CHECK(first != which({key(1), 1, 8, 2, 0}));
  CHECK(
    call_order(key(1), 0, 8, 2, 0).digest_seed() != call_order(key(2), 0, 8, 2, 0).digest_seed());
  CHECK(call_order(key(1), 0, 1, 1, 0).draw(5).which == 0);
  CHECK_FALSE(call_order(key(1), 0, 1, 1, 0).draw(5).is_shared);
  CHECK(call_order(key(1), 0, 1, 1, 1024).draw(5).is_shared);
}

TEST_CASE("a buffer lies anywhere in its room, on its own alignment") {
  std::set<device_pointer> seen;
  for (uint64_t draw = 0; draw < 1000; ++draw) {
    const auto at = place_in_room(0x1100, 0x1000, 0x400, draw);
    CHECK(at % 0x400 == 0);
    CHECK(at >= 0x1100);
    CHECK(at <= 0x2100);
    seen.insert(at);
  }
  CHECK(seen.size() == 4);
  CHECK(place_in_room(0x100, 0x10, 0x1000, 3) == 0x100);
  CHECK(place_in_room(0x100, 0, 1, 3) == 0x100);
}

TEST_CASE("calls that differ are written before those of the secret share, up to the limit") {
  written_calls tally(2);
  CHECK_FALSE(tally.consider(0, true, false, 9).write);
  CHECK(tally.consider(1, true, true, 9).write);
  CHECK(tally.consider(2, true, true, 9).write);
  const auto third = tally.consider(3, false, false, 0);
  CHECK(third.write);
  CHECK(third.drop == std::optional<uint32_t>(1));
  CHECK(tally.consider(4, false, false, 0).drop == std::optional<uint32_t>(2));
  CHECK(tally.kept() == std::vector<uint32_t>{3, 4});
  CHECK_FALSE(tally.left_out_unequal());
  // Full of calls that differ: the next takes the place that is drawn, or none.
  CHECK(tally.consider(5, false, false, 1).drop == std::optional<uint32_t>(4));
  CHECK_FALSE(tally.consider(6, false, false, 3).write);
  CHECK_FALSE(tally.consider(7, true, true, 0).write);
  CHECK(tally.kept() == std::vector<uint32_t>{3, 5});
  CHECK(tally.left_out_unequal());
  CHECK(tally.looked_at() == 8);
  CHECK(tally.equal() == 4);
  CHECK(tally.unequal() == 4);
  written_calls none(0);
  CHECK_FALSE(none.consider(0, false, true, 0).write);
  CHECK(none.left_out_unequal());
}

TEST_CASE("among many calls that differ each has the same chance to be judged") {
  std::array<int, 20> chosen{};
  uint64_t state = 1;
  for (int round = 0; round < 2000; ++round) {
    written_calls tally(4);
    for (uint32_t i = 0; i < 20; ++i) {
      state = state * 6364136223846793005 + 1442695040888963407;
      tally.consider(i, false, false, state >> 33);
    }
    for (const auto number : tally.kept())
      ++chosen[number];
  }
  for (const int count : chosen) {
    CHECK(count > 300);
    CHECK(count < 500);
  }
}

TEST_CASE("blocks come in ABBA or BAAB, as the secret says") {
  std::set<std::vector<bool>> seen;
  for (uint8_t secret = 0; secret < 60; ++secret)
    for (const uint32_t blocks : {1U, 2U, 3U, 4U, 7U}) {
      const auto order = block_order(key(secret), blocks);
      REQUIRE(order.size() == 2 * blocks);
      CHECK(std::count(order.begin(), order.end(), true) == blocks);
      for (size_t i = 0; i < order.size(); i += 2)
        CHECK(order[i] != order[i + 1]);
      for (size_t i = 0; i + 3 < order.size(); i += 4)
        CHECK(order[i] == order[i + 3]);
      if (blocks == 4)
        seen.insert(order);
      CHECK(block_order(key(secret), blocks) == order);
    }
  CHECK(seen.size() == 4);
  CHECK(block_order(key(1), 0).empty());
}

TEST_CASE(
  "the sums of blocks keep every sample of the candidate, and the worse word of the method") {
  workload_measurement a, b, r;
  a.time_ns = 100;
  a.samples_ns = {90, 100, 110};
  a.timing.method = "cupti";
  a.timing.digested = 9;
  a.timing.digests_equal = 8;
  a.timing.written_out = 1;
  a.timing.weather.sm_mhz_min = 1900;
  a.timing.weather.sm_mhz_max = 1980;
  a.timing.canary_khz_before = 1;
  a.timing.canary_khz_after = 2;
  b = a;
  b.time_ns = 200;
  b.samples_ns = {200};
  b.timing.method = "events";
  b.timing.fallback = "no tracer";
  b.timing.weather.sm_mhz_min = 1500;
  b.timing.canary_khz_after = 3;
  b.detail = "the clock moved";
  r.time_ns = 300;
  r.samples_ns = {300, 302};
  block_sums sums;
  CHECK_FALSE(sums.has_time());
  sums.add(false, a);
  sums.add(true, r);
  sums.add(false, b);
  workload_measurement out;
  sums.finish(out);
  CHECK(out.samples_ns == std::vector<uint64_t>{90, 100, 110, 200});
  CHECK(out.time_ns == 105);
  REQUIRE(out.blocks.size() == 3);
  CHECK(out.blocks[0].mad_ns == 10);
  CHECK(out.blocks[1].rival);
  CHECK(out.blocks[1].median_ns == 300);
  CHECK(out.blocks[1].samples == 2);
  CHECK(out.timing.method == "events");
  CHECK(out.timing.fallback == "no tracer");
  CHECK(out.timing.digested == 18);
  CHECK(out.timing.digests_equal == 16);
  CHECK(out.timing.weather.sm_mhz_min == 1500);
  CHECK(out.timing.canary_khz_before == 1);
  CHECK(out.timing.canary_khz_after == 3);
  CHECK(out.detail == "block 3: the clock moved");
  CHECK(median_of({}) == 0);
  CHECK(deviation_of({1, 2, 9}) == 1);
}

TEST_CASE("calls of blocks have names of their own in the whole job") {
  CHECK(block_jobs::call_in_block(2, "timed 17") == "timed 3000017");
  CHECK(block_jobs::call_in_block(2, "check") == "timed 3999999");
  CHECK(block_jobs::call_in_block(0, "timed 0") == "timed 1000000");
}

TEST_CASE("a watchdog that is fed in time says nothing, one that is not says so once") {
  std::promise<void> late;
  auto told = late.get_future();
  {
    watchdog fed(std::chrono::hours{1}, [] { FAIL("it was fed"); });
    fed.allow(std::chrono::hours{2});
  }
  watchdog hungry(std::chrono::hours{1}, [&] { late.set_value(); });
  // A shorter time counts from now, whatever was allowed before.
  hungry.allow(std::chrono::nanoseconds{1});
  CHECK(told.wait_for(std::chrono::seconds{60}) == std::future_status::ready);
}
