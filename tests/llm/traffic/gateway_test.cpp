#include "tests/llm/traffic/gateway_driver.hpp"

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

TEST_SUITE_BEGIN("gateway");

TEST_CASE("a call is sent once and answered once, with its cost") {
  gateway_driver g(some_deployments(1));
  auto asker = g.ask(a_request(7));
  REQUIRE(g.open.size() == 1);
  CHECK(g.open[0].request.messages == a_request(7).messages);
  CHECK(g.run().reserved.nano_usd > 0);
  g.now = 3s;
  auto how = an_answer();
  how.first_event = 1s;
  how.reply.request_id = "req-1";
  g.finish(how);
  REQUIRE(g.answers.count(asker) == 1);
  const auto& reply = g.answers[asker];
  CHECK(reply.call == 7);
  CHECK(reply.text == "a kernel");
  CHECK(reply.finish == finish_kind::stop);
  CHECK(reply.cost_nano_usd == 10 * 1000 + 20 * 10'000);
  CHECK(reply.deployment == "a");
  CHECK(reply.model == "m-a");
  CHECK(reply.request_id == "req-1");
  CHECK(reply.tries == 1);
  CHECK(reply.first_event == 1s);
  CHECK(reply.took == 3s);
  CHECK(g.run().spent.nano_usd == reply.cost_nano_usd);
  CHECK(g.run().reserved == budget_amounts{});
  CHECK_FALSE(g.core.next_due(g.now));
  REQUIRE(g.ended.size() == 1);
  CHECK(g.ended[0].outcome == "stop");
  CHECK(g.ended[0].spent.calls == 1);
}

TEST_CASE("a refusal of the model is an answer and is paid") {
  gateway_driver g(some_deployments(1));
  for (auto kind : {finish_kind::refusal, finish_kind::content_filter}) {
    auto asker = g.ask(a_request(static_cast<uint64_t>(kind)));
    g.finish(an_answer("no", kind));
    CHECK(g.answers.at(asker).finish == kind);
  }
  CHECK(g.run().spent.calls == 2);
  CHECK(g.sends == 2);
}

TEST_CASE("no more calls are under way than the deployment takes, and the others follow in order") {
  auto config = some_deployments(1);
  config.models.deployments[0].in_flight_max = 2;
  gateway_driver g(config);
  for (uint64_t i = 0; i < 5; ++i)
    g.ask(a_request(i, "w" + std::to_string(i)));
  REQUIRE(g.open.size() == 2);
  CHECK(g.core.snapshot(g.now).waiting == 3);
  std::vector<uint64_t> order;
  while (!g.open.empty()) {
    REQUIRE(g.open.size() <= 2);
    order.push_back(g.open[0].request.call);
    g.finish(an_answer());
  }
  CHECK(order == std::vector<uint64_t>{0, 1, 2, 3, 4});
}

TEST_CASE("problems take turns: one with many calls does not keep out one with few") {
  auto config = some_deployments(1);
  config.models.deployments[0].in_flight_max = 1;
  gateway_driver g(config);
  uint64_t call = 0;
  for (int i = 0; i < 6; ++i)
    g.ask(a_request(call++, "many-" + std::to_string(i), "big"));
  for (int i = 0; i < 2; ++i)
    g.ask(a_request(call++, "few-" + std::to_string(i), "small"));
  std::string order;
  while (!g.open.empty()) {
    order += g.open[0].request.problem == "big" ? 'b' : 's';
    g.finish(an_answer());
  }
  CHECK(order == "bsbsbbbb");
}

TEST_CASE("calls of one agent are sent in the order of asking, also when the first must wait") {
  gateway_driver g(some_deployments(1));
  g.ask(a_request(1));
  g.finish(a_failure(trouble_kind::transient));
  CHECK(g.open.empty());
  g.ask(a_request(2));
  CHECK(g.open.empty());
  g.ask(a_request(1, "other"));
  CHECK(g.open.size() == 1);
  g.open.clear();
  g.advance_to_send();
  CHECK(g.open[0].request.call == 1);
}

TEST_CASE("a bounded queue: the call too many is refused at once") {
  auto config = some_deployments(1);
  config.models.deployments[0].in_flight_max = 1;
  config.policy.waiting_max = 2;
  gateway_driver g(config);
  for (uint64_t i = 0; i < 3; ++i)
    g.ask(a_request(i, "w" + std::to_string(i)));
  auto asker = g.ask(a_request(9, "w9"));
  CHECK(g.refusals.at(asker).code == errc::queue_full);
  g.finish(an_answer());
  CHECK(g.refusals.count(g.ask(a_request(10, "w10"))) == 0);
}

TEST_CASE("what no deployment can take is refused with the reason") {
  gateway_driver g(some_deployments(2));
  auto asker = g.ask(a_request(1, "w0", "softmax", 9000));
  CHECK(g.refusals.at(asker).code == errc::invalid_input);
  CHECK(g.refusals.at(asker).what.find("output_tokens_max is 8000") != std::string::npos);
  asker = g.ask(a_request(2, "w0", "softmax", 0));
  CHECK(g.refusals.at(asker).code == errc::invalid_input);
  g.ask(a_request(3));
  asker = g.ask(a_request(3));
  CHECK(g.refusals.at(asker).what.find("call 3 open already") != std::string::npos);
}

TEST_CASE("a cancelled call is answered at once; what was sent is ended and its money held") {
  auto config = some_deployments(1);
  config.models.deployments[0].in_flight_max = 1;
  gateway_driver g(config);
  auto sent = g.ask(a_request(1, "w0"));
  auto waits = g.ask(a_request(2, "w1"));
  g.cancel("w1", 2);
  CHECK(g.refusals.at(waits).code == errc::shutting_down);
  CHECK(g.core.snapshot(g.now).waiting == 0);
  g.cancel("w0", 1);
  CHECK(g.refusals.at(sent).code == errc::shutting_down);
  REQUIRE(g.cancelled.size() == 1);
  CHECK(g.run().reserved.nano_usd > 0);
  g.cancel("w0", 1);
  g.cancel("nobody", 1);
  CHECK(g.cancelled.size() == 1);
  auto reserved = g.run().reserved.nano_usd;
  try_result how;
  how.cancelled = true;
  g.finish(how);
  CHECK(g.run().held.nano_usd == reserved);
  CHECK(g.run().spent.calls == 1);
  CHECK(g.ended.back().outcome == "cancelled");
  // The same call number may be used again now.
  CHECK(g.refusals.count(g.ask(a_request(1, "w0"))) == 0);
}

TEST_CASE("an answer that was faster than its cancellation is paid exactly") {
  gateway_driver g(some_deployments(1));
  g.ask(a_request(1));
  g.cancel("w0", 1);
  g.finish(an_answer());
  CHECK(g.run().held == budget_amounts{});
  CHECK(g.run().spent.nano_usd == 210'000);
  CHECK(g.answers.empty());
}

TEST_CASE("a call that gets no turn within its patience is refused with what it waited for") {
  auto config = some_deployments(1);
  config.models.deployments[0].in_flight_max = 1;
  config.policy.patience = 60s;
  gateway_driver g(config);
  g.ask(a_request(1, "w0"));
  auto waits = g.ask(a_request(2, "w1"));
  g.advance(59s);
  CHECK(g.refusals.count(waits) == 0);
  g.advance(1s);
  CHECK(g.refusals.at(waits).code == errc::timed_out);
  CHECK(g.refusals.at(waits).what.find("60 s") != std::string::npos);
}

TEST_CASE("a try that the transport forgets is given up and held") {
  auto config = some_deployments(1);
  config.models.deployments[0].deadlines.wall = 100s;
  config.policy.ambiguous_retries_max = 0;
  gateway_driver g(config);
  auto asker = g.ask(a_request(1));
  g.advance(129s);
  CHECK(g.refusals.empty());
  g.advance(2s);
  CHECK(g.refusals.at(asker).code == errc::timed_out);
  CHECK(g.cancelled.size() == 1);
  CHECK(g.run().held.nano_usd > 0);
  // What comes after that changes nothing.
  auto before = g.run();
  g.finish(an_answer());
  CHECK(g.run() == before);
  // Without a wall deadline there is one all the same.
  config.models.deployments[0].deadlines.wall = 0s;
  gateway_driver endless(config);
  asker = endless.ask(a_request(1));
  endless.advance(2h);
  CHECK(endless.refusals.at(asker).code == errc::timed_out);
}

TEST_CASE("requests a minute are spread over the minute") {
  auto config = some_deployments(1);
  config.models.deployments[0].requests_per_minute = 2;
  config.models.deployments[0].in_flight_max = 100;
  gateway_driver g(config);
  for (uint64_t i = 0; i < 4; ++i)
    g.ask(a_request(i, "w" + std::to_string(i)));
  CHECK(g.sends == 2);
  g.advance(29s);
  CHECK(g.sends == 2);
  g.advance(2s);
  CHECK(g.sends == 3);
  g.advance(30s);
  CHECK(g.sends == 4);
}

TEST_CASE("output tokens are taken by the cap when sending and given back when settled") {
  auto config = some_deployments(1);
  config.models.deployments[0].output_tokens_per_minute = 1500;
  gateway_driver g(config);
  g.ask(a_request(1, "w0"));
  g.ask(a_request(2, "w1"));
  CHECK(g.sends == 1);
  g.finish(an_answer("ok", finish_kind::stop, 10, 100));
  CHECK(g.sends == 2);
}

TEST_CASE("roles have deployments of their own") {
  auto config = some_deployments(2);
  config.models.roles["propose"] = {0};
  config.models.roles["reflect"] = {1};
  gateway_driver g(config);
  auto reflect = a_request(1);
  reflect.purpose = "reflect";
  g.ask(reflect);
  CHECK(g.open[0].deployment == 1);
  auto repair = a_request(2, "w1");
  repair.purpose = "repair";
  g.ask(repair);
  CHECK(g.open[1].deployment == 0);
}

TEST_CASE("two cores with one seed do the same, and another seed waits differently") {
  auto waits = [](uint64_t seed) {
    auto config = some_deployments(1);
    config.seed = seed;
    gateway_driver g(config);
    std::vector<std::chrono::nanoseconds> out;
    g.ask(a_request(1));
    for (int i = 0; i < 3; ++i) {
      g.finish(a_failure(trouble_kind::transient));
      out.push_back(g.advance_to_send());
    }
    return out;
  };
  CHECK(waits(5) == waits(5));
  CHECK(waits(5) != waits(6));
}

TEST_CASE("at the end everybody is answered, what was sent is held and what was not is free") {
  auto config = some_deployments(1);
  config.models.deployments[0].in_flight_max = 2;
  gateway_driver g(config);
  std::vector<uint64_t> askers;
  for (uint64_t i = 0; i < 4; ++i)
    askers.push_back(g.ask(a_request(i, "w" + std::to_string(i))));
  REQUIRE(g.open.size() == 2);
  auto one = g.open[0].record.reserved.nano_usd;
  g.take(g.core.on_shutdown({g.open[1].record.id}, g.now));
  for (auto asker : askers)
    CHECK(g.refusals.at(asker).code == errc::shutting_down);
  CHECK(g.sends == 2);
  CHECK(g.run().held.nano_usd == one);
  CHECK(g.run().spent.calls == 1);
  CHECK(g.run().reserved == budget_amounts{});
  CHECK(g.ended.size() == 2);
  CHECK(g.refusals.at(g.ask(a_request(9))).code == errc::provider_refused);
}

TEST_SUITE_END();
