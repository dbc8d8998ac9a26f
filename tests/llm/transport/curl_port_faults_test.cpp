#include "tests/llm/transport/port_fixture.hpp"

#include <atomic>
#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace gristmill;
using namespace std::chrono_literals;

namespace {

/// Until the client has gone or the test is over: no server in here ends a silence by itself.
constexpr auto silence = std::chrono::hours{1};

} // namespace

TEST_CASE("sglang#31765: a server that says nothing is given up by the first-event timer") {
  served s([](test_connection& client) {
    client.read();
    client.gone_within(silence);
  });
  auto call = s.call();
  call.deadlines.first_event = 60ms;
  const auto got = s.run(call);
  CHECK(got.how == http_end::first_event_timeout);
  CHECK(got.status == 0);
  CHECK(got.why == "no event within 0.06 s after sending");
}

TEST_CASE("comments keep a connection alive but are no event") {
  served s([](test_connection& client) {
    client.read();
    client.begin_chunked();
    while (!client.gone_within(10ms))
      client.chunk(": PROCESSING\n\n");
  });
  auto call = s.call();
  call.deadlines.first_event = 100ms;
  const auto got = s.run(call);
  CHECK(got.how == http_end::first_event_timeout);
  CHECK(got.status == 200);
  CHECK(got.events.empty());
}

TEST_CASE("codex#23807: silence in the middle of an answer is given up by the idle timer, what "
          "came is kept") {
  served s([](test_connection& client) {
    client.read();
    client.begin_chunked();
    client.chunk("data: a\n\n");
    client.gone_within(silence);
  });
  auto call = s.call();
  call.deadlines.idle = 60ms;
  const auto got = s.run(call);
  CHECK(got.how == http_end::idle_timeout);
  CHECK(got.data() == "a");
}

TEST_CASE("codex#3229: comments renew the idle timer") {
  served s([](test_connection& client) {
    client.read();
    client.begin_chunked();
    client.chunk("data: a\n\n");
    for (int i = 0; i < 12; ++i) {
      client.gone_within(100ms);
      client.chunk(":\n");
    }
    client.chunk("data: b\n\n");
    client.last_chunk();
  });
  auto call = s.call();
  // Shorter than the comments together, much longer than one pause.
  call.deadlines.idle = 1000ms;
  const auto got = s.run(call);
  CHECK(got.how == http_end::complete);
  CHECK(got.data() == "a|b");
}

TEST_CASE("an answer that never ends is given up by the wall timer") {
  served s([](test_connection& client) {
    client.read();
    client.begin_chunked();
    while (!client.gone_within(10ms))
      client.chunk("data: again\n\n");
  });
  auto call = s.call();
  call.deadlines.wall = 150ms;
  const auto got = s.run(call);
  CHECK(got.how == http_end::wall_timeout);
  CHECK_FALSE(got.events.empty());
}

TEST_CASE("a server that does not finish TLS is given up by the connect timer") {
  served s([](test_connection& client) { client.gone_within(silence); });
  auto call = s.call();
  call.url = fmt::format("https://127.0.0.1:{}/", s.server.port());
  call.deadlines.connect = 60ms;
  const auto got = s.run(call);
  CHECK(got.how == http_end::connect_timeout);
  CHECK(got.why == "no connection within 0.06 s");
}

TEST_CASE("calls that wait for a connection that fails end with it, not one after the other") {
  served s([](test_connection& client) { client.gone_within(silence); });
  for (uint64_t id = 1; id <= 20; ++id) {
    auto call = s.call(id);
    call.url = fmt::format("https://127.0.0.1:{}/", s.server.port());
    call.deadlines.connect = 200ms;
    s.port->start(std::move(call));
  }
  for (uint64_t id = 1; id <= 20; ++id)
    CHECK(s.reports.ended(id).how == http_end::connect_timeout);
  CHECK(s.server.connections() < 20);
}

TEST_CASE("nobody listens: not sent, and the server is named") {
  served s([](test_connection&) {});
  auto call = s.call();
  const int port = free_port();
  call.url = fmt::format("http://127.0.0.1:{}/v1", port);
  const auto got = s.run(call);
  CHECK(got.how == http_end::not_sent);
  CHECK(got.why.find(fmt::format("http://127.0.0.1:{}", port)) != std::string::npos);
}

TEST_CASE("a connection that is closed before an answer was sent, and perhaps billed") {
  served s([](test_connection& client) { client.read(); });
  const auto got = s.run(s.call());
  CHECK(got.how == http_end::cut_off);
  CHECK(got.status == 0);
}

TEST_CASE(
  "a request is sent once: one that a kept connection has swallowed is not sent again behind "
  "our back") {
  std::atomic<int> requests{0};
  served s([&requests](test_connection& client) {
    if (!client.read()) // libcurl has connected again by the time it is told not to send.
      return;
    ++requests;
    client.answer("200 OK", "", "{}");
    if (!client.read()) // The next one comes on the same connection, and is cut off.
      return;
    ++requests;
  });
  CHECK(s.run(s.call()).how == http_end::complete);
  auto second = s.call();
  second.id = 77;
  CHECK(s.run(second).how == http_end::cut_off);
  CHECK(requests == 2);
}

TEST_CASE("a stream that is cut in the middle keeps its whole events and loses the half one") {
  served s([](test_connection& client) {
    client.read();
    client.begin_chunked();
    client.chunk("data: a\n\ndata: {\"ha");
  });
  const auto got = s.run(s.call());
  CHECK(got.how == http_end::cut_off);
  CHECK(got.status == 200);
  CHECK(got.data() == "a");
}

TEST_CASE("a reader that has seen the last event need not wait for the end of the connection") {
  served s([](test_connection& client) {
    client.read();
    client.begin_chunked();
    client.chunk("data: a\n\ndata: [DONE]\n\n");
    client.gone_within(silence);
  });
  s.port->start(s.call());
  CHECK(s.reports.with_events(1, 2).ends == 0);
  s.port->finished(1);
  const auto got = s.reports.ended(1);
  CHECK(got.how == http_end::complete);
  CHECK(got.data() == "a|[DONE]");
  CHECK(got.ends == 1);
}

TEST_CASE("what goes wrong after the last event does not matter any more") {
  served s([](test_connection& client) {
    client.read();
    client.begin_chunked();
    client.chunk("data: [DONE]\n\n");
    client.gone_within(100ms);
    client.write("nonsense\r\n");
  });
  s.port->start(s.call());
  s.reports.with_events(1, 1);
  s.port->finished(1);
  CHECK(s.reports.ended(1).how == http_end::complete);
}

TEST_CASE("a line without an end is given up at the limit") {
  curl_port_options options;
  options.events.line_max = 100'000;
  served s(
    [](test_connection& client) {
      client.read();
      client.begin_chunked();
      client.chunk("data: a\n\ndata: ");
      while (client.chunk(std::string(10'000, 'x'))) {
      }
    },
    options);
  const auto got = s.run(s.call());
  CHECK(got.how == http_end::too_large);
  CHECK(got.why == "a line of the answer is longer than 100000 bytes");
  CHECK(got.data() == "a");
}

TEST_CASE("an endless stream of small events is given up at the limit") {
  curl_port_options options;
  options.answer_max = 50'000;
  served s(
    [](test_connection& client) {
      client.read();
      client.begin_chunked();
      while (client.chunk("data: aaaaaaaaaaaaaaaa\n\n")) {
      }
    },
    options);
  const auto got = s.run(s.call());
  CHECK(got.how == http_end::too_large);
  CHECK(got.why == "the answer is larger than 50000 bytes");
}

TEST_CASE("an endless body is given up at its own limit") {
  curl_port_options options;
  options.body_max = 50'000;
  served s(
    [](test_connection& client) {
      client.read();
      client.write("HTTP/1.1 500 Oops\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n");
      while (client.write(std::string(1000, 'x'))) {
      }
    },
    options);
  const auto got = s.run(s.call());
  CHECK(got.how == http_end::too_large);
  CHECK(got.status == 500);
  CHECK(got.body.size() == 50'000);
}

TEST_CASE("a redirect is an answer, not a way to another host") {
  test_server elsewhere([](test_connection& client) { client.read(); });
  served s([&](test_connection& client) {
    client.read();
    client.answer("307 Temporary Redirect", "Location: " + elsewhere.url() + "\r\n", "moved");
  });
  const auto got = s.run(s.call());
  CHECK(got.how == http_end::complete);
  CHECK(got.status == 307);
  CHECK(got.body == "moved");
  CHECK(got.why.find("redirects are not followed") != std::string::npos);
  CHECK(elsewhere.connections() == 0);
}

TEST_CASE("http to another machine is not sent, also when another one is allowed") {
  curl_port_options options;
  options.servers = {{"http://192.0.2.2/", "", true}, {"http://192.0.2.1:8080/", "", true}};
  served s([](test_connection&) {}, options);
  auto call = s.call();
  // TEST-NET-1 of RFC 5737: nobody's.
  call.url = "http://192.0.2.1/v1";
  const auto got = s.run(call);
  CHECK(got.how == http_end::not_sent);
  CHECK(got.why.find("https") != std::string::npos);
}

TEST_CASE("llama.cpp#24496, llama.cpp#13262: a call is cancelled in flight: one end, and the "
          "server sees it go") {
  std::atomic<bool> gone{false};
  served s([&](test_connection& client) {
    client.read();
    client.begin_chunked();
    client.chunk("data: a\n\n");
    gone = client.gone_within(silence);
  });
  s.port->start(s.call());
  s.reports.with_events(1, 1);
  s.port->cancel(1);
  s.port->cancel(1);
  s.port->finished(1);
  s.port->cancel(77);
  const auto got = s.reports.ended(1);
  CHECK(got.how == http_end::cancelled);
  CHECK(got.data() == "a");
  // The next call still works, and by then a second end would have come.
  s.port->start(s.call(2));
  s.reports.with_events(2, 1);
  CHECK(s.reports.so_far(1).ends == 1);
  s.port->cancel(2);
  CHECK(s.reports.ended(2).ends == 1);
  CHECK(gone);
}

TEST_CASE("the destructor ends each call exactly once") {
  served s([](test_connection& client) {
    client.read();
    client.begin_chunked();
    client.chunk("data: a\n\n");
    client.gone_within(silence);
  });
  for (uint64_t id = 1; id <= 10; ++id)
    s.port->start(s.call(id));
  s.reports.with_events(10, 1);
  // This one may not even have reached the thread.
  s.port->start(s.call(11));
  s.port.reset();
  for (uint64_t id = 1; id <= 11; ++id) {
    const auto got = s.reports.so_far(id);
    CHECK(got.ends == 1);
    CHECK((got.how == http_end::cancelled || got.how == http_end::not_sent));
  }
}

TEST_CASE("a sink may give the port new calls") {
  test_server server([](test_connection& client) {
    while (client.read())
      client.answer("500 Again", "", "");
  });
  collector reports;
  std::unique_ptr<http_port> port;
  auto collect = reports.sink();
  const auto call = [&](uint64_t id) {
    http_call out;
    out.id = id;
    out.url = server.url();
    return out;
  };
  port = make_curl_port({}, [&](http_report report) {
    const auto id = report.id;
    const bool again = report.ended && id < 5;
    collect(std::move(report));
    if (again)
      port->start(call(id + 1));
  });
  port->start(call(1));
  CHECK(reports.ended(5).status == 500);
}
