#include "gpu/lease/policy.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <map>
#include <vector>

using namespace gristmill;
using namespace std::chrono_literals;
using std::chrono::nanoseconds;

namespace {

waiter make_waiter(uint64_t ticket, const std::string& problem, const std::string& agent,
  need_id need = 1, nanoseconds est = 10s, uint32_t weight = 1) {
  waiter w;
  w.ticket = ticket;
  w.flow = {problem, agent};
  w.need = need;
  w.est_hold = est;
  w.weight = weight;
  return w;
}

// Grants what the policy picks and lets it run for as long as said.
uint64_t serve(lease_policy& p, nanoseconds held, need_id model = 1) {
  auto ticket = p.pick(model, 0ns);
  REQUIRE(ticket);
  p.on_grant(*ticket, 0ns);
  p.on_release({*ticket, 0, held}, "done");
  return *ticket;
}

} // namespace

TEST_CASE("each named policy exists and says its name") {
  for (const auto& name : policy_names()) {
    auto p = policy_by_name(name);
    REQUIRE(p);
    CHECK((*p)->name() == name);
  }
}

TEST_CASE("an unknown policy is an error that names the nearest one") {
  auto p = policy_by_name("strid");
  REQUIRE_FALSE(p);
  CHECK(p.error().code == errc::invalid_input);
  CHECK(p.error().what.find("did you mean 'stride'") != std::string::npos);
  CHECK(policy_by_name("fif").error().what.find("'fifo'?") != std::string::npos);
  CHECK_FALSE(policy_by_name(std::string(100'000, 'x')));
  CHECK_FALSE(policy_by_name(""));
}

TEST_CASE("every policy is work conserving and serves only what fits the model") {
  for (const auto& name : policy_names()) {
    CAPTURE(name);
    auto p = *policy_by_name(name);
    CHECK_FALSE(p->pick(1, 0ns));
    p->on_request(make_waiter(1, "p", "a", 2));
    CHECK_FALSE(p->pick(1, 0ns));
    CHECK(p->pick(2, 0ns) == 1u);
    p->on_request(make_waiter(2, "p", "a", any_need));
    CHECK(p->pick(1, 0ns) == 2u);
    p->on_cancel(2);
    p->on_cancel(2);
    p->on_cancel(77);
    CHECK_FALSE(p->pick(1, 0ns));
    CHECK(serve(*p, 1s, 2) == 1);
    CHECK_FALSE(p->pick(2, 0ns));
  }
}

TEST_CASE("fifo serves the oldest request, whoever asks and for whatever model") {
  auto p = make_fifo_policy();
  p->on_request(make_waiter(1, "p", "a", any_need));
  p->on_request(make_waiter(2, "p", "a"));
  p->on_request(make_waiter(3, "q", "b"));
  p->on_request(make_waiter(4, "q", "b", any_need));
  p->on_cancel(3);
  for (uint64_t ticket : {1, 2, 4})
    CHECK(serve(*p, 100s) == ticket);
}

TEST_CASE("stride equalises seconds, not counts, between problems") {
  auto p = make_stride_policy();
  uint64_t ticket = 1;
  std::map<uint64_t, std::string> of;
  auto ask = [&](const std::string& problem) {
    of[ticket] = problem;
    p->on_request(make_waiter(ticket++, problem, "agent"));
  };
  ask("long");
  ask("short");
  std::map<std::string, nanoseconds> used;
  for (int i = 0; i < 3000; ++i) {
    auto picked = *p->pick(1, 0ns);
    const auto& problem = of[picked];
    auto held = problem == "long" ? nanoseconds{30s} : nanoseconds{3s};
    p->on_grant(picked, 0ns);
    p->on_release({picked, 0, held}, "done");
    used[problem] += held;
    ask(problem);
  }
  // Two flows that always wait differ by no more than one hold of each.
  CHECK(std::chrono::abs(used["long"] - used["short"]) <= 33s);
}

TEST_CASE("stride shares a problem's time between its agents") {
  auto p = make_stride_policy();
  // Eight agents of one problem do not get more than the one of the other.
  std::map<uint64_t, lease_flow> of;
  std::map<lease_flow, nanoseconds> used;
  uint64_t ticket = 1;
  auto ask = [&](const lease_flow& f) {
    of[ticket] = f;
    p->on_request(make_waiter(ticket++, f.problem, f.agent));
  };
  for (int i = 0; i < 8; ++i)
    ask({"many", fmt::format("agent-{}", i)});
  ask({"one", "agent-x"});
  for (int i = 0; i < 1600; ++i) {
    auto picked = *p->pick(1, 0ns);
    auto f = of[picked];
    p->on_grant(picked, 0ns);
    p->on_release({picked, 0, 5s}, "done");
    used[f] += 5s;
    ask(f);
  }
  nanoseconds many{0};
  for (const auto& [f, t] : used)
    if (f.problem == "many") {
      many += t;
      CHECK(std::chrono::abs(t - 500s) <= 10s);
    }
  CHECK(std::chrono::abs(many - used[{"one", "agent-x"}]) <= 10s);
}

TEST_CASE("stride charges the actual time, clean-up included, not the estimate") {
  auto p = make_stride_policy();
  p->on_request(make_waiter(1, "liar", "a", 1, 1ns));
  p->on_request(make_waiter(2, "honest", "a", 1, 10s));
  p->on_request(make_waiter(3, "liar", "a", 1, 1ns));
  p->on_request(make_waiter(4, "honest", "a", 1, 10s));
  p->on_request(make_waiter(5, "honest", "a", 1, 10s));
  CHECK(serve(*p, 10s) == 2);
  CHECK(serve(*p, 60s) == 1);
  // 60 s against 10 s: the liar waits until the other has caught up.
  CHECK(serve(*p, 10s) == 4);
  CHECK(serve(*p, 10s) == 5);
  CHECK(serve(*p, 10s) == 3);
}

TEST_CASE("stride charges the estimate at the grant, so that one flow does not take every GPU") {
  auto p = make_stride_policy();
  for (uint64_t ticket : {1, 2, 3})
    p->on_request(make_waiter(ticket, "a", "x"));
  for (uint64_t ticket : {4, 5, 6})
    p->on_request(make_waiter(ticket, "b", "x"));
  std::map<bool, int> granted;
  for (int gpu = 0; gpu < 4; ++gpu) {
    auto ticket = *p->pick(1, 0ns);
    p->on_grant(ticket, 0ns);
    ++granted[ticket <= 3];
  }
  CHECK(granted[true] == 2);
  CHECK(granted[false] == 2);
}

TEST_CASE("idleness banks no credit") {
  auto p = make_stride_policy();
  uint64_t ticket = 1;
  // One problem works alone for a long time.
  for (int i = 0; i < 1000; ++i) {
    p->on_request(make_waiter(ticket++, "busy", "a"));
    serve(*p, 10s);
  }
  // Then another comes: it does not get all that it missed.
  std::map<uint64_t, bool> late;
  int late_count = 0;
  for (int i = 0; i < 20; ++i) {
    p->on_request(make_waiter(ticket++, "busy", "a"));
    late[ticket] = true;
    p->on_request(make_waiter(ticket++, "late", "a"));
  }
  for (int i = 0; i < 20; ++i)
    late_count += late.contains(serve(*p, 10s)) ? 1 : 0;
  CHECK(late_count >= 10);
  CHECK(late_count <= 11);
}

TEST_CASE("a weight of two gets twice the time") {
  auto p = make_stride_policy();
  uint64_t ticket = 1;
  std::map<uint64_t, bool> heavy;
  auto ask = [&](bool is_heavy) {
    heavy[ticket] = is_heavy;
    p->on_request(
      make_waiter(ticket++, is_heavy ? "heavy" : "light", "a", 1, 10s, is_heavy ? 2 : 1));
  };
  ask(true);
  ask(false);
  int count = 0;
  for (int i = 0; i < 300; ++i) {
    bool was_heavy = heavy[serve(*p, 10s)];
    count += was_heavy ? 1 : 0;
    ask(was_heavy);
  }
  CHECK(count >= 199);
  CHECK(count <= 201);
}

TEST_CASE("virtual time does not overflow within a thousand years of GPU time") {
  auto p = make_stride_policy();
  uint64_t ticket = 1;
  constexpr nanoseconds century = std::chrono::hours{24 * 365 * 100};
  for (int i = 0; i < 10; ++i) {
    p->on_request(make_waiter(ticket++, "old", "a"));
    serve(*p, century);
  }
  p->on_request(make_waiter(ticket, "old", "a"));
  p->on_request(make_waiter(ticket + 1, "new", "a"));
  CHECK(serve(*p, 1s) == ticket + 1);
}

TEST_CASE("a policy that was saved and loaded decides as before") {
  for (const auto& name : policy_names()) {
    CAPTURE(name);
    auto p = *policy_by_name(name);
    uint64_t ticket = 1;
    for (const char* problem : {"a", "b with space", "", "c"})
      for (int i = 1; i <= 3; ++i) {
        p->on_request(make_waiter(ticket++, problem, fmt::format("agent\n{}", i)));
        serve(*p, i * 7s);
      }
    auto copy = *policy_by_name(name);
    REQUIRE(copy->load(p->save()));
    CHECK(copy->save() == p->save());
    for (const char* problem : {"c", "", "a", "b with space"})
      for (int i = 1; i <= 3; ++i) {
        auto w = make_waiter(ticket++, problem, fmt::format("agent\n{}", i));
        p->on_request(w);
        copy->on_request(w);
      }
    for (int i = 0; i < 12; ++i)
      CHECK(serve(*p, 3s) == serve(*copy, 3s));
  }
}

TEST_CASE("a policy refuses a state that it did not write") {
  for (const auto& name : policy_names()) {
    CAPTURE(name);
    auto p = *policy_by_name(name);
    for (const char* text : {"", "x", "stride 2\n", "fifo 2\n", "stride 1\nproblem - time x\n",
           "stride 1\nproblem zz time 1\n", "stride 1\nproblem - flow 61\n", "stride 1\nproblem"}) {
      CAPTURE(text);
      auto loaded = p->load(text);
      REQUIRE_FALSE(loaded);
      CHECK(loaded.error().code == errc::invalid_input);
    }
  }
}
