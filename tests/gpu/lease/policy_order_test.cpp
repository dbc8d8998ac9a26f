#include "tests/gpu/lease/policy_support.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

// What each policy is for, one rule a test.

TEST_CASE("fifo serves the oldest request, whoever asks and for whatever need") {
  auto p = make_fifo_policy();
  p->on_request(make_waiter(1, "p", "a", any_need));
  p->on_request(make_waiter(2, "p", "a"));
  p->on_request(make_waiter(3, "q", "b"));
  p->on_request(make_waiter(4, "q", "b", any_need));
  p->on_cancel(3);
  for (uint64_t ticket : {1, 2, 4})
    CHECK(serve(*p, 100s) == ticket);
}

TEST_CASE("edf serves the earliest end of patience, and of equal ones the oldest request") {
  auto p = policy("edf");
  for (auto [ticket, deadline] : {std::pair{1, 50s}, {2, 30s}, {3, 40s}, {4, 30s}}) {
    auto w = make_waiter(static_cast<uint64_t>(ticket), "p", "a");
    w.deadline = deadline;
    p->on_request(w);
  }
  for (uint64_t ticket : {2, 4, 3, 1})
    CHECK(serve(*p, 1s) == ticket);
}

TEST_CASE("sept serves the shortest estimate, and of equal ones the oldest request") {
  auto p = policy("sept");
  p->on_request(make_waiter(1, "p", "a", 1, 30s));
  p->on_request(make_waiter(2, "p", "a", 1, 10s));
  p->on_request(make_waiter(3, "p", "a", 1, 20s));
  p->on_request(make_waiter(4, "p", "a", 1, 10s));
  for (uint64_t ticket : {2, 4, 3, 1})
    CHECK(serve(*p, 1s) == ticket);
}

TEST_CASE("sept with ageing serves a long request once its wait has made up for its length") {
  auto p = policy("sept(ageing=0.5)");
  auto w = make_waiter(1, "p", "a", 1, 60s);
  w.arrived = 0s;
  p->on_request(w);
  // 60 s - 10 s take 100 s of waiting at half a second each.
  uint64_t ticket = 2;
  for (auto now = 0s; now < 200s; now += 10s) {
    auto shorter = make_waiter(ticket++, "p", "b", 1, 10s);
    shorter.arrived = now;
    p->on_request(shorter);
    if (serve(*p, 10s, 1, now) == 1) {
      CHECK(now == 100s); // As good as the newest one, and older.
      return;
    }
  }
  FAIL("it starves");
}

TEST_CASE("round robin gives equal counts, whatever the holds and weights") {
  auto p = policy("rr(by=agent)");
  std::map<uint64_t, std::string> of;
  std::map<std::string, int> count;
  uint64_t ticket = 1;
  auto ask = [&](const std::string& agent) {
    of[ticket] = agent;
    p->on_request(make_waiter(ticket++, "p", agent, 1, 10s, agent == "a" ? 9 : 1));
  };
  // One agent has many more requests in the queue.
  for (const char* agent : {"a", "a", "a", "a", "b", "b", "c", "c"})
    ask(agent);
  for (int i = 1; i <= 300; ++i) {
    auto agent = of[serve(*p, std::chrono::seconds{1 + i % 7 * 10})];
    ++count[agent];
    ask(agent);
    for (const auto& [name, n] : count)
      REQUIRE(std::abs(n - i / 3) <= 1);
  }
}

TEST_CASE("drr serves a flow until its quantum is used, then the next in the ring") {
  auto p = policy("drr(by=agent,quantum=30s)");
  uint64_t ticket = 1;
  std::map<uint64_t, char> of;
  for (char agent : {'c', 'a', 'b'})
    for (int i = 0; i < 6; ++i) {
      of[ticket] = agent;
      p->on_request(make_waiter(ticket++, "p", std::string{agent}));
    }
  std::string order;
  for (int i = 0; i < 18; ++i)
    order += of[serve(*p, 10s)];
  CHECK(order == "cccaaabbbcccaaabbb");
}

TEST_CASE("drr carries the debt of an overrun into later rounds") {
  auto p = policy("drr(by=agent,quantum=30s)");
  uint64_t ticket = 1;
  std::map<uint64_t, char> of;
  for (char agent : {'a', 'b'})
    for (int i = 0; i < 12; ++i) {
      of[ticket] = agent;
      p->on_request(make_waiter(ticket++, "p", std::string{agent}));
    }
  // The first lease of a takes three quanta and a bit: three rounds pass it over.
  CHECK(of[serve(*p, 95s)] == 'a');
  std::string order;
  for (int i = 0; i < 12; ++i)
    order += of[serve(*p, 10s)];
  CHECK(order == "bbbbbbbbbaaa");
}

TEST_CASE("lottery draws by weight, and another seed draws otherwise") {
  auto run = [](const std::string& text) {
    auto p = policy(text);
    std::string order;
    uint64_t ticket = 1;
    std::map<uint64_t, char> of;
    auto ask = [&](char agent) {
      of[ticket] = agent;
      p->on_request(make_waiter(ticket++, "p", std::string{agent}, 1, 10s, agent == 'a' ? 3 : 1));
    };
    ask('a');
    ask('b');
    for (int i = 0; i < 400; ++i) {
      order += of[serve(*p, 10s)];
      ask(order.back());
    }
    return order;
  };
  auto order = run("lottery(by=agent,seed=7)");
  CHECK(order == run("lottery(by=agent,seed=7)"));
  CHECK(order != run("lottery(by=agent,seed=8)"));
  // 300 of 400, four standard deviations of 8.7.
  CHECK(std::ranges::count(order, 'a') > 265);
  CHECK(std::ranges::count(order, 'a') < 335);
}

TEST_CASE("leaving and coming back does not make a lottery ticket luckier") {
  auto p = policy("lottery(by=agent)");
  uint64_t ticket = 1;
  int won = 0;
  for (int i = 0; i < 400; ++i) {
    p->on_request(make_waiter(ticket, "p", "honest"));
    // Tries again until it would win, twenty times at most.
    auto mine = ++ticket;
    for (int tries = 0; tries < 20; ++tries) {
      p->on_request(make_waiter(mine, "p", "cheat"));
      if (p->pick({0, fits(1)}, 0ns) == mine)
        break;
      p->on_cancel(mine++);
    }
    ticket = mine + 1;
    auto winner = *p->pick({0, fits(1)}, 0ns);
    won += winner == mine ? 1 : 0;
    serve(*p, 1s);
    if (winner == mine)
      p->on_cancel(mine - 1);
    while (auto left = p->pick({0, fits(1)}, 0ns))
      p->on_cancel(*left);
  }
  CHECK(won < 240);
}

TEST_CASE("las serves who has had least, so a newcomer goes first until it has caught up") {
  auto p = policy("las(by=agent,first=10s,factor=2)");
  uint64_t ticket = 1;
  for (int i = 0; i < 20; ++i) {
    p->on_request(make_waiter(ticket++, "p", "old"));
    serve(*p, 10s);
  }
  for (int i = 0; i < 30; ++i)
    p->on_request(make_waiter(ticket++, "p", "old"));
  auto first_new = ticket;
  for (int i = 0; i < 30; ++i)
    p->on_request(make_waiter(ticket++, "p", "new"));
  // 200 s lie in the level from 160 s to 320 s.
  int in_a_row = 0;
  while (serve(*p, 10s) >= first_new)
    ++in_a_row;
  CHECK(in_a_row == 16);
}

TEST_CASE("within a level las serves the oldest request") {
  auto p = policy("las(by=agent,first=1h)");
  for (uint64_t ticket = 1; ticket <= 6; ++ticket)
    p->on_request(make_waiter(ticket, "p", ticket % 2 == 0 ? "a" : "b"));
  for (uint64_t ticket = 1; ticket <= 6; ++ticket)
    CHECK(serve(*p, 10s) == ticket);
}

TEST_CASE("priority serves the classes in their order, and those that are not named last") {
  auto p = policy("priority(order=timing>correctness)");
  uint64_t ticket = 1;
  for (auto what : {lease_class::profile, lease_class::official, lease_class::correctness,
         lease_class::timing, lease_class::correctness, lease_class::timing}) {
    auto w = make_waiter(ticket++, "p", "a");
    w.what = what;
    p->on_request(w);
  }
  for (uint64_t expected : {4, 6, 3, 5, 1, 2})
    CHECK(serve(*p, 10s) == expected);
}

TEST_CASE("priority with ageing serves the lowest class once it has waited long enough") {
  for (auto [text, served_at] : {std::pair{"priority(ageing=60s)", 120s}, {"priority", -1s}}) {
    CAPTURE(std::string{text});
    auto p = policy(text);
    auto low = make_waiter(1, "p", "a");
    low.what = lease_class::profile;
    low.arrived = 0s;
    p->on_request(low);
    uint64_t ticket = 2;
    std::chrono::seconds seen{-1};
    for (auto now = 0s; now < 1h && seen < 0s; now += 10s) {
      auto w = make_waiter(ticket++, "p", "b");
      w.what = lease_class::correctness;
      w.arrived = now;
      p->on_request(w);
      if (serve(*p, 10s, 1, now) == 1)
        seen = now;
    }
    // Two ranks of 60 s; at 120 s the request of that moment is as good, and younger.
    CHECK(seen == served_at);
  }
}

TEST_CASE("max-min forgets what was used long ago, stride does not give credit for absence") {
  for (std::string text : {"maxmin(by=agent,half_life=10m)", "stride(by=agent)"}) {
    CAPTURE(text);
    auto p = policy(text);
    uint64_t ticket = 1;
    nanoseconds now{0};
    for (int i = 0; i < 30; ++i, now += 10s) {
      p->on_request(make_waiter(ticket++, "p", "steady"));
      serve(*p, 10s, 1, now);
    }
    for (int i = 0; i < 9; ++i)
      p->on_request(make_waiter(ticket++, "p", "steady"));
    auto first_new = ticket;
    for (int i = 0; i < 9; ++i)
      p->on_request(make_waiter(ticket++, "p", "back"));
    int in_a_row = 0;
    for (; in_a_row < 9 && serve(*p, 10s, 1, now) >= first_new; now += 10s)
      ++in_a_row;
    if (text.starts_with("maxmin"))
      CHECK(in_a_row == 9);
    else
      CHECK(in_a_row <= 2);
  }
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
    auto picked = *p->pick({0, fits(1)}, 0ns);
    const auto& problem = of[picked];
    auto held = problem == "long" ? nanoseconds{30s} : nanoseconds{3s};
    p->on_grant(picked, 0, 0ns);
    p->on_release({picked, 0, held}, "done", 0ns);
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
    auto f = of[serve(*p, 5s)];
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

TEST_CASE("the estimate is charged at the grant, so that one flow does not take every GPU") {
  for (const char* text :
    {"stride(by=problem)", "maxmin(by=problem)", "las(by=problem,first=1s)"}) {
    CAPTURE(std::string{text});
    auto p = policy(text);
    for (uint64_t ticket : {1, 2, 3})
      p->on_request(make_waiter(ticket, "a", "x"));
    for (uint64_t ticket : {4, 5, 6})
      p->on_request(make_waiter(ticket, "b", "x"));
    std::map<bool, int> granted;
    for (uint32_t gpu = 0; gpu < 4; ++gpu) {
      auto ticket = *p->pick({gpu, fits(1)}, 0ns);
      p->on_grant(ticket, gpu, 0ns);
      ++granted[ticket <= 3];
    }
    CHECK(granted[true] == 2);
    CHECK(granted[false] == 2);
  }
}

TEST_CASE("idleness banks no credit") {
  for (const char* text : {"stride", "drr(quantum=1s)"}) {
    CAPTURE(std::string{text});
    auto p = policy(text);
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
}

TEST_CASE("virtual time does not overflow within a thousand years of GPU time") {
  for (const char* text : {"stride", "drr", "las", "maxmin(half_life=36500d)"}) {
    CAPTURE(std::string{text});
    auto p = policy(text);
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
}

TEST_CASE("in a tree each level decides in its turn") {
  auto p = policy("priority(by=class,order=timing>profile)/stride(by=problem)/sept");
  auto ask = [&](uint64_t ticket, lease_class what, const char* problem, nanoseconds est) {
    auto w = make_waiter(ticket, problem, "a", 1, est);
    w.what = what;
    p->on_request(w);
  };
  ask(1, lease_class::profile, "p", 1s);
  ask(2, lease_class::timing, "q", 30s);
  ask(3, lease_class::timing, "q", 20s);
  ask(4, lease_class::timing, "p", 50s);
  ask(5, lease_class::timing, "p", 40s);
  // timing before profile; p and q in turn by what they have had; the shorter one of a problem.
  CHECK(serve(*p, 40s) == 5);
  CHECK(serve(*p, 20s) == 3);
  CHECK(serve(*p, 30s) == 2);
  CHECK(serve(*p, 50s) == 4);
  CHECK(serve(*p, 1s) == 1);
}

TEST_CASE("backfill lets short leases by while that cannot delay the reserved start") {
  auto p = policy("backfill");
  auto ask = [&](uint64_t ticket, lease_class what, nanoseconds cap) {
    auto w = make_waiter(ticket, "p", "a");
    w.what = what;
    w.cap = cap;
    p->on_request(w);
  };
  ask(1, lease_class::timing, 120s);
  p->on_grant(1, 0, 0s);
  ask(2, lease_class::timing, 200s);
  p->on_grant(2, 1, 0s);
  // Reserved on GPU 0 at 120 s, when its lease has run to its cap at the latest.
  ask(3, lease_class::profile, 300s);
  ask(4, lease_class::timing, 100s);
  ask(5, lease_class::timing, 60s);
  p->on_release({1, 0, 50s}, "done", 50s);
  // 70 s are left: too few for the older one.
  CHECK(p->pick({0, fits(1)}, 50s) == 5u);
  CHECK(p->pick({1, fits(1)}, 50s) == 4u); // It may not end in time, but the promise is GPU 0.
  p->on_grant(5, 0, 50s);
  p->on_release({5, 0, 20s}, "done", 70s);
  CHECK(p->pick({0, fits(1)}, 70s) == 3u); // Nobody fits into 50 s: it starts early.
  CHECK(p->pick({1, fits(1)}, 119s) == 4u);
  CHECK(p->pick({1, fits(1)}, 120s) == 3u); // Its time has come: any GPU is its own.
}
