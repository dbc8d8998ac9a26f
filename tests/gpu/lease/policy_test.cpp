#include "gpu/lease/policy.hpp"

#include "tests/gpu/lease/policy_support.hpp"
#include "tests/support/closed_queue.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

// What holds for every policy; what each does on top of it is in policy_order_test.cpp.

TEST_CASE("each named policy exists and says its name") {
  for (const auto& name : policy_names()) {
    auto p = policy_by_name(name);
    REQUIRE(p);
    CHECK((*p)->name() == name);
  }
  CHECK(policy("drr(by=user,quantum=10s)")->name() == "drr(by=user,quantum=10s)");
}

TEST_CASE("every policy is work conserving and serves only what fits") {
  for (const auto& text : texts()) {
    CAPTURE(text);
    auto p = policy(text);
    CHECK_FALSE(p->pick({0, fits(1)}, 0ns));
    p->on_request(make_waiter(1, "p", "a", 2));
    CHECK_FALSE(p->pick({0, fits(1)}, 0ns));
    CHECK(p->pick({0, fits(2)}, 0ns) == 1u);
    CHECK(p->pick({0, fits(1) | fits(2)}, 0ns) == 1u);
    p->on_request(make_waiter(2, "p", "a", any_need));
    CHECK(p->pick({0, fits(1)}, 0ns) == 2u);
    p->on_cancel(2);
    p->on_cancel(2);
    p->on_cancel(77);
    CHECK_FALSE(p->pick({0, fits(1)}, 0ns));
    CHECK(serve(*p, 1s, 2) == 1);
    CHECK_FALSE(p->pick({0, fits(2)}, 0ns));
  }
}

TEST_CASE("no policy forgets a waiter or serves one twice, whatever happens in whatever order") {
  for (const auto& text : texts()) {
    CAPTURE(text);
    auto p = policy(text);
    std::map<uint64_t, need_id> waiting;
    std::vector<std::pair<uint64_t, uint32_t>> running;
    uint64_t ticket = 0;
    nanoseconds now{0};
    uint64_t draw = 0;
    auto below = [&](uint64_t n) { return counter_word(99, 0, draw++) % n; };
    for (int step = 0; step < 3000; ++step) {
      now += nanoseconds{static_cast<int64_t>(below(3'000'000'000))};
      switch (below(4)) {
      case 0:
      case 1: {
        auto w = make_waiter(++ticket, fmt::format("p{}", below(4)), fmt::format("a{}", below(9)),
          static_cast<need_id>(below(4)),
          nanoseconds{1 + static_cast<int64_t>(below(90)) * 1'000'000'000},
          1 + static_cast<uint32_t>(below(3)));
        w.what = static_cast<lease_class>(below(5));
        w.arrived = now;
        w.deadline = now + std::chrono::seconds{below(600)};
        w.cap = std::chrono::seconds{30 + below(300)};
        p->on_request(w);
        p->on_request(w); // Once more: no effect.
        waiting[ticket] = w.need;
        break;
      }
      case 2:
        if (!waiting.empty() && below(3) == 0) {
          auto it = std::next(waiting.begin(), static_cast<long>(below(waiting.size())));
          p->on_cancel(it->first);
          waiting.erase(it);
        } else if (!running.empty()) {
          auto at = below(running.size());
          auto [done, gpu] = running[at];
          running.erase(running.begin() + static_cast<long>(at));
          p->on_release({done, gpu, std::chrono::seconds{below(100)}}, "done", now);
          p->on_release({done, gpu, 1h}, "done", now); // Once more: no effect.
          p->on_cancel(done);
          p->on_grant(done, gpu, now);
        }
        break;
      default: {
        auto gpu = static_cast<uint32_t>(below(6));
        need_set set = 1 | below(16);
        bool anybody = std::any_of(waiting.begin(), waiting.end(),
          [&](const auto& w) { return (set >> w.second & 1) != 0; });
        auto chosen = p->pick({gpu, set}, now);
        REQUIRE(chosen.has_value() == anybody);
        if (!chosen)
          break;
        // Asking changes nothing, nor does asking a copy.
        REQUIRE(p->pick({gpu, set}, now) == chosen);
        if (step % 50 == 0)
          REQUIRE(p->clone()->pick({gpu, set}, now) == chosen);
        REQUIRE(waiting.contains(*chosen));
        REQUIRE((set >> waiting[*chosen] & 1) != 0);
        p->on_grant(*chosen, gpu, now);
        waiting.erase(*chosen);
        running.emplace_back(*chosen, gpu);
        break;
      }
      }
    }
    while (!waiting.empty()) {
      auto chosen = p->pick({0, 0b1111}, now);
      REQUIRE(chosen);
      REQUIRE(waiting.erase(*chosen) == 1);
      p->on_grant(*chosen, 0, now);
    }
    CHECK_FALSE(p->pick({0, ~need_set{0}}, now));
  }
}

TEST_CASE("a copy of a policy goes its own way") {
  for (const auto& text : texts()) {
    CAPTURE(text);
    auto p = policy(text);
    for (uint64_t ticket = 1; ticket <= 9; ++ticket)
      p->on_request(make_waiter(ticket, fmt::format("p{}", ticket % 3), "a"));
    auto copy = p->clone();
    std::vector<uint64_t> served;
    for (int i = 0; i < 9; ++i)
      served.push_back(serve(*copy, 3s));
    CHECK_FALSE(copy->pick({0, fits(1)}, 0ns));
    for (auto ticket : served)
      CHECK(serve(*p, 3s) == ticket);
  }
}

TEST_CASE("two policies that were told the same decide the same") {
  for (const auto& text : texts()) {
    CAPTURE(text);
    closed_queue model;
    model.agents = 20;
    model.gpus = 2;
    model.warm_up = 0s;
    model.measured = 30min;
    CHECK(simulate(model, *policy(text)).held_s == simulate(model, *policy(text)).held_s);
  }
}

TEST_CASE("a policy that was saved and loaded decides as before") {
  for (const auto& text : texts()) {
    CAPTURE(text);
    auto p = policy(text);
    uint64_t ticket = 1;
    for (const char* problem : {"a", "b with space", "", "c"})
      for (int i = 1; i <= 3; ++i) {
        p->on_request(make_waiter(ticket++, problem, fmt::format("agent\n{}", i)));
        serve(*p, i * 7s);
      }
    auto copy = policy(text);
    auto loaded = copy->load(p->save());
    REQUIRE_MESSAGE(loaded, (loaded ? std::string{} : loaded.error().what));
    CHECK(copy->save() == p->save());
    for (const char* problem : {"c", "", "a", "b with space"})
      for (int i = 1; i <= 3; ++i) {
        auto w = make_waiter(ticket++, problem, fmt::format("agent\n{}", i));
        p->on_request(w);
        copy->on_request(w);
      }
    CHECK(copy->load(p->save()).error().code == errc::refused);
    for (int i = 0; i < 12; ++i)
      CHECK(serve(*p, 3s) == serve(*copy, 3s));
  }
}

TEST_CASE("a policy refuses a state that it did not write") {
  std::vector<std::string> states = {"", "x", "\n", "level 1\n", "level 1 - 0 0 0\n", "fifo 2\n",
    std::string(100'000, '9'), "level 1 61 0 0 99999999999999999999\n"};
  for (const auto& text : texts()) {
    auto p = policy(text);
    p->on_request(make_waiter(1, "a", "x"));
    serve(*p, 3s);
    states.push_back(p->save());
  }
  std::set<std::string> different(states.begin(), states.end());
  for (const auto& text : texts()) {
    CAPTURE(text);
    auto own = policy(text);
    own->on_request(make_waiter(1, "a", "x"));
    serve(*own, 3s);
    for (const auto& state : different) {
      if (state == own->save())
        continue;
      CAPTURE(state);
      auto p = policy(text);
      auto loaded = p->load(state);
      // Two texts may be one policy.
      if (loaded)
        CHECK(p->save() == state);
      else
        CHECK(loaded.error().code == errc::invalid_input);
    }
  }
  CHECK_FALSE(policy("fifo")->load(policy("stride")->save()));
  CHECK_FALSE(policy("drr(quantum=1s)")->load(policy("drr(quantum=2s)")->save()));
  auto flat = policy("stride(by=problem)");
  flat->on_request(make_waiter(1, "a", "x"));
  CHECK_FALSE(policy("stride")->load(flat->save()));
  CHECK(policy("stride")->load(policy("stride(by=problem)/stride(by=agent)/fifo")->save()));
}

TEST_CASE("a damaged state is refused and never crashes a policy") {
  for (const auto& text : texts()) {
    CAPTURE(text);
    auto p = policy(text);
    for (uint64_t ticket = 1; ticket < 6; ++ticket) {
      p->on_request(
        make_waiter(ticket, fmt::format("p{}", ticket % 2), fmt::format("a{}", ticket)));
      serve(*p, 3s);
    }
    const auto state = p->save();
    for (size_t cut = 0; cut < state.size(); ++cut)
      CHECK_FALSE(policy(text)->load(state.substr(0, cut)));
    CHECK_FALSE(policy(text)->load(state + "x"));
    CHECK_FALSE(policy(text)->load(state + "\n"));
    for (uint64_t i = 0; i < 300; ++i) {
      auto hurt = state;
      hurt[counter_word(3, 1, i) % hurt.size()] = "0189-af x\n"[counter_word(3, 2, i) % 10];
      auto other = policy(text);
      if (!other->load(hurt))
        continue;
      // What happens to be well formed works.
      other->on_request(make_waiter(100, "p0", "a2"));
      CHECK(serve(*other, 3s) == 100);
    }
  }
}

TEST_CASE("flows that come once and never again are forgotten") {
  for (const char* text : {"stride(by=agent)", "drr(by=agent)", "rr(by=agent)", "las(by=agent)",
         "maxmin(by=agent,half_life=1s)", "lottery(by=agent)", "priority(by=agent,order=x)"}) {
    CAPTURE(std::string{text});
    auto p = policy(text);
    nanoseconds now{0};
    for (uint64_t ticket = 1; ticket <= 80'000; ++ticket) {
      auto w = make_waiter(ticket, "p", fmt::format("agent-{}", ticket));
      w.arrived = now;
      p->on_request(w);
      serve(*p, 10s, 1, now);
      now += 10s;
    }
    CHECK(std::ranges::count(p->save(), '\n') < 3 * 70'000);
  }
}
