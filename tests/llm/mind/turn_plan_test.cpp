#include "tests/llm/mind/mind_fixture.hpp"

#include <set>

using namespace gristmill;
using namespace gristmill::test;

TEST_CASE("a key tells the strategy of a trial, whoever proposed it") {
  CHECK(model_key("split-k", "0123456789abcdef0123") == "llm/split-k/0123456789abcdef");
  CHECK(strategy_of("llm/split-k/0123") == "split-k");
  CHECK(strategy_of(model_key("", "abc")).empty());
  CHECK(strategy_of("plain/1") == "plain");
  CHECK(strategy_of("").empty());
}

TEST_CASE_FIXTURE(mind_fixture, "workers of one problem get different cards") {
  std::set<std::string> cards;
  for (uint32_t ordinal = 1; ordinal <= 3; ++ordinal) {
    work.id.ordinal = ordinal;
    own_work own;
    own.cards_refused = {"free"}; // So that no choice is left free.
    cards.insert(plan_turn(*program, work, own).card);
  }
  CHECK(cards.size() == 3);
}

TEST_CASE_FIXTURE(mind_fixture, "a plan depends on nothing but its arguments") {
  tried("loads", verdict_status::passed, 1000, kernel_source(1));
  tried("split", verdict_status::passed, 1100, kernel_source(2));
  for (uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    work.seed = seed;
    auto a = plan_turn(*program, work, {});
    auto b = plan_turn(*program, work, {});
    CHECK(a.card == b.card);
    CHECK(a.parent == b.parent);
    CHECK(a.heat == b.heat);
  }
}

TEST_CASE_FIXTURE(
  mind_fixture, "the parent is the best, and now and then another way of doing it") {
  tried("loads", verdict_status::passed, 1000, kernel_source(1));
  tried("split", verdict_status::passed, 1100, kernel_source(2));
  tried("slow", verdict_status::passed, 5000, kernel_source(3));
  size_t best = 0;
  size_t other = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    work.seed = seed;
    auto plan = plan_turn(*program, work, {});
    REQUIRE(plan.parent);
    best += *plan.parent == 0;
    other += *plan.parent == 1;
  }
  CHECK(best > 100);
  CHECK(other > 20);
  CHECK_MESSAGE(best + other == 200, "five times slower is no parent");
}

TEST_CASE_FIXTURE(mind_fixture, "at a plateau a card that nobody has tried is asked for") {
  tried("loads", verdict_status::passed, 1000, kernel_source(0));
  for (int i = 1; i <= 5; ++i)
    tried(i % 2 == 0 ? "loads" : "shuffles", verdict_status::passed, 1000, kernel_source(i));
  auto plan = plan_turn(*program, work, {});
  CHECK(plan.plateau);
  CHECK(plan.card == "split");
  CHECK(plan.task.find("another idea") != std::string::npos);
}

TEST_CASE_FIXTURE(
  mind_fixture, "a cheat, a failure of ours and a failure that is taken up are not mended") {
  tried("loads", verdict_status::passed, 1000, kernel_source(0));
  SUBCASE("cheat") {
    tried("split", verdict_status::reward_hack, 0, kernel_source(1));
  }
  SUBCASE("ours") {
    tried("split", verdict_status::infrastructure, 0, kernel_source(1));
  }
  SUBCASE("taken up") {
    auto parent = tried("split", verdict_status::compile_error, 0, kernel_source(1)).candidate.hash;
    tried("split", verdict_status::passed, 1500, kernel_source(2), parent);
    own_work own;
    own.proposed = {parent};
    CHECK_FALSE(plan_turn(*program, work, own).repair);
  }
  CHECK_FALSE(plan_turn(*program, work, {}).repair);
}

TEST_CASE_FIXTURE(mind_fixture, "without any history there is no parent, and a task all the same") {
  auto plan = plan_turn(*program, work, {});
  CHECK_FALSE(plan.best);
  CHECK_FALSE(plan.parent);
  CHECK(plan.enough.empty());
}

TEST_CASE_FIXTURE(mind_fixture, "a program without cards leaves the choice free") {
  program->cards.clear();
  own_work own;
  own.cards_refused = {"free"};
  CHECK(plan_turn(*program, work, own).card.empty());
}

TEST_CASE_FIXTURE(
  mind_fixture, "after a refusal a failure is not shown again, but another card is") {
  tried("loads", verdict_status::passed, 1000, kernel_source(0));
  tried("split", verdict_status::compile_error, 0, kernel_source(1));
  CHECK(plan_turn(*program, work, {}).repair);
  own_work own;
  own.cards_refused = {"free"};
  auto plan = plan_turn(*program, work, own);
  CHECK_FALSE(plan.repair);
  CHECK_FALSE(plan.card.empty());
}
