#include "actors/llm_gateway.hpp"
#include "actors/llm_history.hpp"
#include "tests/support/actor_fixture.hpp"

#include <nlohmann/json.hpp>

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

/// "text" adds to the text, "end" ends it with 10 tokens read and 20 written.
class toy_decoder final : public reply_decoder {
public:
  void take(const sse_event& event) override {
    if (event.name == "text")
      reply_.text += event.data;
    finished_ = finished_ || event.name == "end";
  }
  bool finished() const override { return finished_; }
  size_t text_bytes() const override { return reply_.text.size(); }
  decoded_reply result(uint32_t) override {
    auto out = reply_;
    if (!finished_) {
      out.failed = {trouble_kind::ambiguous, std::chrono::nanoseconds{0}, "no end"};
      return out;
    }
    out.finish = finish_kind::stop;
    out.usage = {usage_state::exact, 10, 0, 0, 20, 0};
    return out;
  }

private:
  decoded_reply reply_;
  bool finished_ = false;
};

class toy_dialect final : public dialect {
public:
  std::string_view name() const override { return "toy"; }
  result<http_call> encode(const llm_request& request, const dialect_options& how) const override {
    if (request.instructions == "unspeakable")
      return fail(errc::invalid_input, "cannot be put into words");
    if (how.extra_body == "broken")
      return fail(errc::invalid_input, "extra_body: is no object");
    http_call out;
    out.url = how.endpoint + "/toy";
    out.key_environment = how.key_environment;
    out.body = request.instructions;
    out.deadlines = how.deadlines;
    return out;
  }
  std::unique_ptr<reply_decoder> decoder() const override {
    return std::make_unique<toy_decoder>();
  }
  trouble judge_failure(const http_report& ended, std::chrono::sys_seconds now_utc) const override {
    asked_at = now_utc;
    if (ended.status == 401)
      return {trouble_kind::config, 0s, "the key of MY_KEY is refused"};
    return {trouble_kind::transient, 0s, "status " + std::to_string(ended.status)};
  }
  rate_limits limits_of(const http_headers&, std::chrono::sys_seconds) const override { return {}; }
  mutable std::chrono::sys_seconds asked_at{};
};

struct port_memory {
  std::vector<http_call> started;
  std::vector<uint64_t> cancelled;
  std::vector<uint64_t> finished;
  http_sink sink;
  bool alive = false;
};

class fake_port final : public http_port {
public:
  fake_port(std::shared_ptr<port_memory> memory, http_sink sink) : memory_(std::move(memory)) {
    memory_->sink = std::move(sink);
    memory_->alive = true;
  }
  ~fake_port() override {
    memory_->sink = nullptr;
    memory_->alive = false;
  }
  void start(http_call call) override { memory_->started.push_back(std::move(call)); }
  void cancel(uint64_t id) override { memory_->cancelled.push_back(id); }
  void finished(uint64_t id) override { memory_->finished.push_back(id); }

private:
  std::shared_ptr<port_memory> memory_;
};

struct one_gateway : actor_fixture {
  toy_dialect wire;
  std::shared_ptr<port_memory> port = std::make_shared<port_memory>();
  fake_journal log = make_fake_journal(*this);
  std::vector<failure> stops;
  llm_gateway_config config = settings();
  llm_gateway_actor gateway;

  llm_gateway_config settings() {
    llm_gateway_config out;
    model_deployment d;
    d.name = "toy";
    d.dialect = "toy";
    d.model = "toy-1";
    d.endpoint = "http://127.0.0.1:1/v1";
    d.loopback = true;
    d.key_env = "MY_KEY";
    d.output_tokens_max = 1000;
    out.core.models.deployments = {d};
    model_price price;
    price.model = "toy-1";
    price.as_of = std::chrono::year{2026} / 11 / 30;
    price.input = price.cached_read = price.cache_write = 1'000'000;
    price.output = 10'000'000;
    out.core.models.prices = {price};
    out.core.models.roles["propose"] = {0};
    out.core.seed = 1;
    out.make_port = [memory = port](http_sink sink) {
      return std::make_unique<fake_port>(memory, std::move(sink));
    };
    out.events = event_port(log.handle, start);
    out.utc = [] { return std::chrono::sys_seconds{std::chrono::seconds{1'796'000'000}}; };
    out.on_stop = [this](const failure& why) { stops.push_back(why); };
    out.find = [this](std::string_view) -> result<const dialect*> { return &wire; };
    return out;
  }

  void begin() {
    REQUIRE(check_gateway(config));
    gateway = spawn<llm_gateway>(config);
    settle();
  }
  ~one_gateway() { end_all(); }

  static llm_request request(uint64_t call, const std::string& agent = "w0") {
    llm_request out;
    out.call = call;
    out.agent = agent;
    out.problem = "softmax";
    out.purpose = "propose";
    out.instructions = "SECRET PROMPT";
    out.output_tokens_max = 100;
    return out;
  }

  void say(uint64_t id, std::vector<sse_event> events) {
    http_report out;
    out.id = id;
    out.status = 200;
    out.headers = {{"content-type", "text/event-stream"}};
    out.events = std::move(events);
    port->sink(std::move(out));
  }
  void close(uint64_t id, http_end how = http_end::complete, uint32_t status = 0) {
    http_report out;
    out.id = id;
    out.status = status;
    out.ended = true;
    out.how = how;
    port->sink(std::move(out));
  }
  nlohmann::json data_of(const std::string& kind) {
    return nlohmann::json::parse(log->last(kind).data);
  }
};

TEST_SUITE_BEGIN("llm gateway");

TEST_CASE_FIXTURE(one_gateway, "a call goes out through the port and its answer comes back") {
  begin();
  auto asked = ask<llm_reply>(gateway, request(1));
  REQUIRE(port->started.size() == 1);
  CHECK(port->started[0].url == "http://127.0.0.1:1/v1/toy");
  CHECK(port->started[0].key_environment == "MY_KEY");
  auto id = port->started[0].id;
  advance(2s);
  say(id, {{"text", "a ker"}});
  settle();
  CHECK_FALSE(answered(asked));
  CHECK(port->finished.empty());
  advance(1s);
  say(id, {{"text", "nel"}, {"end", ""}});
  settle();
  CHECK(port->finished == std::vector<uint64_t>{id});
  close(id);
  settle();
  auto reply = answer(asked);
  REQUIRE(reply);
  CHECK(reply->text == "a kernel");
  CHECK(reply->call == 1);
  CHECK(reply->first_event == 2s);
  CHECK(reply->took == 3s);
  CHECK(reply->cost_nano_usd == 10 * 1000 + 20 * 10'000);
}

TEST_CASE_FIXTURE(one_gateway, "nothing is sent before the log has it on the disk") {
  begin();
  log->withhold = true;
  auto asked = ask<llm_reply>(gateway, request(1));
  CHECK(port->started.empty());
  REQUIRE(log->count("llm_sent") == 1);
  CHECK(log->how.back() == durability::barrier);
  log->withhold = false;
  log->acknowledge();
  settle();
  CHECK(port->started.size() == 1);
}

TEST_CASE_FIXTURE(one_gateway, "every try is in the log with its money and without any text") {
  begin();
  auto asked = ask<llm_reply>(gateway, request(1));
  auto id = port->started[0].id;
  say(id, {{"text", "SECRET ANSWER"}, {"end", ""}});
  close(id);
  settle();
  REQUIRE(answered(asked));
  auto data = data_of("llm_call");
  CHECK(log->how.back() == durability::barrier);
  CHECK(log->last("llm_call").problem == "softmax");
  CHECK(data["agent"] == "w0");
  CHECK(data["purpose"] == "propose");
  CHECK(data["deployment"] == "toy");
  CHECK(data["model"] == "toy-1");
  CHECK(data["try"] == 1);
  CHECK(data["outcome"] == "stop");
  CHECK(data["usage"]["state"] == "exact");
  CHECK(data["spent"]["nano_usd"] == 210'000);
  CHECK(data["held"]["nano_usd"] == 0);
  CHECK(data["reserved"]["calls"] == 1);
  for (const auto& e : log->events)
    CHECK(e.data.find("SECRET") == std::string::npos);
}

TEST_CASE_FIXTURE(
  one_gateway, "a try that failed is tried again after its wait, and both are in the log") {
  begin();
  auto asked = ask<llm_reply>(gateway, request(1));
  close(port->started[0].id, http_end::complete, 503);
  settle();
  CHECK(wire.asked_at == config.utc());
  CHECK_FALSE(answered(asked));
  CHECK(port->started.size() == 1);
  advance(1s);
  REQUIRE(port->started.size() == 2);
  CHECK(port->started[1].id != port->started[0].id);
  say(port->started[1].id, {{"text", "ok"}, {"end", ""}});
  close(port->started[1].id);
  settle();
  CHECK(answer(asked)->tries == 2);
  CHECK(log->count("llm_sent") == 2);
  CHECK(log->count("llm_call") == 2);
}

TEST_CASE_FIXTURE(
  one_gateway, "reports that come faster than they are read are one wake-up and lose nothing") {
  begin();
  auto asked = ask<llm_reply>(gateway, request(1));
  auto id = port->started[0].id;
  std::string text;
  for (int i = 0; i < 1000; ++i) {
    say(id, {{"text", std::to_string(i)}});
    text += std::to_string(i);
  }
  say(id, {{"end", ""}});
  close(id);
  auto before = time.jobs_run();
  settle();
  CHECK(time.jobs_run() - before < 20);
  CHECK(answer(asked)->text == text);
}

TEST_CASE_FIXTURE(one_gateway, "a budget that does not hold the call is told and nothing is sent") {
  config.core.limits.run.nano_usd = 1000;
  begin();
  auto why = refusal(ask<llm_reply>(gateway, request(1)));
  CHECK(why.code == errc::budget_exhausted);
  CHECK(why.what.find("the budget of the run") != std::string::npos);
  CHECK(port->started.empty());
  CHECK(log->count("llm_sent") == 0);
  REQUIRE(stops.size() == 1);
  CHECK(stops[0].code == errc::budget_exhausted);
}

TEST_CASE_FIXTURE(one_gateway, "a refused key ends it for everybody, once") {
  begin();
  auto asked = ask<llm_reply>(gateway, request(1));
  close(port->started[0].id, http_end::complete, 401);
  settle();
  auto why = refusal(asked);
  CHECK(why.code == errc::provider_refused);
  CHECK(why.what.find("MY_KEY") != std::string::npos);
  REQUIRE(stops.size() == 1);
  CHECK(stops[0].code == errc::provider_refused);
  CHECK(refusal(ask<llm_reply>(gateway, request(2))).code == errc::provider_refused);
  CHECK(stops.size() == 1);
  CHECK(log->count("llm_note") >= 1);
}

TEST_CASE_FIXTURE(one_gateway, "a call that cannot be encoded is refused and costs nothing") {
  begin();
  auto odd = request(1);
  odd.instructions = "unspeakable";
  auto why = refusal(ask<llm_reply>(gateway, odd));
  CHECK(why.code == errc::invalid_input);
  CHECK(why.what.find("cannot be put into words") != std::string::npos);
  CHECK(port->started.empty());
  CHECK(data_of("llm_call")["outcome"] == "not sent");
  CHECK(data_of("llm_call")["spent"]["calls"] == 0);
}

TEST_CASE_FIXTURE(one_gateway, "a cancelled call is answered at once and its transfer is ended") {
  begin();
  auto asked = ask<llm_reply>(gateway, request(1));
  auto id = port->started[0].id;
  tell(gateway, llm_cancel{"w0", 1});
  CHECK(refusal(asked).code == errc::shutting_down);
  CHECK(port->cancelled == std::vector<uint64_t>{id});
  close(id, http_end::cancelled);
  settle();
  CHECK(data_of("llm_call")["outcome"] == "cancelled");
  CHECK(data_of("llm_call")["held"]["nano_usd"] > 0);
  // Stray reports harm nobody.
  close(id, http_end::complete);
  close(99, http_end::complete);
  settle();
  CHECK(alive(gateway));
}

TEST_CASE_FIXTURE(
  one_gateway, "a call cancelled while the log writes it is never sent and costs nothing") {
  begin();
  log->withhold = true;
  auto asked = ask<llm_reply>(gateway, request(1));
  tell(gateway, llm_cancel{"w0", 1});
  CHECK(refusal(asked).code == errc::shutting_down);
  log->withhold = false;
  log->acknowledge();
  settle();
  CHECK(port->started.empty());
  CHECK(port->cancelled.empty());
  CHECK(data_of("llm_call")["spent"]["calls"] == 0);
  CHECK(data_of("llm_call")["held"]["nano_usd"] == 0);
}

TEST_CASE_FIXTURE(one_gateway, "without a log nothing is sent") {
  begin();
  log->fails = failure{errc::io_failed, "disk full"};
  auto asked = ask<llm_reply>(gateway, request(1));
  CHECK(refusal(asked).code == errc::shutting_down);
  std::vector<reply<llm_reply>> more;
  for (uint64_t i = 2; i < 50; ++i)
    more.push_back(ask<llm_reply>(gateway, request(i, "w" + std::to_string(i))));
  for (const auto& r : more)
    CHECK(answered(r));
  CHECK(port->started.empty());
}

TEST_CASE_FIXTURE(one_gateway, "a transfer that never ends is given up and told to the port") {
  config.core.models.deployments[0].deadlines.wall = 60s;
  config.core.policy.retries_max = 0;
  begin();
  auto asked = ask<llm_reply>(gateway, request(1));
  advance(89s);
  CHECK_FALSE(answered(asked));
  advance(2s);
  CHECK(refusal(asked).code == errc::timed_out);
  CHECK(port->cancelled.size() == 1);
}

TEST_CASE_FIXTURE(
  one_gateway, "at its end everybody is answered, and what was sent is held in the log") {
  begin();
  auto first = ask<llm_reply>(gateway, request(1, "w1"));
  log->withhold = true;
  auto second = ask<llm_reply>(gateway, request(2, "w2"));
  REQUIRE(port->started.size() == 1);
  end(gateway);
  CHECK(refusal(first).code == errc::shutting_down);
  CHECK(refusal(second).code == errc::shutting_down);
  CHECK(port->cancelled.size() == 1);
  CHECK_FALSE(port->alive);
  log->withhold = false;
  log->acknowledge();
  settle();
  REQUIRE(log->count("llm_call") == 2);
  auto restored = restore_spending(log->events);
  REQUIRE(restored);
  CHECK(restored->closing.empty());
  uint64_t calls = 0;
  uint64_t held = 0;
  for (const auto& s : restored->spent) {
    calls += s.spent.calls;
    held += s.held.nano_usd;
  }
  CHECK(calls == 1);
  CHECK(held == nlohmann::json::parse(log->events[0].data)["reserved"]["nano_usd"]);
}

TEST_CASE_FIXTURE(one_gateway, "the snapshot is there for the progress line") {
  begin();
  ask<llm_reply>(gateway, request(1));
  auto s = answer(ask<llm_snapshot>(gateway, llm_query{}));
  REQUIRE(s);
  REQUIRE(s->deployments.size() == 1);
  CHECK(s->deployments[0].name == "toy");
  CHECK(s->deployments[0].in_flight == 1);
  CHECK(s->reserved_nano_usd > 0);
}

TEST_CASE_FIXTURE(
  one_gateway, "a configuration that cannot work is refused before the actor is made") {
  config.core.models.deployments[0].extra_body = "broken";
  auto no = check_gateway(config);
  REQUIRE_FALSE(no);
  CHECK(no.error().what.find("deployment 'toy'") != std::string::npos);
  config = settings();
  config.core.models.prices.clear();
  config.core.models.deployments[0].loopback = false;
  CHECK(check_gateway(config).error().what.find("--allow-unpriced") != std::string::npos);
  config = settings();
  config.find = [](std::string_view) -> result<const dialect*> {
    return fail(errc::not_found, "no such dialect");
  };
  CHECK(check_gateway(config).error().code == errc::not_found);
}

TEST_CASE_FIXTURE(
  one_gateway, "many agents at once, in any order of the messages, are all answered") {
  for (uint64_t seed : {1u, 2u, 3u}) {
    CAPTURE(seed);
    time.shuffle(seed);
    if (!gateway) {
      config.core.models.deployments[0].in_flight_max = 7;
      begin();
    }
    std::vector<reply<llm_reply>> asked;
    auto from = port->started.size();
    for (uint64_t i = 0; i < 60; ++i)
      asked.push_back(ask<llm_reply>(gateway, request(seed, "w" + std::to_string(i))));
    for (size_t n = from; n < from + 60; ++n) {
      REQUIRE(port->started.size() > n);
      say(port->started[n].id, {{"text", "ok"}, {"end", ""}});
      close(port->started[n].id);
      settle();
    }
    for (const auto& r : asked)
      CHECK(answer(r)->text == "ok");
  }
  time.shuffle(0);
}

TEST_SUITE_END();

TEST_SUITE_BEGIN("llm history");

try_record a_record(uint64_t id, const std::string& agent = "w0") {
  try_record r;
  r.id = id;
  r.call = 3;
  r.problem = "softmax";
  r.agent = agent;
  r.purpose = "propose";
  r.deployment = "toy";
  r.model = "toy-1";
  r.number = 2;
  r.cap = 100;
  r.reserved.nano_usd = 900;
  r.reserved.tokens = 90;
  r.reserved.calls = 1;
  return r;
}

try_record ended(try_record r, uint64_t spent, uint64_t held) {
  r.spent.nano_usd = spent;
  r.spent.calls = 1;
  r.held.nano_usd = held;
  return r;
}

TEST_CASE("spending is read back from the log, by problem and agent, each try once") {
  std::vector<event> events{sent_event(a_record(1)), call_event(ended(a_record(1), 500, 0)),
    call_event(ended(a_record(1), 500, 0)), sent_event(a_record(2, "w1")),
    call_event(ended(a_record(2, "w1"), 0, 900)), event{.kind = "verdict"}};
  auto restored = restore_spending(events);
  REQUIRE(restored);
  CHECK(restored->closing.empty());
  REQUIRE(restored->spent.size() == 2);
  CHECK(restored->spent[0].agent == "w0");
  CHECK(restored->spent[0].spent.nano_usd == 500);
  CHECK(restored->spent[0].spent.calls == 1);
  CHECK(restored->spent[0].last_try == 1);
  CHECK(restored->spent[1].held.nano_usd == 900);
  CHECK(restored->spent[1].last_try == 2);
}

TEST_CASE("what was sent when the process died is held in its worst case, once and for all") {
  std::vector<event> events{sent_event(a_record(7))};
  events[0].t = 5s;
  auto restored = restore_spending(events);
  REQUIRE(restored);
  REQUIRE(restored->closing.size() == 1);
  CHECK(restored->closing[0].kind == "llm_call");
  CHECK(restored->closing[0].t == 5s);
  REQUIRE(restored->spent.size() == 1);
  CHECK(restored->spent[0].held.nano_usd == 900);
  CHECK(restored->spent[0].held.tokens == 90);
  CHECK(restored->spent[0].spent.calls == 1);
  events.push_back(restored->closing[0]);
  auto again = restore_spending(events);
  REQUIRE(again);
  CHECK(again->closing.empty());
  CHECK(again->spent[0].held == restored->spent[0].held);
  CHECK(again->spent[0].spent == restored->spent[0].spent);
}

TEST_CASE("an event about money that cannot be read is refused with its number") {
  auto broken = call_event(ended(a_record(1), 1, 0));
  broken.seq = 12;
  for (const char* data : {"{}", "[", "{\"request\":1,\"agent\":\"w\",\"spent\":3,\"held\":{}}",
         "{\"request\":1,\"agent\":\"w\",\"held\":{\"nano_usd\":0,\"tokens\":0,\"calls\":0},"
         "\"spent\":{\"nano_usd\":-5,\"tokens\":0,\"calls\":0}}"}) {
    CAPTURE(data);
    broken.data = data;
    auto no = restore_spending(std::vector<event>{broken});
    REQUIRE_FALSE(no);
    CHECK(no.error().code == errc::invalid_input);
    CHECK(no.error().what.find("event 12 (llm_call)") != std::string::npos);
  }
}

TEST_SUITE_END();

} // namespace
