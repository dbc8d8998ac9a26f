#include "tests/planning/allocation_support.hpp"

#include <algorithm>
#include <limits>
#include <map>

// What holds of every rule, equal share, and rebalancing.

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

std::string rebalancing(const char* floor, const char* gate = "0.05") {
  return std::string{"rebalance(floor="} + floor + ", gate=" + gate + ")";
}

} // namespace

TEST_CASE("nobody is picked while nobody can use an attempt") {
  for (const auto& text : every_rule) {
    CAPTURE(text);
    auto who = make_rule(text, 2);
    CHECK_FALSE(who->pick(0ns));
    who->on_eligible(1, true);
    CHECK(first(*who) == 1);
    who->on_eligible(1, false);
    CHECK_FALSE(who->pick(0ns));
    CHECK_FALSE(make_rule(text, 0)->pick(0ns));
  }
}

TEST_CASE("a single problem gets every attempt, whatever happens to it") {
  for (const auto& text : every_rule) {
    CAPTURE(text);
    auto who = start_rule(text, 1);
    who->on_headroom(0, 0.001);
    for (int i = 0; i < 200; ++i) {
      REQUIRE(first(*who) == 0);
      who->on_given(0);
      if (i % 3 != 0)
        who->on_finished(0, {a_second, i % 7 == 0 ? 0.1 : 0});
    }
  }
}

TEST_CASE(
  "a rule names somebody who can use an attempt whenever there is one, and twice the same") {
  for (const auto& text : every_rule)
    for (uint32_t seed = 1; seed <= 5; ++seed) {
      CAPTURE(text);
      draws random(seed);
      constexpr uint32_t problems = 7;
      auto who = make_rule(text, problems, seed % 2 == 0);
      auto twin = make_rule(text, problems, seed % 2 == 0);
      std::vector<bool> eligible(problems);
      std::vector<int> in_flight(problems);
      auto both = [&](auto what) {
        what(*who);
        what(*twin);
      };
      for (int i = 0; i < 3000; ++i) {
        const problem_index p = random.below(problems);
        switch (random.below(8)) {
        case 0:
          eligible[p] = !eligible[p];
          both([&](allocation& a) { a.on_eligible(p, eligible[p]); });
          break;
        case 1:
          both([&](allocation& a) { a.on_headroom(p, p % 2 == 0 ? 0.01 : 0.3); });
          break;
        case 2:
        case 3:
        case 4:
          if (in_flight[p] > 0) {
            --in_flight[p];
            const double gain = random.below(5) == 0 ? 0.02 : 0;
            both([&](allocation& a) { a.on_finished(p, {a_second + p, gain}); });
          }
          break;
        case 5: // Somebody knew better, as when a run is resumed.
          ++in_flight[p];
          both([&](allocation& a) { a.on_given(p); });
          break;
        default: {
          auto picked = who->pick(0ns);
          REQUIRE(picked.has_value() == (std::count(eligible.begin(), eligible.end(), true) > 0));
          if (!picked)
            break;
          REQUIRE(eligible[picked->problem]);
          auto again = twin->pick(0ns);
          REQUIRE(again->problem == picked->problem);
          REQUIRE(to_string(again->why) == to_string(picked->why));
          ++in_flight[picked->problem];
          both([&](allocation& a) { a.on_given(picked->problem); });
        }
        }
      }
    }
}

TEST_CASE("a gain that is negative or no number counts as none") {
  for (const auto& text : every_rule) {
    CAPTURE(text);
    auto clean = start_rule(text, 3);
    auto odd = start_rule(text, 3);
    const double odd_gains[] = {-1, std::numeric_limits<double>::quiet_NaN(),
      std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
    for (int i = 0; i < 100; ++i) {
      REQUIRE(first(*odd) == first(*clean));
      const auto p = first(*clean);
      give(*clean, p, i % 5 == 4 ? 0.1 : 0);
      give(*odd, p, i % 5 == 4 ? 0.1 : odd_gains[i % 4]);
    }
  }
}

TEST_CASE("equal share goes to the fewest in flight, then the least time, then the fewest given") {
  auto who = start_rule("equal", 3, false);
  CHECK(first(*who) == 0);
  who->on_given(0);
  CHECK(first(*who) == 1);
  who->on_given(1);
  who->on_given(2);
  // One in flight each; the first to end has had two seconds.
  who->on_finished(0, {2 * a_second, 0});
  CHECK(first(*who) == 0);
  who->on_finished(1, {a_second, 0});
  CHECK(first(*who) == 1);
  who->on_finished(2, {a_second, 0});
  CHECK(first(*who) == 1);
  CHECK(
    to_string(who->pick(0ns)->why) == "equal share: 0 in flight, 1 attempts given, 1.000 GPU-s");
}

TEST_CASE("equal share by attempts does not look at time") {
  auto who = start_rule("equal", 2);
  give(*who, 0, 0, 1);
  CHECK(first(*who) == 1);
  give(*who, 1, 0, 1000 * a_second);
  CHECK(first(*who) == 0);
  CHECK(who->pick(0ns)->why.gpu_ns == 0);
}

TEST_CASE("picking changes nothing") {
  for (const auto& text : every_rule) {
    auto who = start_rule(text, 4);
    give(*who, 2, 0.1);
    auto before = first(*who);
    for (int i = 0; i < 10; ++i)
      CHECK(first(*who) == before);
  }
}

TEST_CASE("without gains rebalancing is fair to all") {
  for (int n : play(*start_rule(rebalancing("0"), 4), 4, 400, no_gain))
    CHECK(n == 100);
}

TEST_CASE("a problem that goes on gaining gets most of what is not the equal floor") {
  auto gain = [](problem_index p, int) { return p == 2 ? 0.05 : 0.0; };
  auto risen = play(*start_rule(rebalancing("0"), 4), 4, 400, gain);
  CHECK(risen[2] > 250);
  auto mixed = play(*start_rule(rebalancing("0.5"), 4), 4, 400, gain);
  CHECK(mixed[2] > 150);
  CHECK(mixed[2] < risen[2]);
  for (int p : {0, 1, 3})
    CHECK(mixed[static_cast<size_t>(p)] > 45);
}

TEST_CASE("half of the slots are the equal floor, one after the other") {
  auto who = start_rule(rebalancing("0.5"), 3);
  std::map<allocation_rule, int> rules;
  for (int i = 0; i < 100; ++i) {
    auto picked = who->pick(0ns);
    ++rules[picked->why.rule];
    give(*who, picked->problem, picked->problem == 0 ? 1.0 : 0.0, 1);
  }
  CHECK(rules[allocation_rule::floor_share] == 50);
  CHECK(rules[allocation_rule::rising] == 50);
}

TEST_CASE("rebalance is a name for a gate around a floor around rising") {
  auto name = start_rule("rebalance(floor=0.3, gate=0.2, prior=0.01)", 5);
  auto whole = start_rule("gate(0.2, floor(0.3, rising(0.01)))", 5);
  for (int i = 0; i < 500; ++i) {
    auto a = name->pick(0ns);
    auto b = whole->pick(0ns);
    REQUIRE(a->problem == b->problem);
    REQUIRE(to_string(a->why) == to_string(b->why));
    for (auto* who : {&name, &whole}) {
      give(**who, a->problem, i % 9 == 0 ? 0.05 : 0);
      (*who)->on_headroom(a->problem, 1 - i * 0.002);
    }
  }
}
