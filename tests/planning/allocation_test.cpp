#include "planning/allocation/allocation.hpp"

#include <doctest/doctest.h>
#include <map>
#include <vector>

using namespace gristmill;
using namespace std::chrono_literals;

namespace {

/// Gives out `slots` attempts one at a time, each finished before the next, and counts them.
template <class Gain>
std::vector<int> play(allocation& who, uint32_t problems, int slots, Gain gain) {
  std::vector<int> had(problems, 0);
  for (int i = 0; i < slots; ++i) {
    auto picked = who.pick(0ns);
    REQUIRE(picked);
    auto p = picked->problem;
    who.on_given(p);
    who.on_finished(p, {1'000'000'000, gain(p, had[p])});
    ++had[p];
  }
  return had;
}

std::unique_ptr<allocation> make(allocation_settings settings, uint32_t problems) {
  auto out = make_allocation(settings, problems);
  for (problem_index p = 0; p < problems; ++p)
    out->on_eligible(p, true);
  return out;
}

allocation_settings rebalancing(double floor, double gate = 0.05) {
  return {allocation_kind::rebalance, floor, gate, 0.1, true};
}

auto nothing = [](problem_index, int) { return 0.0; };

} // namespace

TEST_CASE("nobody is picked while nobody can use an attempt") {
  for (auto kind : {allocation_kind::equal, allocation_kind::rebalance}) {
    auto who = make_allocation({kind}, 2);
    CHECK_FALSE(who->pick(0ns));
    who->on_eligible(1, true);
    CHECK(who->pick(0ns)->problem == 1);
    who->on_eligible(1, false);
    CHECK_FALSE(who->pick(0ns));
  }
}

TEST_CASE("equal share goes to the fewest in flight, then the least time, then the fewest given") {
  auto who = make({}, 3);
  CHECK(who->pick(0ns)->problem == 0);
  who->on_given(0);
  CHECK(who->pick(0ns)->problem == 1);
  who->on_given(1);
  who->on_given(2);
  // One in flight each; the first to end has had two seconds.
  who->on_finished(0, {2'000'000'000, 0});
  CHECK(who->pick(0ns)->problem == 0);
  who->on_finished(1, {1'000'000'000, 0});
  CHECK(who->pick(0ns)->problem == 1);
  who->on_finished(2, {1'000'000'000, 0});
  CHECK(who->pick(0ns)->problem == 1);
  CHECK(
    to_string(who->pick(0ns)->why) == "equal share: 0 in flight, 1 attempts given, 1.000 GPU-s");
}

TEST_CASE("equal share by attempts does not look at time") {
  allocation_settings settings;
  settings.by_attempts = true;
  auto who = make(settings, 2);
  who->on_given(0);
  who->on_finished(0, {1, 0});
  CHECK(who->pick(0ns)->problem == 1);
  who->on_given(1);
  who->on_finished(1, {1'000'000'000'000, 0});
  CHECK(who->pick(0ns)->problem == 0);
  CHECK(who->pick(0ns)->why.gpu_ns == 0);
}

TEST_CASE("picking changes nothing") {
  auto who = make(rebalancing(0.5), 4);
  auto first = who->pick(0ns)->problem;
  for (int i = 0; i < 10; ++i)
    CHECK(who->pick(0ns)->problem == first);
}

TEST_CASE("without gains rebalancing is fair to all") {
  auto had = play(*make(rebalancing(0), 4), 4, 400, nothing);
  for (int n : had)
    CHECK(n == 100);
}

TEST_CASE("a problem that goes on gaining gets most of what is not the equal floor") {
  auto gain = [](problem_index p, int) { return p == 2 ? 0.05 : 0.0; };
  auto risen = play(*make(rebalancing(0), 4), 4, 400, gain);
  CHECK(risen[2] > 250);
  auto mixed = play(*make(rebalancing(0.5), 4), 4, 400, gain);
  CHECK(mixed[2] > 150);
  CHECK(mixed[2] < risen[2]);
  for (int p : {0, 1, 3})
    CHECK(mixed[static_cast<size_t>(p)] > 45);
}

TEST_CASE("gains of the earlier half are forgotten") {
  // Problem 0 gained a lot at its start and nothing since.
  auto gain = [](problem_index p, int n) { return p == 0 && n < 5 ? 1.0 : 0.0; };
  auto who = make(rebalancing(0), 2);
  auto early = play(*who, 2, 12, gain);
  CHECK(early[0] >= 9);
  auto late = play(*who, 2, 200, [](problem_index, int) { return 0.0; });
  CHECK(late[1] > 80);
}

TEST_CASE("no problem starves: the prior falls with the number of attempts") {
  auto gain = [](problem_index p, int) { return p == 0 ? 0.01 : 0.0; };
  auto had = play(*make(rebalancing(0), 8), 8, 800, gain);
  for (int n : had)
    CHECK(n >= 10);
}

TEST_CASE("half of the slots are the equal floor, one after the other") {
  auto gain = [](problem_index p, int) { return p == 0 ? 1.0 : 0.0; };
  auto who = make(rebalancing(0.5), 3);
  std::map<allocation_rule, int> rules;
  for (int i = 0; i < 100; ++i) {
    auto picked = who->pick(0ns);
    ++rules[picked->why.rule];
    who->on_given(picked->problem);
    who->on_finished(picked->problem, {1, gain(picked->problem, 0)});
  }
  CHECK(rules[allocation_rule::floor_share] == 50);
  CHECK(rules[allocation_rule::rising] == 50);
}

TEST_CASE("an attempt in flight counts as one without a gain, so that workers spread") {
  auto who = make(rebalancing(0), 4);
  std::vector<int> given(4, 0);
  for (int i = 0; i < 8; ++i) {
    auto p = who->pick(0ns)->problem;
    ++given[p];
    who->on_given(p);
  }
  for (int n : given)
    CHECK(n == 2);
}

TEST_CASE("a problem near its floor is left out, one whose floor is not known never") {
  auto who = make(rebalancing(0.5), 3);
  who->on_headroom(0, 0.01);
  who->on_headroom(1, 0.5);
  auto had = play(*who, 3, 60, nothing);
  CHECK(had[0] == 0);
  CHECK(had[1] == 30);
  CHECK(had[2] == 30);
  CHECK(who->pick(0ns)->why.gated == 1);
}

TEST_CASE("when all are near their floor all count again") {
  auto who = make(rebalancing(0.5), 2);
  who->on_headroom(0, 0.01);
  who->on_headroom(1, 0.0);
  auto picked = who->pick(0ns);
  REQUIRE(picked);
  CHECK(picked->why.rule == allocation_rule::all_gated);
  auto had = play(*who, 2, 20, nothing);
  CHECK(had[0] == 10);
  CHECK(had[1] == 10);
}

TEST_CASE("a gate of 0 leaves nobody out, and headroom that is no number neither") {
  auto open = make(rebalancing(0.5, 0), 2);
  open->on_headroom(0, 0.0);
  CHECK(play(*open, 2, 20, nothing)[0] == 10);
  auto odd = make(rebalancing(0.5), 2);
  odd->on_headroom(0, std::numeric_limits<double>::quiet_NaN());
  CHECK(play(*odd, 2, 20, nothing)[0] == 10);
}

TEST_CASE("shared by time, a gain that costs less GPU time goes first") {
  auto settings = rebalancing(0);
  settings.by_attempts = false;
  auto who = make(settings, 2);
  for (int i = 0; i < 8; ++i)
    for (problem_index p : {0u, 1u}) {
      who->on_given(p);
      who->on_finished(p, {p == 0 ? 10'000'000'000u : 1'000'000'000u, 0.1});
    }
  CHECK(who->pick(0ns)->problem == 1);
}
