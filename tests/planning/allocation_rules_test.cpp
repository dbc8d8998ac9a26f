#include "planning/allocation/line_ranking.hpp"
#include "tests/planning/allocation_support.hpp"

#include <cmath>
#include <limits>
#include <map>

// Each rule by itself, and those that change others. asha has a file of its own.

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

// --- round robin -----------------------------------------------------------------------------

TEST_CASE("round robin goes on after the problem that was given an attempt last") {
  auto who = start_rule("round_robin", 3);
  for (problem_index expected : {0u, 1u, 2u, 0u, 1u}) {
    CHECK(first(*who) == expected);
    who->on_given(expected);
  }
  who->on_eligible(2, false);
  CHECK(first(*who) == 0);
  who->on_given(2); // Somebody knew better.
  CHECK(first(*who) == 0);
  who->on_eligible(2, true);
  who->on_given(1);
  CHECK(first(*who) == 2);
  CHECK(to_string(who->pick(0ns)->why) == "round robin: 2 in flight, 2 attempts given");
}

// --- greedy ----------------------------------------------------------------------------------

TEST_CASE("greedy goes to the largest recent gain of an attempt") {
  auto who = start_rule("greedy(halflife=2, prior=0)", 3);
  give(*who, 0, 0.1);
  give(*who, 1, 0.3);
  CHECK(first(*who) == 2); // Not tried yet.
  CHECK(to_string(who->pick(0ns)->why) == "greedy: not tried yet");
  give(*who, 2, 0.2);
  CHECK(first(*who) == 1);
  CHECK(who->pick(0ns)->why.gain == doctest::Approx(0.3));
  // Two attempts later the gain counts half: 0.15 over 1/2 + 1/sqrt 2 + 1 attempts.
  give(*who, 1);
  CHECK(first(*who) == 2);
  give(*who, 1);
  give(*who, 2, 0.2);
  give(*who, 0);
  give(*who, 0);
  give(*who, 2);
  give(*who, 2);
  give(*who, 2);
  give(*who, 2);
  give(*who, 2);
  give(*who, 2);
  CHECK(first(*who) == 1);
  CHECK(who->pick(0ns)->why.gain == doctest::Approx(0.15 / (0.5 + std::sqrt(0.5) + 1)));
}

TEST_CASE(
  "greedy with a prior of 0 gives up for ever who began without a gain; with one it does not") {
  auto gain = [](problem_index p, int n) {
    return p == 0 ? (n == 0 ? 0.5 : 0.0) : n >= 3 ? 1.0 : 0.0;
  };
  auto naive = play(*start_rule("greedy(prior=0)", 2), 2, 200, gain);
  CHECK(naive[1] == 1);
  auto hopeful = play(*start_rule("greedy(prior=0.1)", 2), 2, 200, gain);
  CHECK(hopeful[1] > 150);
}

TEST_CASE("greedy without any gain is fair: equal scores go to the fewest given") {
  for (const char* text : {"greedy", "greedy(prior=0)"})
    for (int n : play(*start_rule(text, 5), 5, 500, no_gain))
      CHECK(n == 100);
}

TEST_CASE("an attempt in flight counts as one that brought nothing, so that workers spread") {
  for (const char* text : {"greedy", "ucb", "rising", "equal", "rebalance(floor=0)"}) {
    CAPTURE(std::string{text});
    auto who = start_rule(text, 4);
    std::vector<int> given(4, 0);
    for (int i = 0; i < 8; ++i) {
      auto p = first(*who);
      ++given[p];
      who->on_given(p);
    }
    for (int n : given)
      CHECK(n == 2);
  }
  // The greedy score with two in flight is the one after two that ended without a gain.
  auto waits = start_rule("greedy(halflife=3)", 2);
  auto ended = start_rule("greedy(halflife=3)", 2);
  for (auto* who : {&waits, &ended}) {
    give(**who, 0, 1);
    give(**who, 1);
  }
  waits->on_given(0);
  waits->on_given(0);
  give(*ended, 0);
  give(*ended, 0);
  CHECK(waits->pick(0ns)->why.gain == doctest::Approx(ended->pick(0ns)->why.gain));
}

TEST_CASE("shared by time, a gain that costs less GPU time goes first") {
  for (const char* text : {"greedy", "ucb", "rising", "rebalance(floor=0)"}) {
    CAPTURE(std::string{text});
    auto who = start_rule(text, 2, false);
    for (int i = 0; i < 8; ++i)
      for (problem_index p : {0u, 1u})
        give(*who, p, 0.1, p == 0 ? 10 * a_second : a_second);
    CHECK(first(*who) == 1);
    CHECK(who->pick(0ns)->why.gpu_ns == 8 * a_second);
  }
}

TEST_CASE("a problem whose first attempt has not ended is taken to cost what the others do") {
  for (const char* text : {"greedy", "ucb", "rising"}) {
    CAPTURE(std::string{text});
    auto who = start_rule(text, 3, false);
    give(*who, 0, 0.1, 100 * a_second);
    give(*who, 1, 0.2, 100 * a_second);
    who->on_given(2);
    CHECK(first(*who) == 1);
  }
}

// --- ucb -------------------------------------------------------------------------------------

TEST_CASE("ucb goes to the largest mean plus a sqrt(2 ln t / n)") {
  auto who = start_rule("ucb(a=0.1)", 2);
  for (int i = 0; i < 4; ++i)
    give(*who, 0, 0.2);
  CHECK(first(*who) == 1);
  give(*who, 1, 0);
  // 0.2 + 0.1 sqrt(2 ln 5 / 4) = 0.2897 against 0.1 sqrt(2 ln 5) = 0.1794.
  auto picked = who->pick(0ns);
  CHECK(picked->problem == 0);
  CHECK(picked->why.gain == doctest::Approx(0.2));
  CHECK(picked->why.bonus == doctest::Approx(0.1 * std::sqrt(2 * std::log(5.0) / 4)));
  CHECK(to_string(picked->why)
    == "ucb: gained 0.2 (log) per attempt, bound 0.0897 above; 0 in flight, 4 attempts given");
  // Without gains since, its mean falls until the other's bound is above it.
  int more = 0;
  while (first(*who) == 0) {
    give(*who, 0, 0);
    ++more;
  }
  auto bound = [](double sum, double n, double t) {
    return sum / n + 0.1 * std::sqrt(2 * std::log(t) / n);
  };
  CHECK(bound(0.8, 4 + more, 5 + more) < bound(0, 1, 5 + more));
  CHECK(bound(0.8, 4 + more - 1, 5 + more - 1) >= bound(0, 1, 5 + more - 1));
}

TEST_CASE("ucb without scoring everybody anew picks whom scoring everybody would pick") {
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    draws random(seed);
    constexpr uint32_t problems = 37;
    auto who = start_rule("ucb(a=0.02)", problems);
    std::vector<double> gains(problems, 0);
    std::vector<double> given(problems, 0);
    double t = 0;
    for (int i = 0; i < 20'000; ++i) {
      auto p = first(*who);
      auto score = [&](problem_index q) {
        return given[q] == 0 ? std::numeric_limits<double>::infinity()
                             : gains[q] / given[q] + 0.02 * std::sqrt(2 * std::log(t) / given[q]);
      };
      for (problem_index q = 0; q < problems; ++q)
        REQUIRE(score(p) >= score(q) * (1 - 1e-12));
      // Every ninth is given to somebody else.
      if (i % 9 == 0)
        p = random.below(problems);
      who->on_given(p);
      ++given[p];
      ++t;
      const double gain = random.below(20) == 0 ? 0.001 * (random.below(100)) : 0;
      who->on_finished(p, {a_second, gain});
      gains[p] += gain;
    }
  }
}

TEST_CASE("lines are ranked as they stand at x, at every x") {
  draws random(3);
  for (uint32_t problems : {1u, 2u, 3u, 8u, 21u}) {
    line_ranking lines(problems);
    std::vector<line_ranking::line> known(problems);
    std::vector<bool> in(problems);
    double x = 0;
    for (int i = 0; i < 5000; ++i) {
      const problem_index p = random.below(problems);
      if (random.below(3) == 0) {
        known[p] = {random.below(10) == 0, (random.below(8)) * 0.125, (random.below(8)) * 0.25,
          random.below(3)};
        in[p] = true;
        lines.set(p, known[p]);
      } else if (random.below(5) == 0) {
        in[p] = false;
        lines.erase(p);
      } else {
        x += (random.below(4)) * 0.125;
        lines.move_to(x);
      }
      int best = -1;
      auto key = [&](int q) {
        const auto& l = known[static_cast<size_t>(q)];
        return std::tuple{!l.untried, l.untried ? 0 : -(l.level + l.slope * x), l.given, q};
      };
      for (int q = 0; q < int(problems); ++q)
        if (in[static_cast<size_t>(q)] && (best < 0 || key(q) < key(best)))
          best = q;
      REQUIRE(lines.empty() == (best < 0));
      if (best >= 0)
        REQUIRE(int(lines.first()) == best);
    }
  }
}

// --- rising ----------------------------------------------------------------------------------

TEST_CASE("rising forgets the gains of the earlier half") {
  // Problem 0 gained a lot at its start and nothing since.
  auto gain = [](problem_index p, int n) { return p == 0 && n < 5 ? 1.0 : 0.0; };
  auto who = start_rule("rising", 2);
  auto early = play(*who, 2, 12, gain);
  CHECK(early[0] >= 9);
  auto late = play(*who, 2, 200, no_gain);
  CHECK(late[1] > 80);
}

TEST_CASE("nobody starves under rising: the prior falls with the number of attempts") {
  auto gain = [](problem_index p, int) { return p == 0 ? 0.01 : 0.0; };
  for (int n : play(*start_rule("rising", 8), 8, 800, gain))
    CHECK(n >= 10);
}

TEST_CASE("rising looks at exactly the later half, also after a hundred thousand attempts") {
  // One problem, a gain of 1 at every hundredth attempt: the reason tells the window's sum.
  auto who = start_rule("rising", 1);
  double since_start = 0;
  std::vector<int> gains_at;
  for (int n = 0; n < 100'000; ++n) {
    auto picked = who->pick(0ns);
    const int start = n / 2;
    int expected = 0;
    if (n % 997 == 0) {
      for (int at : gains_at)
        expected += at > start ? 1 : 0;
      REQUIRE(picked->why.window == static_cast<uint32_t>(n - start));
      REQUIRE(picked->why.gain == doctest::Approx(expected));
    }
    const bool gains = n % 100 == 99;
    give(*who, 0, gains ? 1 : 0);
    if (gains)
      gains_at.push_back(n + 1);
    since_start += gains ? 1 : 0;
  }
  CHECK(since_start == 1000);
}

TEST_CASE("the score of rising is the window's gain and the prior over half of the attempts") {
  auto who = start_rule("rising(prior=0.1)", 2);
  for (int i = 0; i < 9; ++i)
    give(*who, 0, i == 8 ? 0.2 : 0);
  // (0.2 + 0.1) / (10/2) = 0.06 against 0.1 / ((n + 1)/2), which is below it from n = 3 on.
  int n = 0;
  while (first(*who) == 1) {
    give(*who, 1);
    ++n;
  }
  CHECK(n == 3);
  CHECK(to_string(who->pick(0ns)->why)
    == "rising: gained 0.2000 (log) over its last 5 attempts, 0 in flight");
}

// --- gate ------------------------------------------------------------------------------------

TEST_CASE("a problem near its floor is left out, one whose floor is not known never") {
  for (const char* text :
    {"rebalance", "gate(equal)", "gate(floor(0.5, equal))", "gate(round_robin)"}) {
    auto who = start_rule(text, 3);
    who->on_headroom(0, 0.01);
    who->on_headroom(1, 0.5);
    auto had = play(*who, 3, 60, no_gain);
    CHECK(had == std::vector{0, 30, 30});
    CHECK(who->pick(0ns)->why.gated == 1);
    CHECK(to_string(who->pick(0ns)->why).ends_with("; 1 near their floor left out"));
  }
}

TEST_CASE("when all are near their floors all count again, by equal share") {
  for (const auto& text : {"rebalance", "gate(greedy)", "gate(asha)"}) {
    auto who = start_rule(text, 2);
    who->on_headroom(0, 0.01);
    who->on_headroom(1, 0.0);
    CHECK(who->pick(0ns)->why.rule == allocation_rule::all_gated);
    CHECK(play(*who, 2, 20, no_gain) == std::vector{10, 10});
  }
}

TEST_CASE("the gate opens again when the last other one is gone, and when a floor is found lower") {
  auto who = start_rule("gate(0.05, equal)", 3);
  who->on_headroom(1, 0.049);
  CHECK(play(*who, 3, 10, no_gain)[1] == 0);
  who->on_eligible(0, false);
  who->on_eligible(2, false);
  CHECK(first(*who) == 1);
  CHECK(who->pick(0ns)->why.rule == allocation_rule::all_gated);
  who->on_eligible(0, true);
  CHECK(first(*who) == 0);
  who->on_headroom(1, 0.05); // Not below it.
  CHECK(first(*who) == 1);
  CHECK(who->pick(0ns)->why.rule == allocation_rule::equal_share);
  who->on_headroom(1, 0.01);
  who->on_eligible(1, false);
  who->on_eligible(1, true);
  CHECK(first(*who) == 0);
}

TEST_CASE("a gate of 0 leaves nobody out, and headroom that is no number neither") {
  auto open = start_rule("gate(0, equal)", 2);
  open->on_headroom(0, 0.0);
  CHECK(play(*open, 2, 20, no_gain)[0] == 10);
  auto odd = start_rule("gate(equal)", 2);
  odd->on_headroom(0, std::numeric_limits<double>::quiet_NaN());
  CHECK(play(*odd, 2, 20, no_gain)[0] == 10);
}

// --- floor -----------------------------------------------------------------------------------

TEST_CASE("of the first n slots the floor has exactly floor(n share), for every n") {
  for (int millionths : {0, 1, 100'000, 290'000, 333'333, 500'000, 700'000, 999'999, 1'000'000}) {
    CAPTURE(millionths);
    auto who = start_rule("floor(share=" + std::to_string(millionths / 1'000'000) + "."
        + std::to_string(1'000'000 + millionths % 1'000'000).substr(1) + ", rising)",
      3);
    long long equal = 0;
    for (long long n = 1; n <= 5000; ++n) {
      auto picked = who->pick(0ns);
      equal += picked->why.rule == allocation_rule::floor_share ? 1 : 0;
      REQUIRE(equal == n * millionths / 1'000'000);
      give(*who, picked->problem, picked->problem == 1 ? 0.1 : 0);
    }
  }
}

TEST_CASE("the floor keeps everybody going under a rule that gives up on all but one") {
  auto gain = [](problem_index p, int) { return p == 0 ? 0.1 : 0.0; };
  auto had = play(*start_rule("floor(0.5, greedy(prior=0))", 4), 4, 400, gain);
  // Equal share sees what the greedy half has had too, so problem 0 needs none of the floor.
  CHECK(had[0] >= 196);
  for (size_t p : {1u, 2u, 3u})
    CHECK(had[p] >= 66);
}
