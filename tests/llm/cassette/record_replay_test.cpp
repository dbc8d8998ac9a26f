#include "tests/llm/cassette/cassette_fixture.hpp"

#include <algorithm>

using namespace gristmill;
using namespace std::chrono_literals;

TEST_CASE_FIXTURE(cassette_fixture, "what was recorded comes back, event by event and to its end") {
  {
    auto port = recorder();
    port->start(prompt(1, "hello"));
    hand->head(1, 200, {{"content-type", "text/event-stream"}, {"request-id", "r1"}});
    hand->event(1, "eins", "delta");
    hand->event(1, "zwei");
    port->finished(1);
    CHECK(hand->finishes == 1);
    hand->end(1);
    port->start(prompt(2, "fail"));
    hand->head(2, 429, {{"retry-after", "7"}});
    hand->end(2, http_end::complete, "<html>slow\xFF</html>");
    port->start(prompt(3, "cut"));
    hand->head(3, 200);
    hand->event(3, "half");
    hand->end(3, http_end::cut_off, "", "connection reset");
  }
  const auto live = reports.ended(1);
  CHECK(live.data() == "eins|zwei");
  CHECK(live.ends == 1);

  collector again;
  auto port = player(again);
  for (uint64_t id = 13; id > 10; --id)
    port->start(prompt(id, id == 11 ? "hello" : id == 12 ? "fail" : "cut"));
  const auto first = again.ended(11);
  CHECK(first.how == http_end::complete);
  CHECK(first.status == 200);
  CHECK(first.events == live.events);
  CHECK(first.header("request-id") == "r1");
  const auto second = again.ended(12);
  CHECK(second.status == 429);
  CHECK(second.header("retry-after") == "7");
  CHECK(second.body == "<html>slow\xFF</html>");
  const auto third = again.ended(13);
  CHECK(third.how == http_end::cut_off);
  CHECK(third.why == "connection reset");
  CHECK(third.data() == "half");
}

TEST_CASE_FIXTURE(
  cassette_fixture, "identical prompts come back in the order in which they were asked") {
  {
    auto port = recorder();
    port->start(prompt(1, "same"));
    port->start(prompt(2, "same"));
    port->start(prompt(3, "other"));
    port->start(prompt(4, "same"));
    // The answers come in another order than the questions.
    for (const uint64_t id : {4U, 3U, 2U, 1U})
      hand->answer(id, "answer " + std::to_string(id));
  }
  collector again;
  auto port = player(again);
  // Other agents come in between this time.
  port->start(prompt(11, "other"));
  port->start(prompt(12, "same"));
  port->start(prompt(13, "same"));
  port->start(prompt(14, "same"));
  CHECK(again.ended(11).data() == "answer 3");
  CHECK(again.ended(12).data() == "answer 1");
  CHECK(again.ended(13).data() == "answer 2");
  CHECK(again.ended(14).data() == "answer 4");
}

TEST_CASE_FIXTURE(
  cassette_fixture, "equal conversations at equal times make files that are equal to the byte") {
  const auto conversation = [&](size_t events_at_once) {
    clock_ms = 1000;
    std::filesystem::remove(file);
    auto port = recorder();
    port->start(prompt(1, "hello"));
    clock_ms += 5;
    hand->head(1, 200, {{"x-request-id", "a"}, {"content-type", "text/event-stream"}});
    std::vector<sse_event> all(6, sse_event{"", "piece"});
    for (size_t i = 0; i < all.size(); i += events_at_once) {
      http_report report;
      report.id = 1;
      report.status = 200;
      report.events.assign(all.begin() + static_cast<std::ptrdiff_t>(i),
        all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), i + events_at_once)));
      hand->sink(report);
    }
    clock_ms += 7;
    hand->end(1);
    port.reset();
    return content();
  };
  const auto one = conversation(1);
  CHECK(one == conversation(1));
  // How the events were bundled on their way is no part of the conversation.
  CHECK(one == conversation(4));
  CHECK(one.find("\"took_us\":12000") != std::string::npos);
}

TEST_CASE_FIXTURE(
  cassette_fixture, "the order of keys and volatile fields do not make another request") {
  {
    auto port = recorder();
    port->start(call(1, R"({"b":{"y":1,"x":2},"a":[1,2.50],"user":"me","prompt_cache_key":"k1"})"));
    hand->answer(1, "found");
    port->start(call(2, "no JSON at all"));
    hand->answer(2, "text");
  }
  CHECK(content().find("k1") == std::string::npos);
  collector again;
  auto port = player(again);
  port->start(call(1, R"({"a":[1,2.5],"b":{"x":2,"y":1},"metadata":{"n":1},"user":"you"})"));
  CHECK(again.ended(1).data() == "found");
  port->start(call(2, "no JSON at all"));
  CHECK(again.ended(2).data() == "text");
  // An order of array elements and a nested field of that name do make another one.
  port->start(call(3, R"({"a":[2.5,1],"b":{"x":2,"y":1}})"));
  CHECK(again.ended(3).how == http_end::not_sent);
  port->start(call(4, R"({"a":[1,2.5],"b":{"x":2,"y":1,"user":"me"}})"));
  CHECK(again.ended(4).how == http_end::not_sent);
}

TEST_CASE_FIXTURE(cassette_fixture,
  "a request that was never recorded is a hard failure that shows the nearest one") {
  {
    auto port = recorder();
    port->start(prompt(1, "first line\\nblock_m = 64\\nlast line"));
    hand->answer(1, "a");
    port->start(prompt(2, "something else entirely"));
    hand->answer(2, "b");
  }
  collector again;
  std::vector<std::string> misses;
  replay_options options;
  options.on_miss = [&](std::string text) { misses.push_back(std::move(text)); };
  auto port = player(again, options);
  port->start(prompt(1, "first line\\nblock_m = 128\\nlast line"));
  const auto got = again.ended(1);
  CHECK(got.how == http_end::not_sent);
  CHECK(got.status == 0);
  CHECK(got.why.starts_with(cassette_miss));
  CHECK(got.why.find("run.jsonl") != std::string::npos);
  CHECK(got.why.find("\n- block_m = 64\n+ block_m = 128\n") != std::string::npos);
  CHECK(got.why.find("first line") == std::string::npos);
  CHECK(got.why.find("something else") == std::string::npos);
  REQUIRE(misses.size() == 1);
  CHECK(misses.front() == got.why);
}

TEST_CASE_FIXTURE(cassette_fixture, "asking once more than was recorded is a miss that says so") {
  {
    auto port = recorder();
    port->start(prompt(1, "same"));
    hand->answer(1, "a");
  }
  collector again;
  auto port = player(again);
  port->start(prompt(1, "same"));
  CHECK(again.ended(1).data() == "a");
  port->start(prompt(2, "same"));
  const auto got = again.ended(2);
  CHECK(got.how == http_end::not_sent);
  CHECK(got.why.find("holds 1 answers") != std::string::npos);
  CHECK(got.why.find("call number 2") != std::string::npos);
}

TEST_CASE_FIXTURE(cassette_fixture, "an empty cassette misses everything") {
  recorder().reset();
  collector again;
  auto port = player(again);
  port->start(prompt(1, "a"));
  CHECK(again.ended(1).why.find("holds nothing") != std::string::npos);
}

TEST_CASE_FIXTURE(cassette_fixture, "a recording never writes over another one") {
  {
    auto port = recorder();
    port->start(prompt(1, "a"));
    hand->answer(1, "b");
  }
  const auto before = content();
  const auto second = make_recording_port(recording(), factory, reports.sink());
  REQUIRE_FALSE(second);
  CHECK(second.error().code == errc::invalid_input);
  CHECK(content() == before);
}

TEST_CASE_FIXTURE(cassette_fixture, "two programs do not record to one file") {
  auto port = recorder();
  const auto second = make_append_port(recording(), factory, reports.sink());
  REQUIRE_FALSE(second);
  CHECK(second.error().code == errc::refused);
}

TEST_CASE_FIXTURE(cassette_fixture, "appending answers what is known and sends only the rest") {
  {
    auto port = recorder();
    port->start(prompt(1, "known"));
    hand->answer(1, "old");
  }
  {
    auto port = appender();
    port->start(prompt(2, "known"));
    CHECK(reports.ended(2).data() == "old");
    CHECK(hand->started.empty());
    port->start(prompt(3, "new"));
    port->start(prompt(4, "known"));
    CHECK(hand->started.size() == 2);
    hand->answer(3, "fresh");
    hand->answer(4, "second");
    CHECK(reports.ended(3).data() == "fresh");
  }
  CHECK(lines() == 3);
  collector again;
  auto port = player(again);
  port->start(prompt(1, "known"));
  port->start(prompt(2, "known"));
  port->start(prompt(3, "new"));
  CHECK(again.ended(1).data() == "old");
  CHECK(again.ended(2).data() == "second");
  CHECK(again.ended(3).data() == "fresh");
}

TEST_CASE_FIXTURE(cassette_fixture, "appending can also send everything, and count on") {
  {
    auto port = recorder();
    port->start(prompt(1, "same"));
    hand->answer(1, "first run");
  }
  {
    auto options = recording();
    options.answer_known = false;
    auto port = make_append_port(options, factory, reports.sink());
    REQUIRE(port);
    (*port)->start(prompt(2, "same"));
    REQUIRE(hand->started.size() == 1);
    hand->answer(2, "second run");
  }
  collector again;
  auto port = player(again);
  port->start(prompt(1, "same"));
  port->start(prompt(2, "same"));
  CHECK(again.ended(1).data() == "first run");
  CHECK(again.ended(2).data() == "second run");
}

TEST_CASE_FIXTURE(cassette_fixture, "appending makes the file when there is none") {
  {
    auto port = appender();
    port->start(prompt(1, "a"));
    hand->answer(1, "b");
  }
  CHECK(lines() == 1);
}

TEST_CASE_FIXTURE(
  cassette_fixture, "calls that the end of a run cut short are recorded as that, and sent again") {
  {
    auto port = recorder();
    port->start(prompt(1, "a"));
    hand->event(1, "half");
  }
  CHECK(reports.ended(1).how == http_end::cancelled);
  collector again;
  {
    auto port = player(again);
    port->start(prompt(2, "a"));
    const auto got = again.ended(2);
    CHECK(got.how == http_end::cancelled);
    CHECK(got.data() == "half");
  }
  {
    auto port = appender();
    port->start(prompt(3, "a"));
    REQUIRE(hand->started.size() == 1);
    hand->answer(3, "whole");
  }
  auto port = player(again);
  port->start(prompt(4, "a"));
  CHECK(again.ended(4).data() == "whole");
}

TEST_CASE_FIXTURE(cassette_fixture, "a torn last line is left out, and cut off by an appender") {
  {
    auto port = recorder();
    port->start(prompt(1, "a"));
    hand->answer(1, "b");
  }
  const auto whole = content();
  for (const size_t kept : {size_t{1}, size_t{40}, whole.size() - 2}) {
    CAPTURE(kept);
    write(whole + whole.substr(0, kept));
    collector again;
    {
      auto port = player(again);
      port->start(prompt(1, "a"));
      CHECK(again.ended(1).data() == "b");
    }
    appender().reset();
    CHECK(content() == whole);
  }
  // Only the line end is missing: nothing is lost.
  write(whole.substr(0, whole.size() - 1));
  appender().reset();
  CHECK(content() == whole);
}

TEST_CASE_FIXTURE(
  cassette_fixture, "a broken line that is not the last one is refused by its number") {
  {
    auto port = recorder();
    for (uint64_t id = 1; id <= 3; ++id) {
      port->start(prompt(id, "a"));
      hand->answer(id, "b");
    }
  }
  auto text = content();
  text.insert(text.find('\n') + 10, "\x01");
  write(text);
  replay_options options;
  options.file = file;
  const auto port = make_replay_port(options, reports.sink());
  REQUIRE_FALSE(port);
  CHECK(port.error().code == errc::invalid_input);
  CHECK(port.error().what.find("run.jsonl:2") != std::string::npos);
}

TEST_CASE_FIXTURE(cassette_fixture, "a cassette that was edited by hand is refused") {
  {
    auto port = recorder();
    port->start(prompt(1, "a kernel"));
    hand->answer(1, "b");
  }
  auto text = content();
  text.replace(text.find("a kernel"), 8, "no kernel");
  write(text);
  replay_options options;
  options.file = file;
  const auto port = make_replay_port(options, reports.sink());
  REQUIRE_FALSE(port);
  CHECK(port.error().what.find("hash") != std::string::npos);
}

TEST_CASE_FIXTURE(cassette_fixture, "a missing cassette is named") {
  replay_options options;
  options.file = folder.path / "nowhere.jsonl";
  const auto port = make_replay_port(options, reports.sink());
  REQUIRE_FALSE(port);
  CHECK(port.error().what.find("nowhere.jsonl") != std::string::npos);
}

TEST_CASE_FIXTURE(cassette_fixture, "a full disk stops the recording, says so once, and no call") {
  auto options = recording();
  options.file = "/dev/full";
  int failures = 0;
  options.on_failure = [&](const std::string& why) {
    ++failures;
    CHECK(why.find("/dev/full") != std::string::npos);
  };
  auto port = make_recording_port(options, factory, reports.sink());
  REQUIRE(port);
  for (uint64_t id = 1; id <= 2; ++id) {
    (*port)->start(prompt(id, "a"));
    hand->answer(id, "b");
    CHECK(reports.ended(id).data() == "b");
  }
  CHECK(failures == 1);
}

TEST_CASE_FIXTURE(cassette_fixture, "a replay at a speed keeps the pauses between events") {
  {
    auto port = recorder();
    port->start(prompt(1, "a"));
    clock_ms = 1000;
    hand->event(1, "eins");
    clock_ms = 2000;
    hand->event(1, "zwei");
    hand->end(1);
    port->start(prompt(2, "slow"));
    clock_ms = 1'000'000;
    hand->event(2, "late");
    hand->end(2);
  }
  collector again;
  replay_options options;
  options.speed = 20;
  auto port = player(again, options);
  const auto before = std::chrono::steady_clock::now();
  port->start(prompt(1, "a"));
  port->start(prompt(2, "slow"));
  const auto got = again.ended(1);
  // Never earlier; how much later is not this test's matter.
  CHECK(std::chrono::steady_clock::now() - before >= 100ms);
  CHECK(got.reports >= 2);
  CHECK(got.data() == "eins|zwei");
  port->cancel(2);
  const auto cancelled = again.ended(2);
  CHECK(cancelled.how == http_end::cancelled);
  CHECK(cancelled.events.empty());
  port->start(prompt(3, "never"));
  CHECK(again.ended(3).how == http_end::not_sent);
  CHECK(again.so_far(2).ends == 1);
}

TEST_CASE_FIXTURE(cassette_fixture, "the end of a replay ends each call once") {
  {
    auto port = recorder();
    port->start(prompt(1, "a"));
    clock_ms = 1'000'000;
    hand->answer(1, "late");
  }
  collector again;
  replay_options options;
  options.speed = 1;
  auto port = player(again, options);
  port->start(prompt(1, "a"));
  port.reset();
  const auto got = again.so_far(1);
  CHECK(got.ends == 1);
  CHECK(got.how == http_end::cancelled);
}

TEST_CASE_FIXTURE(cassette_fixture, "a speed that makes no sense is refused") {
  recorder().reset();
  for (const double speed : {-1.0, 1e-9, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
    replay_options options;
    options.file = file;
    options.speed = speed;
    CHECK_FALSE(make_replay_port(options, reports.sink()));
  }
}

TEST_CASE_FIXTURE(cassette_fixture, "a replay without a thread answers before start returns") {
  {
    auto port = recorder();
    port->start(prompt(1, "a"));
    hand->answer(1, "b");
  }
  collector again;
  replay_options options;
  options.from_caller = true;
  auto port = player(again, options);
  port->start(prompt(1, "a"));
  CHECK(again.so_far(1).ends == 1);
  CHECK(again.so_far(1).data() == "b");
}
