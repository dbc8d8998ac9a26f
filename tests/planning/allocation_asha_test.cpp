#include "tests/planning/allocation_support.hpp"

#include <cmath>
#include <string>
#include <vector>

// Asynchronous successive halving.

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

/// The problems that one worker is sent to until the second round begins.
std::vector<problem_index> first_round(
  allocation& who, const std::function<double(problem_index, int rung)>& gain) {
  std::vector<problem_index> out;
  for (;;) {
    auto picked = who.pick(0ns);
    REQUIRE(picked);
    REQUIRE(out.size() < 100'000);
    if (picked->why.round > 0)
      return out;
    out.push_back(picked->problem);
    give(who, picked->problem, gain(picked->problem, static_cast<int>(picked->why.rung)));
  }
}

} // namespace

TEST_CASE("the best half of those that finished a rung go on as soon as that can be said") {
  auto who = start_rule("asha(eta=2, first=1)", 4);
  // By rung: problem 1 is best at first and slow afterwards.
  const double gains[3][4] = {{0.1, 0.4, 0.2, 0.3}, {0, 0.02, 0, 0.1}, {0, 0, 0, 0.05}};
  auto order = first_round(*who, [&](problem_index p, int rung) { return gains[rung][p]; });
  // Two of rung 0 are needed before one can go on; 1 does, twice. 2 is not among the best of three;
  // 3 is among the best two of four, beats 1 in rung 1, and has rung 2 for itself.
  CHECK(order == std::vector<problem_index>{0, 1, 1, 1, 2, 3, 3, 3, 3, 3, 3, 3});
  CHECK(first(*who) == 0);
  CHECK(
    to_string(who->pick(0ns)->why) == "asha: round 2, first rung; 0 in flight, 1 attempts given");
}

TEST_CASE("the highest rung goes first, also before a smaller index with as few in flight") {
  auto who = start_rule("asha(eta=2, first=2)", 4);
  for (problem_index p : {1u, 3u})
    for (int i = 0; i < 2; ++i)
      give(*who, p, p == 3 ? 0.1 : 0);
  CHECK(first(*who) == 3);
  who->on_given(3);
  CHECK(first(*who) == 3);
  who->on_eligible(3, false);
  CHECK(first(*who) == 0);
}

TEST_CASE("the reason says what a problem was promoted for") {
  auto who = start_rule("asha(eta=2, first=2)", 2);
  for (int i = 0; i < 2; ++i)
    give(*who, 0, 0.01);
  for (int i = 0; i < 2; ++i)
    give(*who, 1, 0.02);
  CHECK(to_string(who->pick(0ns)->why)
    == "asha: round 1, rung 2, promoted for gaining 0.0400 (log) over 2 attempts; 0 in flight, 2 "
       "attempts given");
}

TEST_CASE("a round costs n r (floor(log_eta n) + 1) attempts where n is a power of eta") {
  for (auto [eta, n, rungs] : {std::tuple{2, 1, 1}, {2, 16, 5}, {3, 27, 4}, {4, 16, 3}, {5, 5, 2}})
    for (int r : {1, 2, 5}) {
      CAPTURE(eta);
      CAPTURE(n);
      auto who =
        start_rule("asha(eta=" + std::to_string(eta) + ", first=" + std::to_string(r) + ")",
          static_cast<uint32_t>(n));
      // Who comes first gains most, so nobody is promoted who would not be in the end.
      auto order = first_round(*who, [](problem_index p, int) { return 1.0 / (p + 1); });
      CHECK(order.size() == static_cast<size_t>(n * r * rungs));
    }
}

TEST_CASE("a round of any size costs the rounded sum over its rungs") {
  for (size_t eta : {2u, 3u, 7u})
    for (size_t n = 1; n <= 60; n += 7) {
      auto who = start_rule("asha(first=3, eta=" + std::to_string(eta) + ")", uint32_t(n));
      size_t expected = 0;
      size_t cost = 3;
      for (size_t in_rung = n; in_rung > 0; in_rung /= eta, cost *= eta)
        expected += in_rung * cost;
      auto order = first_round(*who, [](problem_index p, int) { return 1.0 / (p + 1); });
      CHECK(order.size() == expected);
    }
}

TEST_CASE("early noise promotes more than the best: that is the price of not waiting") {
  auto who = start_rule("asha(eta=2, first=1)", 4);
  // Each is better than all before it: after two 1 goes on, after three 2 takes its place, ...
  auto order = first_round(*who, [](problem_index p, int rung) { return rung == 0 ? p + 1.0 : 0; });
  std::vector<int> had(4, 0);
  for (auto p : order)
    ++had[p];
  CHECK(had[0] == 1);
  CHECK(had[1] > 1);
  CHECK(had[2] > 1);
  CHECK(had[3] > 1);
}

TEST_CASE("without gains every round is fair in its first rung, and over many nobody starves") {
  auto had = play(*start_rule("asha(eta=2, first=1)", 4), 4, 12 * 40, no_gain);
  for (int n : had)
    CHECK(n >= 40);
}

TEST_CASE("gain counts for a GPU second when use is counted in time") {
  auto who = start_rule("asha(eta=2, first=1)", 2, false);
  give(*who, 0, 0.2, a_second);
  give(*who, 1, 0.3, 2 * a_second);
  CHECK(first(*who) == 0);
}

TEST_CASE("workers share the rungs, and equal share decides while results are awaited") {
  auto who = start_rule("asha(eta=2, first=2)", 2);
  // Four attempts of the first rung: one each, then one each.
  for (problem_index expected : {0u, 1u, 0u, 1u}) {
    CHECK(first(*who) == expected);
    who->on_given(expected);
  }
  auto waits = who->pick(0ns);
  CHECK(waits->problem == 0);
  CHECK(to_string(waits->why)
    == "asha: round 1 waits for results, equal share: 2 in flight, 2 attempts given");
  who->on_given(0);
  who->on_finished(0, {a_second, 0});
  who->on_finished(0, {a_second, 0});
  who->on_finished(1, {a_second, 0.1});
  who->on_finished(1, {a_second, 0.1});
  CHECK(first(*who) == 1);
  CHECK(who->pick(0ns)->why.rung == 1);
}

TEST_CASE("a problem that cannot use an attempt holds up no round") {
  auto who = start_rule("asha(eta=2, first=1)", 3);
  give(*who, 0);
  who->on_eligible(1, false); // In the middle of its rung.
  give(*who, 2, 0.1);
  CHECK(first(*who) == 2);
  CHECK(who->pick(0ns)->why.rung == 1);
  give(*who, 2);
  give(*who, 2);
  auto picked = who->pick(0ns);
  CHECK(picked->why.round == 1);
  CHECK(picked->problem == 0);
  // Back again, it takes part in the round that is on.
  who->on_eligible(1, true);
  give(*who, 0);
  CHECK(first(*who) == 1);
  CHECK(who->pick(0ns)->why.rung == 0);
  for (problem_index p : {0u, 1u, 2u})
    who->on_eligible(p, false);
  CHECK_FALSE(who->pick(0ns));
}

TEST_CASE("attempts that somebody else gave count for the rung") {
  auto who = start_rule("asha(eta=2, first=3)", 2);
  for (int i = 0; i < 3; ++i)
    give(*who, 1, 0.1);
  CHECK(first(*who) == 0);
  for (int i = 0; i < 3; ++i)
    give(*who, 0);
  CHECK(first(*who) == 1);
  CHECK(who->pick(0ns)->why.rung == 1);
}
