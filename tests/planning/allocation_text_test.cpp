#include "examples/planner_policy/shortest_quiet.hpp"
#include "tests/planning/allocation_support.hpp"

#include <algorithm>

// What a rule is called, and rules of other people.

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

std::string what_is_wrong(const std::string& text) {
  auto made = allocation_from_text(text);
  REQUIRE_FALSE(made);
  CHECK(made.error().code == errc::invalid_input);
  return made.error().what;
}

void same(const std::string& a, const std::string& b) {
  CAPTURE(a);
  auto x = start_rule(a, 5);
  auto y = start_rule(b, 5);
  for (int i = 0; i < 300; ++i) {
    auto p = x->pick(0ns);
    REQUIRE(p->problem == y->pick(0ns)->problem);
    for (auto* who : {&x, &y}) {
      (*who)->on_headroom(p->problem, 0.5 - i * 0.001);
      give(**who, p->problem, i % 11 == 0 ? 0.02 : 0);
    }
  }
}

} // namespace

TEST_CASE("every rule of the catalogue is known by its name, and its parameters by theirs") {
  auto all = allocation_catalogue();
  std::vector<std::string> names;
  for (const auto& rule : all) {
    CAPTURE(rule.name);
    names.push_back(rule.name);
    CHECK_FALSE(rule.what.empty());
    std::string inner = rule.has_inner ? "equal" : "";
    std::string given;
    for (const auto& p : rule.parameters) {
      CAPTURE(p.name);
      auto with = [&](const std::string& value) {
        return rule.name + "(" + p.name + "=" + value + (inner.empty() ? "" : ", " + inner) + ")";
      };
      for (const auto& value : {p.fallback, p.least, p.most})
        CHECK(allocation_from_text(with(value)));
      CHECK(what_is_wrong(with("99999999")).find("from " + p.least + " to " + p.most)
        != std::string::npos);
      if (p.whole)
        CHECK(what_is_wrong(with("2.5")).find("whole number") != std::string::npos);
      given += (given.empty() ? "" : ", ") + p.name + "=" + p.fallback;
    }
    auto bare = rule.name + (inner.empty() ? "" : "(" + inner + ")");
    if (!given.empty())
      same(bare, rule.name + "(" + given + (inner.empty() ? "" : ", " + inner) + ")");
    CHECK(allocation_from_text(bare));
  }
  CHECK(std::is_sorted(names.begin(), names.end()));
  for (const char* name :
    {"equal", "round_robin", "greedy", "ucb", "rising", "asha", "gate", "floor", "rebalance"})
    CHECK(std::find(names.begin(), names.end(), name) != names.end());
}

TEST_CASE("spaces, empty brackets and the order of arguments do not matter") {
  same("equal()", "equal");
  same("  floor ( rising( prior = 0.2 ) , share = 0.25 ) ", "floor(0.25,rising(0.2))");
  same("gate(floor(equal))", "gate(0.05, floor(0.5, equal))");
  same("rebalance(prior=0.1)", "rebalance(0.5)");
}

TEST_CASE("errors name the nearest rule, parameter and the range") {
  auto has = [](const std::string& text, const std::string& words) {
    auto what = what_is_wrong(text);
    CHECK_MESSAGE(what.find(words) != std::string::npos, what);
  };
  has("rebalanc", "did you mean 'rebalance'? Known: asha, equal");
  has("Equal", "'equal'");
  has("oracle", "in simulations only");
  has("rebalance(flor=1)", "no parameter 'flor'; did you mean 'floor'? Known: floor, gate, prior");
  has("rebalance(floor=2)", "floor=2: must be a decimal with at most 6 places from 0 to 1");
  has("rebalance(floor=x)", "decimal");
  has("rebalance(floor=0.0000001)", "at most 6 places");
  has("asha(eta=1)", "whole number from 2 to 100");
  has("asha(first=18446744073709551616)", "whole number");
  has("equal(floor=1)", "no parameter 'floor'; it has none");
  has("equal(0.5)", "no parameter '0.5'; it has none");
  has("equal(rising)", "there can be no rule within it");
  has("rising(prio)", "'prior'");
  has("floor(0.5)", "needs a rule within it, such as floor(rising)");
  has("gate", "needs a rule within it");
  has("floor(rising, equal)", "two rules within it, the second 'equal'");
  has("floor(0.5, share=0.5, equal)", "'share' is given twice");
  has("floor(0.5, risin)", "did you mean 'rising'?");
  has("equal/equal", "expected the end at character 6, found '/'");
  has("rebalance(", "expected a parameter or a rule at character 11, found the end");
  has("rising(prior=0.1", "expected ',' or ')' at character 17, found the end");
  has("rising(prior=)", "decimal");
  has("rising(.5)", "prior=.5: must be a decimal");
  has("", "expected the name of a rule at character 1, found the end");
  has("floor(floor(floor(floor(floor(floor(equal))))))", "more than 6 levels");
}

TEST_CASE("hostile texts end in an error") {
  std::string deep;
  for (int i = 0; i < 600; ++i)
    deep += "gate(";
  CHECK(what_is_wrong(deep).find("more than 6 levels") != std::string::npos);
  CHECK(what_is_wrong(std::string(5000, 'a')).find("longer than 4096 bytes") != std::string::npos);
  CHECK(what_is_wrong(std::string(4096, '(')).size() < 300);
  CHECK(what_is_wrong("equal(" + std::string(4000, ',')).size() < 300);
  CHECK(what_is_wrong(std::string("equal\0", 6)).find('\0') == std::string::npos);
  CHECK(what_is_wrong("\x1b[31mequal").find('\x1b') == std::string::npos);
  CHECK(what_is_wrong("a\n").find('\n') == std::string::npos);
  // Every text of a few letters is a rule or an error, never a crash.
  const std::string letters = "equalfor01.,=() -";
  uint32_t random = 12345;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = i % 3 == 0 ? "floor(" : i % 3 == 1 ? "equal(" : "";
    for (int n = 0; n < i % 13; ++n) {
      random = random * 1664525 + 1013904223;
      text += letters[(random >> 16) % letters.size()];
    }
    auto made = allocation_from_text(text);
    if (made)
      CHECK((*made)(3, true) != nullptr);
    else
      CHECK_FALSE(made.error().what.empty());
  }
}

TEST_CASE("a rule of one's own is registered once and then known by name, also within others") {
  REQUIRE(
    register_allocation("shortest_quiet", make_shortest_quiet, "stays where something moves"));
  CHECK(
    register_allocation("shortest_quiet", make_shortest_quiet, "").error().code == errc::refused);
  CHECK(register_allocation("equal", make_shortest_quiet, "").error().code == errc::refused);
  CHECK(register_allocation("oracle", make_shortest_quiet, "").error().code == errc::refused);
  CHECK(register_allocation("empty", nullptr, "").error().code == errc::invalid_input);
  for (const char* name : {"", "Upper", "a-b", "9a", "a b", "abcdefghijklmnopqrstuvwxyz0123456"})
    CHECK(register_allocation(name, make_shortest_quiet, "").error().code == errc::invalid_input);

  CHECK(what_is_wrong("shortest_quite").find("'shortest_quiet'?") != std::string::npos);
  CHECK(what_is_wrong("shortest_quiet(a=1)").find("it has none") != std::string::npos);
  auto all = allocation_catalogue();
  CHECK(std::any_of(all.begin(), all.end(), [](const auto& rule) {
    return rule.name == "shortest_quiet" && rule.what == "stays where something moves";
  }));

  auto who = start_rule("shortest_quiet", 3);
  CHECK(who->name() == "shortest_quiet");
  CHECK(first(*who) == 0);
  give(*who, 0);
  give(*who, 1, 0.1);
  give(*who, 2);
  who->on_given(2);
  CHECK(first(*who) == 1);
  give(*who, 1);
  give(*who, 1);
  CHECK(
    to_string(who->pick(0ns)->why) == "shortest_quiet: score -1; 0 in flight, 1 attempts given");
  who->on_eligible(0, false);
  CHECK(first(*who) == 1);
  auto mixed = play(*start_rule("floor(0.5, shortest_quiet)", 3), 3, 60,
    [](problem_index p, int) { return p == 2 ? 0.1 : 0.0; });
  CHECK(mixed[2] >= 28);
  CHECK(mixed[0] >= 10);
}

TEST_CASE("where a rule of one's own names nobody, or somebody who cannot, equal share decides") {
  struct careless final : allocation {
    explicit careless(std::optional<problem_index> pick) : answer(pick) {}
    std::string_view name() const override { return "careless"; }
    void on_eligible(problem_index, bool) override {}
    void on_given(problem_index) override {}
    void on_finished(problem_index, const attempt_gain&) override {}
    void on_headroom(problem_index, double) override {}
    std::optional<allocation_pick> pick(std::chrono::nanoseconds) const override {
      return answer ? std::optional{allocation_pick{*answer, {}}} : std::nullopt;
    }
    std::optional<problem_index> answer;
  };
  auto add = [](const char* name, std::optional<problem_index> answer) {
    REQUIRE(register_allocation(
      name, [=](uint32_t, bool) { return std::make_unique<careless>(answer); }, "careless"));
  };
  add("nobody", std::nullopt);
  add("stranger", 77);
  add("always_one", 1);
  for (const char* text : {"nobody", "stranger"}) {
    auto who = start_rule(text, 2);
    CHECK(play(*who, 2, 10, no_gain) == std::vector{5, 5});
    CHECK(to_string(who->pick(0ns)->why)
      == std::string{text}
        + " named nobody who can use an attempt, equal share: 0 in flight, 5 attempts given");
    who->on_eligible(0, false);
    who->on_eligible(1, false);
    CHECK_FALSE(who->pick(0ns));
  }
  auto who = start_rule("always_one", 2);
  CHECK(first(*who) == 1);
  CHECK(who->pick(0ns)->why.rule == allocation_rule::own);
  who->on_eligible(1, false);
  CHECK(first(*who) == 0);
  CHECK(who->pick(0ns)->why.rule == allocation_rule::own_failed);
}
