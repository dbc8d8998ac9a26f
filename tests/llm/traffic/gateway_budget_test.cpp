#include "tests/llm/traffic/gateway_driver.hpp"

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

/// The worst case of `a_request` in 10^-9 USD: 22 bytes and 80 for the marks, 1000 tokens out.
constexpr uint64_t worst_nano_usd = 102 * 1250 + 1000 * 10'000;

gateway_config with_money(uint64_t nano_usd) {
  auto out = some_deployments(1);
  out.limits.run.nano_usd = nano_usd;
  return out;
}

} // namespace

TEST_SUITE_BEGIN("gateway budgets");

TEST_CASE("the reservation is the worst case of this call") {
  gateway_driver g(some_deployments(1));
  g.ask(a_request(1));
  CHECK(g.run().reserved.nano_usd == worst_nano_usd);
  CHECK(g.run().reserved.tokens == 1102);
  CHECK(g.run().reserved.calls == 1);
}

TEST_CASE("a call whose worst case does not fit is refused before it is sent, naming the budget") {
  gateway_driver g(with_money(worst_nano_usd - 1));
  auto asker = g.ask(a_request(1));
  CHECK(g.sends == 0);
  CHECK(g.refusals.at(asker).code == errc::budget_exhausted);
  CHECK(g.refusals.at(asker).what.find("the budget of the run is 0.010127499 USD")
    != std::string::npos);
  CHECK(g.refusals.at(asker).what.find("0.000000001 USD are missing") != std::string::npos);
  REQUIRE(g.stops.size() == 1);
  CHECK(g.stops[0].code == errc::budget_exhausted);
  g.ask(a_request(2));
  CHECK(g.stops.size() == 1);
  gateway_driver enough(with_money(worst_nano_usd));
  enough.ask(a_request(1));
  CHECK(enough.sends == 1);
}

TEST_CASE("the budgets of a problem and of an agent stop only them") {
  auto config = some_deployments(1);
  config.limits.each_problem.calls = 2;
  config.limits.each_agent.calls = 3;
  gateway_driver g(config);
  uint64_t call = 0;
  auto run = [&](const char* agent, const char* problem) -> std::string {
    auto asker = g.ask(a_request(call++, agent, problem));
    if (!g.open.empty())
      g.finish(an_answer());
    return g.refusals.count(asker) != 0 ? g.refusals[asker].what : "";
  };
  CHECK(run("w0", "a") == "");
  CHECK(run("w0", "a") == "");
  CHECK(run("w1", "a").find("problem 'a'") != std::string::npos);
  CHECK(run("w0", "b") == "");
  CHECK(run("w0", "b").find("agent 'w0'") != std::string::npos);
  CHECK(run("w1", "b") == "");
  CHECK(g.stops.empty());
}

// mini-swe-agent#914: replies that could not be parsed were billed and not counted.
TEST_CASE("mini-swe-agent#914: a call that comes to nothing is counted, and the budget trips") {
  auto config = some_deployments(1);
  config.limits.run.nano_usd = 20 * worst_nano_usd;
  config.policy.retries_at_start = 1000;
  gateway_driver g(config);
  uint64_t call = 0;
  while (g.stops.empty()) {
    g.ask(a_request(call++));
    // Full price, and nothing in it that anybody can use.
    while (g.done.size() < call) {
      while (!g.open.empty())
        g.finish(an_answer("  ", finish_kind::stop, 102, 1000));
      g.advance(30s);
    }
    REQUIRE(call < 100);
  }
  CHECK(g.sends == 20);
  CHECK(g.run().spent.nano_usd == 20 * (102 * 1000 + 1000 * 10'000));
  CHECK(g.run().spent.calls == 20);
}

// litellm#36926 and #30460: false "budget exceeded" under load.
TEST_CASE(
  "litellm#36926: under load calls wait for money that is only reserved, and none is lost") {
  auto config = with_money(10 * worst_nano_usd);
  config.models.deployments[0].in_flight_max = 100;
  gateway_driver g(config);
  for (uint64_t i = 0; i < 100; ++i)
    g.ask(a_request(i, "w" + std::to_string(i)));
  CHECK(g.open.size() == 10);
  CHECK(g.refusals.empty());
  while (!g.open.empty()) {
    REQUIRE(g.run().spent.nano_usd + g.run().reserved.nano_usd <= 10 * worst_nano_usd);
    g.finish(an_answer("ok", finish_kind::stop, 10, 5));
  }
  CHECK(g.answers.size() == 100);
  CHECK(g.run().spent.nano_usd == 100 * (10'000 + 50'000));
}

// openclaw#120008, posthog-js#4664: an interrupted call was counted with zero tokens.
TEST_CASE("openclaw#120008: interrupted is not zero") {
  gateway_driver g(some_deployments(1));
  g.ask(a_request(1));
  g.cancel("w0", 1);
  try_result how;
  how.cancelled = true;
  g.finish(how);
  CHECK(g.run().held.nano_usd == worst_nano_usd);
  CHECK(g.run().held.tokens == 1102);
  CHECK(g.ended.back().usage.state == usage_state::unknown);
}

TEST_CASE("an estimate is not trusted to be small: the larger of it and the worst case is held") {
  gateway_driver g(some_deployments(1));
  g.ask(a_request(1));
  auto how = a_failure(trouble_kind::ambiguous);
  how.reply.usage = {usage_state::estimated, 5, 0, 0, 5, 0};
  g.finish(how);
  CHECK(g.run().held.nano_usd == worst_nano_usd);
  gateway_driver large(some_deployments(1));
  large.ask(a_request(1));
  how.reply.usage = {usage_state::estimated, 5, 0, 0, 5000, 0};
  large.finish(how);
  CHECK(large.run().held.nano_usd == 5 * 1000 + 5000 * 10'000);
}

TEST_CASE("a bill above the worst case is counted in full") {
  gateway_driver g(with_money(worst_nano_usd));
  g.ask(a_request(1));
  g.finish(an_answer("ok", finish_kind::stop, 10, 5000));
  CHECK(g.run().spent.nano_usd == 10 * 1000 + 5000 * 10'000);
  CHECK(g.refusals.at(g.ask(a_request(2))).code == errc::budget_exhausted);
}

TEST_CASE("what was refused before any work costs a call and no money") {
  gateway_driver g(some_deployments(1));
  g.ask(a_request(1));
  g.finish(a_failure(trouble_kind::transient));
  CHECK(g.run().spent.nano_usd == 0);
  CHECK(g.run().spent.calls == 1);
  CHECK(g.run().held == budget_amounts{});
}

TEST_CASE("a try that never left costs nothing, not even a call") {
  gateway_driver g(some_deployments(1));
  g.ask(a_request(1));
  auto how = a_failure(trouble_kind::overload, "no such host");
  how.sent = false;
  g.finish(how);
  CHECK(g.run() == budget_account{});
}

TEST_CASE("local tokens are counted and cost nothing; a token budget holds them") {
  auto config = some_deployments(1);
  config.models.prices.clear();
  config.models.deployments[0].loopback = true;
  config.limits.run.tokens = 1500;
  gateway_driver g(config);
  auto asker = g.ask(a_request(1));
  g.finish(an_answer("ok", finish_kind::stop, 100, 400));
  CHECK(g.answers.at(asker).cost_nano_usd == 0);
  CHECK(g.run().spent.tokens == 500);
  CHECK(g.refusals.at(g.ask(a_request(2))).what.find("1500 tokens") != std::string::npos);
}

TEST_CASE("a model without a price is refused before the run, unless it is allowed") {
  auto config = some_deployments(1);
  config.models.prices.clear();
  CHECK(gateway_core::make(config).error().code == errc::invalid_input);
  config.allow_unpriced = true;
  gateway_driver g(config);
  g.ask(a_request(1));
  CHECK(g.open[0].record.origin == price_origin::unpriced);
}

TEST_CASE("nothing is paid for twice: what a log says was spent counts on") {
  auto config = with_money(2 * worst_nano_usd);
  spending before;
  before.problem = "softmax";
  before.agent = "w0";
  before.last_try = 40;
  before.spent.nano_usd = worst_nano_usd / 2;
  before.spent.calls = 3;
  before.held.nano_usd = worst_nano_usd / 2;
  config.spent_before = {before};
  gateway_driver g(config);
  CHECK(g.core.snapshot(g.now).spent_nano_usd == worst_nano_usd / 2);
  g.ask(a_request(1));
  REQUIRE(g.open.size() == 1);
  CHECK(g.open[0].record.id == 41);
  g.finish(an_answer("ok", finish_kind::stop, 102, 1000));
  CHECK(g.refusals.at(g.ask(a_request(2))).code == errc::budget_exhausted);
  CHECK(g.core.book().agent("w0").spent.calls == 4);
}

TEST_CASE("the snapshot says what is spent, held and unknown") {
  gateway_driver g(some_deployments(1));
  g.ask(a_request(1));
  g.finish(an_answer());
  g.ask(a_request(2, "w1"));
  g.cancel("w1", 2);
  try_result how;
  how.cancelled = true;
  g.finish(how);
  g.ask(a_request(3, "w2"));
  auto s = g.core.snapshot(g.now);
  CHECK(s.calls == 2);
  CHECK(s.calls_unknown == 1);
  CHECK(s.usage.input() == 10);
  CHECK(s.usage.output() == 20);
  CHECK(s.spent_nano_usd == 210'000);
  CHECK(s.reserved_nano_usd == 2 * worst_nano_usd);
  REQUIRE(s.deployments.size() == 1);
  CHECK(s.deployments[0].in_flight == 1);
  CHECK(s.deployments[0].calls == 3);
  CHECK(s.closed.empty());
}

TEST_SUITE_END();
