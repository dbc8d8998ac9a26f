#include "tests/llm/traffic/gateway_driver.hpp"

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

TEST_SUITE_BEGIN("gateway failures");

// OpenEvolve: retries of the SDK inside retries of its own made 16 tries of one call.
TEST_CASE("OpenEvolve's nested retries: there is one retry loop, and it ends") {
  gateway_driver g(some_deployments(1));
  auto asker = g.ask(a_request(1));
  while (g.refusals.empty()) {
    g.advance_to_send();
    REQUIRE(g.open.size() == 1);
    g.finish(a_failure(trouble_kind::transient));
  }
  CHECK(g.sends == 1 + gateway_policy{}.retries_max);
  CHECK(g.refusals.at(asker).code == errc::io_failed);
  CHECK(g.refusals.at(asker).what == "given up after 5 tries: it broke");
  CHECK_FALSE(g.core.next_due(g.now));
}

// litellm#7669: the router ignored retry_after.
TEST_CASE(
  "litellm#7669: what the server says about waiting holds for everybody, not just the call") {
  gateway_driver g(some_deployments(1));
  g.ask(a_request(1, "w0"));
  g.ask(a_request(2, "w1"));
  g.finish(a_failure(trouble_kind::throttle, "slow down", 40s));
  g.finish(an_answer());
  g.ask(a_request(3, "w2"));
  CHECK(g.open.empty());
  CHECK(g.core.snapshot(g.now).deployments[0].paused == "paused by the server for 40 s more");
  g.advance(39s);
  CHECK(g.open.empty());
  g.advance(2s);
  REQUIRE_FALSE(g.open.empty());
  CHECK(g.open[0].request.call == 3);
  CHECK(g.open[0].at >= 40s);
}

TEST_CASE("being throttled costs no retry, halves the window once and ends with patience") {
  auto config = some_deployments(1);
  config.policy.patience = 10min;
  gateway_driver g(config);
  for (uint64_t i = 0; i < 8; ++i)
    g.ask(a_request(i, "w" + std::to_string(i)));
  REQUIRE(g.open.size() == 8);
  while (!g.open.empty())
    g.finish(a_failure(trouble_kind::throttle, "slow down", 5s));
  CHECK(g.core.snapshot(g.now).deployments[0].in_flight_max == 4);
  int rounds = 0;
  while (g.refusals.size() < 8) {
    g.advance(5s);
    REQUIRE(g.open.size() <= 4);
    while (!g.open.empty())
      g.finish(a_failure(trouble_kind::throttle, "slow down", 5s));
    REQUIRE(++rounds < 1000);
  }
  for (const auto& [asker, why] : g.refusals)
    CHECK(why.code == errc::timed_out);
  CHECK(g.now >= 10min);
  CHECK(g.run().spent.nano_usd == 0);
  CHECK(g.run().held == budget_amounts{});
}

TEST_CASE("a pause of hours closes the deployment instead of the run waiting for it") {
  gateway_driver g(some_deployments(2));
  auto asker = g.ask(a_request(1));
  g.finish(a_failure(trouble_kind::throttle, "per day", 10h));
  REQUIRE(g.open.size() == 1);
  CHECK(g.open[0].deployment == 1);
  g.finish(an_answer());
  CHECK(g.answers.at(asker).deployment == "b");
  CHECK(g.core.snapshot(g.now).deployments[0].paused == "asks for a pause of 36000 s: per day");
}

TEST_CASE("an overloaded server is left at once for the next one, and looked at again later") {
  gateway_driver g(some_deployments(2));
  auto asker = g.ask(a_request(1));
  CHECK(g.open[0].deployment == 0);
  g.finish(a_failure(trouble_kind::overload));
  REQUIRE(g.open.size() == 1);
  CHECK(g.open[0].deployment == 1);
  g.finish(an_answer());
  CHECK(g.answers.at(asker).tries == 2);
  // One failure does not open the breaker: the next call goes to the first again.
  g.ask(a_request(2));
  CHECK(g.open[0].deployment == 0);
}

TEST_CASE("a server that fails in a row gets one call at a time until it works again") {
  auto config = some_deployments(1);
  config.policy.retries_max = 0;
  config.models.deployments[0].in_flight_max = 50;
  gateway_driver g(config);
  for (uint64_t i = 0; i < 5; ++i) {
    g.ask(a_request(i));
    g.finish(a_failure(trouble_kind::transient));
  }
  CHECK(g.notes.back().find("stops for a while") != std::string::npos);
  for (uint64_t i = 10; i < 20; ++i)
    g.ask(a_request(i, "w" + std::to_string(i)));
  CHECK(g.open.empty());
  CHECK(g.advance_to_send() == 5s);
  CHECK(g.open.size() == 1);
  g.finish(a_failure(trouble_kind::transient));
  CHECK(g.open.empty());
  CHECK(g.advance_to_send() == 10s);
  REQUIRE(g.open.size() == 1);
  g.finish(an_answer());
  CHECK(g.open.size() > 1);
}

TEST_CASE(
  "while the first deployment is broken calls go to the second without a try at the first") {
  gateway_driver g(some_deployments(2));
  for (uint64_t i = 0; i < 5; ++i) {
    g.ask(a_request(i));
    CHECK(g.open[0].deployment == 0);
    g.finish(a_failure(trouble_kind::overload));
    g.finish(an_answer());
  }
  g.ask(a_request(9));
  CHECK(g.open[0].deployment == 1);
}

TEST_CASE("an outage does not multiply the load: one call in ten is tried again") {
  auto config = some_deployments(1);
  config.policy.retries_at_start = 10;
  config.policy.patience = 24h;
  gateway_driver g(config);
  uint64_t calls = 0;
  for (; calls < 1000; ++calls) {
    g.ask(a_request(calls, "w" + std::to_string(calls)));
    for (int turn = 0; turn < 50 && g.done.size() <= calls; ++turn) {
      g.advance(30s);
      while (!g.open.empty())
        g.finish(a_failure(trouble_kind::transient));
    }
  }
  CHECK(g.done.size() == calls);
  CHECK(g.sends <= calls + calls / 10 + 10);
  CHECK(g.sends > calls);
  CHECK(std::any_of(g.refusals.begin(), g.refusals.end(),
    [](const auto& r) { return r.second.what.find("retries are used up") != std::string::npos; }));
}

TEST_CASE("no money closes a deployment for the run, and the run when none is left") {
  gateway_driver g(some_deployments(2));
  auto asker = g.ask(a_request(1));
  g.finish(a_failure(trouble_kind::money, "insufficient_quota"));
  REQUIRE(g.open.size() == 1);
  CHECK(g.open[0].deployment == 1);
  CHECK(g.stops.empty());
  g.finish(a_failure(trouble_kind::money, "insufficient_quota"));
  CHECK(g.refusals.at(asker).code == errc::provider_refused);
  CHECK(g.refusals.at(asker).what.find("insufficient_quota") != std::string::npos);
  REQUIRE(g.stops.size() == 1);
  CHECK(g.stops[0].code == errc::provider_refused);
  CHECK_FALSE(g.core.closed().empty());
  CHECK(g.refusals.at(g.ask(a_request(2))).code == errc::provider_refused);
  CHECK(g.sends == 2);
}

TEST_CASE("when a deployment closes, whoever waits for it alone is told at once") {
  auto config = some_deployments(1);
  config.models.deployments[0].in_flight_max = 1;
  gateway_driver g(config);
  g.ask(a_request(1, "w0"));
  auto waits = g.ask(a_request(2, "w1"));
  auto key = a_failure(trouble_kind::config, "the key of MY_KEY is refused");
  key.status = 401;
  g.finish(key);
  CHECK(g.refusals.at(waits).code == errc::provider_refused);
  CHECK(g.refusals.at(waits).what.find("MY_KEY") != std::string::npos);
  CHECK(g.core.snapshot(g.now).closed.find("'propose'") != std::string::npos);
}

TEST_CASE("one malformed call fails alone; three in a row close the deployment") {
  gateway_driver g(some_deployments(1));
  auto bad = a_failure(trouble_kind::config, "bad field");
  bad.status = 400;
  for (uint64_t i = 0; i < 2; ++i) {
    auto asker = g.ask(a_request(i));
    g.finish(bad);
    CHECK(g.refusals.at(asker).code == errc::invalid_input);
  }
  CHECK(g.core.closed().empty());
  g.ask(a_request(5));
  g.finish(an_answer());
  for (uint64_t i = 10; i < 13; ++i) {
    CHECK(g.core.closed().empty());
    g.ask(a_request(i));
    g.finish(bad);
  }
  CHECK_FALSE(g.core.closed().empty());
}

TEST_CASE("what cannot be put into words for a server was not sent and costs nothing") {
  gateway_driver g(some_deployments(1));
  auto asker = g.ask(a_request(1));
  auto how = a_failure(trouble_kind::config, "the extra body is no object");
  how.sent = false;
  g.finish(how);
  CHECK(g.refusals.at(asker).code == errc::invalid_input);
  CHECK(g.run() == budget_account{});
  CHECK(g.ended.back().outcome == "not sent");
  CHECK(g.core.closed().empty());
}

TEST_CASE("a prompt that is too large is an answer, not an error and not a reason to try again") {
  gateway_driver g(some_deployments(2));
  auto asker = g.ask(a_request(1));
  g.finish(a_failure(trouble_kind::too_big, "16384 tokens do not fit"));
  CHECK(g.answers.at(asker).finish == finish_kind::context_exceeded);
  CHECK(g.sends == 1);
  CHECK(g.run().spent.nano_usd == 0);
}

TEST_CASE(
  "a prompt that is too large goes to a deployment with a larger context where there is one") {
  auto config = some_deployments(3);
  config.models.deployments[0].context_tokens = 8'000;
  config.models.deployments[1].context_tokens = 8'000;
  config.models.deployments[2].context_tokens = 200'000;
  gateway_driver g(config);
  auto asker = g.ask(a_request(1));
  g.finish(a_failure(trouble_kind::too_big));
  REQUIRE(g.open.size() == 1);
  CHECK(g.open[0].deployment == 2);
  g.finish(an_answer());
  CHECK(g.answers.at(asker).deployment == "c");
}

// sm64ds-decomp#1199: complaining about the form of cut-off answers burnt 130,169 tokens.
TEST_CASE(
  "sm64ds-decomp#1199: a cut-off answer is asked for again by the same prompt, cap doubled") {
  gateway_driver g(some_deployments(1));
  auto asker = g.ask(a_request(1));
  auto prompt = g.open[0].request.messages;
  std::vector<uint32_t> caps;
  while (!g.open.empty()) {
    auto cap = g.open[0].request.output_tokens_max;
    caps.push_back(cap);
    CHECK(g.open[0].request.messages == prompt);
    g.finish(an_answer("half a ker", finish_kind::length, 10, cap));
  }
  CHECK(caps == std::vector<uint32_t>{1000, 2000, 4000, 8000});
  // The largest cap was not enough: that is what the asker is told.
  CHECK(g.answers.at(asker).finish == finish_kind::length);
  CHECK(g.answers.at(asker).tries == 4);
  CHECK(g.answers.at(asker).cost_nano_usd == 4 * 10'000u + 15'000 * 10'000ull);
  CHECK(g.run().spent.nano_usd == g.answers.at(asker).cost_nano_usd);
}

// async-openai#424: the cap was used up by hidden reasoning, and the answer was empty.
TEST_CASE("async-openai#424: an empty answer at the cap is cut off, not empty") {
  gateway_driver g(some_deployments(1));
  auto asker = g.ask(a_request(1, "w0", "softmax", 400));
  auto how = an_answer("", finish_kind::length, 10, 0);
  how.reply.usage.reasoning = 400;
  g.finish(how);
  REQUIRE(g.open.size() == 1);
  CHECK(g.open[0].request.output_tokens_max == 800);
  g.finish(an_answer());
  CHECK(g.answers.at(asker).finish == finish_kind::stop);
}

// hermes-agent#43900: prompt and answer together were capped at 4096 without a word.
TEST_CASE(
  "hermes-agent#43900: an answer cut off well below its cap ran out of context, not of cap") {
  gateway_driver g(some_deployments(1));
  auto asker = g.ask(a_request(1, "w0", "softmax", 4000));
  g.finish(an_answer("half", finish_kind::length, 3000, 1096));
  CHECK(g.answers.at(asker).finish == finish_kind::context_exceeded);
  CHECK(g.sends == 1);
}

TEST_CASE("when there is no budget for a larger cap the cut-off answer is given, as it was paid") {
  auto config = some_deployments(1);
  config.limits.run.calls = 1;
  gateway_driver g(config);
  auto asker = g.ask(a_request(1));
  g.finish(an_answer("half", finish_kind::length, 10, 1000));
  CHECK(g.answers.at(asker).finish == finish_kind::length);
  CHECK(g.answers.at(asker).text == "half");
}

// vllm#57082: an aborted engine ended its stream with 200 and an unknown reason.
TEST_CASE("vllm#57082: a reason for stopping that nobody knows is a failure") {
  gateway_driver g(some_deployments(1));
  g.ask(a_request(1));
  g.finish(an_answer("half", finish_kind::unknown));
  CHECK(g.answers.empty());
  g.advance_to_send();
  CHECK(g.sends == 2);
  CHECK(g.run().spent.nano_usd == 210'000); // Its usage was known, so it is paid exactly.
}

// lmstudio-bug-tracker#2339: 200 and not one word.
TEST_CASE("lmstudio-bug-tracker#2339: an empty answer is a failure, tried again twice at most") {
  gateway_driver g(some_deployments(1));
  auto asker = g.ask(a_request(1));
  for (int i = 0; i < 3; ++i) {
    g.advance_to_send();
    g.finish(an_answer(" \n", finish_kind::stop));
  }
  CHECK(g.refusals.at(asker).what.find("the answer is empty") != std::string::npos);
  CHECK(g.sends == 3);
}

TEST_CASE("what was perhaps billed is tried again twice at most, and each try is held") {
  gateway_driver g(some_deployments(1));
  auto asker = g.ask(a_request(1));
  auto one = g.open[0].record.reserved;
  for (int i = 0; i < 3; ++i) {
    g.advance_to_send();
    g.finish(a_failure(trouble_kind::ambiguous, "cut off"));
  }
  CHECK(g.refusals.at(asker).code == errc::io_failed);
  CHECK(g.sends == 3);
  CHECK(g.run().held.nano_usd == 3 * one.nano_usd);
  CHECK(g.run().spent.calls == 3);
  CHECK(g.core.snapshot(g.now).calls_unknown == 3);
}

TEST_CASE("a deadline of the transport is told as such") {
  gateway_driver g(some_deployments(1));
  auto asker = g.ask(a_request(1));
  for (int i = 0; i < 3; ++i) {
    g.advance_to_send();
    auto how = a_failure(trouble_kind::ambiguous, "no event for 60 s");
    how.timed_out = true;
    g.finish(how);
  }
  CHECK(g.refusals.at(asker).code == errc::timed_out);
}

TEST_SUITE_END();
