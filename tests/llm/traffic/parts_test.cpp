#include "llm/traffic/aimd_window.hpp"
#include "llm/traffic/back_off.hpp"
#include "llm/traffic/circuit_breaker.hpp"
#include "llm/traffic/deployment_state.hpp"
#include "llm/traffic/retry_budget.hpp"
#include "llm/traffic/token_bucket.hpp"

#include <doctest/doctest.h>

#include <random>
#include <set>
#include <utility>
#include <vector>

using namespace gristmill;
using namespace std::chrono_literals;
using std::chrono::nanoseconds;

TEST_SUITE_BEGIN("traffic parts");

TEST_CASE("a bucket gives a minute's worth at once and then as fast as it fills") {
  token_bucket bucket(60);
  const nanoseconds begin = 100s;
  for (int i = 0; i < 60; ++i) {
    REQUIRE(bucket.ready(1, begin) == begin);
    bucket.take(1, begin);
  }
  CHECK(bucket.ready(1, begin) == begin + 1s);
  CHECK(bucket.ready(10, begin) == begin + 10s);
  bucket.refund(5);
  CHECK(bucket.ready(5, begin) == begin);
  CHECK(bucket.ready(6, begin) == begin + 1s);
}

TEST_CASE("in no minute goes more through a bucket than twice its rate, nor more in the long run") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const uint64_t rate = 50 + random() % 5000;
    token_bucket bucket(rate);
    nanoseconds now = 0s;
    uint64_t all = 0;
    std::vector<std::pair<nanoseconds, uint64_t>> taken;
    for (int i = 0; i < 500; ++i) {
      auto amount = 1 + random() % (rate / 10);
      now = std::max(now, bucket.ready(amount, now));
      bucket.take(amount, now);
      all += amount;
      taken.emplace_back(now, amount);
      uint64_t minute = 0;
      for (const auto& [t, n] : taken)
        if (t > now - 60s)
          minute += n;
      REQUIRE(minute <= 2 * rate);
    }
    // At most the first minute's worth ahead of the rate, and one token of rounding a take.
    auto allowed = rate + static_cast<uint64_t>(now.count()) * rate / 60'000'000'000ull + 500;
    CHECK(all <= allowed);
  }
}

TEST_CASE("a call larger than a whole minute waits for a full bucket instead of for ever") {
  token_bucket bucket(100);
  CHECK(bucket.ready(1000, 5s) == 5s);
  bucket.take(1000, 5s);
  CHECK(bucket.ready(1, 5s) == 5s + 600s + 600ms - 60s);
  CHECK(token_bucket(std::nullopt).ready(UINT64_MAX, 5s) == 5s);
  token_bucket huge(1);
  huge.take(UINT64_MAX, 0s);
  CHECK(huge.ready(1, 0s) > 0s);
}

TEST_CASE("the window halves once for the calls of one flight and grows by one a window") {
  aimd_window window(8);
  std::vector<uint64_t> flight;
  for (int i = 0; i < 8; ++i)
    flight.push_back(window.sent());
  for (auto order : flight)
    window.trouble(order);
  CHECK(window.size() == 4);
  auto later = window.sent();
  window.trouble(later);
  CHECK(window.size() == 2);
  window.success();
  CHECK(window.size() == 2);
  window.success();
  CHECK(window.size() == 3);
  for (int i = 0; i < 100; ++i)
    window.success();
  CHECK(window.size() == 8);
  aimd_window one(1);
  one.trouble(one.sent());
  CHECK(one.size() == 1);
}

TEST_CASE("a breaker opens after failures in a row, lets one look, and waits longer each time") {
  circuit_breaker breaker({3, 5s, 15s});
  CHECK_FALSE(breaker.failure(false, 0s));
  breaker.success();
  CHECK_FALSE(breaker.failure(false, 0s));
  CHECK_FALSE(breaker.failure(false, 0s));
  CHECK(breaker.failure(false, 0s));
  CHECK_FALSE(breaker.may_send(4s));
  CHECK(breaker.may_send(5s));
  CHECK(breaker.sent());
  CHECK_FALSE(breaker.may_send(5s)); // One look at a time.
  // Those who were sent before change nothing.
  CHECK_FALSE(breaker.failure(false, 5s));
  CHECK_FALSE(breaker.failure(true, 6s));
  CHECK_FALSE(breaker.may_send(15s));
  CHECK(breaker.may_send(16s));
  breaker.sent();
  breaker.look_lost();
  CHECK(breaker.may_send(16s));
  breaker.sent();
  breaker.failure(true, 16s);
  CHECK(breaker.opens_again() == 31s); // 15 s at most.
  breaker.sent();
  breaker.success();
  CHECK(breaker.may_send(16s));
  CHECK_FALSE(breaker.open());
}

TEST_CASE("of a hundred calls ten may be tried again, and a good day does not pay for a storm") {
  retry_budget budget(10, 5);
  for (int i = 0; i < 5; ++i)
    CHECK(budget.take());
  CHECK_FALSE(budget.take());
  int retries = 0;
  for (int i = 0; i < 100; ++i) {
    budget.first_try();
    retries += budget.take() ? 1 : 0;
  }
  CHECK(retries == 10);
  for (int i = 0; i < 100'000; ++i)
    budget.first_try();
  for (int i = 0; i < 5; ++i)
    CHECK(budget.take());
  CHECK_FALSE(budget.take());
}

TEST_CASE("waits are spread over the whole range, doubled, capped, and never less than asked for") {
  traffic_random random(7);
  const trouble plain{trouble_kind::transient, 0s, ""};
  nanoseconds low = 1h;
  nanoseconds high = 0s;
  for (int i = 0; i < 1000; ++i) {
    auto wait = back_off(plain, 3, random);
    low = std::min(low, wait);
    high = std::max(high, wait);
    REQUIRE(wait <= 4s);
  }
  CHECK(low < 200ms);
  CHECK(high > 3800ms);
  for (int i = 0; i < 200; ++i) {
    CHECK(back_off(plain, 1000, random) <= 60s);
    CHECK(back_off({trouble_kind::throttle, 30s, ""}, 1, random) >= 30s);
    auto overload = back_off({trouble_kind::overload, 0s, ""}, 1, random);
    CHECK(overload >= 2s);
    CHECK(overload <= 4s);
    CHECK(back_off({trouble_kind::transient, -5s, ""}, 1, random) >= 0s);
  }
  traffic_random again(7);
  traffic_random same(7);
  CHECK(back_off(plain, 3, again) == back_off(plain, 3, same));
}

TEST_CASE("what was reserved in the buckets comes back when less was used") {
  model_deployment d;
  d.output_tokens_per_minute = 1000;
  d.input_tokens_per_minute = 10'000;
  deployment_state state(d);
  state.sent(100, 1000, 0s);
  CHECK(state.may_send(100, 500, 0s).what == obstacle::full);
  llm_usage used{usage_state::exact, 100, 0, 0, 400, 0};
  state.ended(100, 1000, used, true, 0s);
  CHECK(state.may_send(100, 600, 0s).what == obstacle::none);
  CHECK(state.may_send(100, 601, 0s).what == obstacle::full);
  // Unknown use stays taken; what never left comes back.
  state.sent(100, 600, 0s);
  state.ended(100, 600, {}, true, 0s);
  CHECK(state.may_send(0, 1, 0s).what == obstacle::full);
  deployment_state other(d);
  other.sent(10'000, 1000, 0s);
  other.ended(10'000, 1000, {}, false, 0s);
  CHECK(other.may_send(10'000, 1000, 0s).what == obstacle::none);
}

// openai-dotnet#838: Azure says -1 or 0 and names no time.
TEST_CASE("openai-dotnet#838: a rest of 0 without a time to wait is no order to wait") {
  deployment_state state{model_deployment{}};
  state.heed({0, 0, nanoseconds{-1}, nanoseconds{-1}}, 0s);
  CHECK(state.may_send(1, 1, 0s).what == obstacle::none);
  state.heed({5, 5, 30s, 30s}, 0s);
  CHECK(state.may_send(1, 1, 0s).what == obstacle::none);
  state.heed({0, 5, 3s, 30s}, 0s);
  CHECK(state.may_send(1, 1, 0s).what == obstacle::paused);
  CHECK(state.may_send(1, 1, 3s).what == obstacle::none);
  state.heed({-1, 0, nanoseconds{-1}, 10h}, 3s);
  CHECK(state.may_send(1, 1, 63s).what == obstacle::none);
}

TEST_SUITE_END();
