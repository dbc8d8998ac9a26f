#include "tests/llm/transport/port_fixture.hpp"

#include <arpa/inet.h>
#include <atomic>
#include <cstdlib>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

using namespace gristmill;
using namespace std::chrono_literals;

namespace {

bool has_line(const std::string& head, const std::string& line) {
  return (head + "\r\n").find("\r\n" + line + "\r\n") != std::string::npos;
}

} // namespace

TEST_CASE("a call is sent as it is, and its answer comes event by event") {
  test_request seen;
  served s([&](test_connection& client) {
    seen = client.read().value_or(test_request{});
    client.begin_stream("X-Request-Id: r7\r\nSet-Cookie: a=b\r\n");
    client.write("event: delta\ndata: eins\n\n: comment\n\ndata: zwei\n\ndata: [DONE]\n\n");
  });
  auto call = s.call();
  call.headers = {{"anthropic-version", "2023-06-01"}, {"X-Empty", ""}};
  call.body = std::string(40000, 'x');
  const auto got = s.run(call);
  CHECK(got.how == http_end::complete);
  CHECK(got.why == "");
  CHECK(got.status == 200);
  CHECK(got.data() == "eins|zwei|[DONE]");
  CHECK(got.events.front().name == "delta");
  CHECK(got.header("x-request-id") == "r7");
  CHECK(got.header("set-cookie") == "(none)");
  CHECK(got.body == "");
  CHECK(seen.head.starts_with("POST /v1/chat HTTP/1.1\r\n"));
  CHECK(has_line(seen.head, "anthropic-version: 2023-06-01"));
  CHECK(has_line(seen.head, "X-Empty:"));
  CHECK(has_line(seen.head, "Content-Type: application/json"));
  CHECK(seen.head.find("Accept-Encoding") == std::string::npos);
  CHECK(seen.head.find("Expect") == std::string::npos);
  CHECK(seen.body == call.body);
}

TEST_CASE("an answer that is no event stream comes whole with the end") {
  served s([](test_connection& client) {
    client.read();
    client.answer("429 Too Many Requests", "Content-Type: text/html\r\nRetry-After: 7\r\n",
      "<html>slow down</html>");
  });
  const auto got = s.run(s.call());
  CHECK(got.how == http_end::complete);
  CHECK(got.status == 429);
  CHECK(got.header("retry-after") == "7");
  CHECK(got.body == "<html>slow down</html>");
  CHECK(got.events.empty());
}

TEST_CASE("an error keeps its body even when it claims to be an event stream") {
  served s([](test_connection& client) {
    client.read();
    client.answer("500 Oops", "Content-Type: text/event-stream\r\n", "data: {\"error\":1}\n\n");
  });
  const auto got = s.run(s.call());
  CHECK(got.status == 500);
  CHECK(got.body == "data: {\"error\":1}\n\n");
  CHECK(got.events.empty());
}

TEST_CASE("an event stream of the wrong type is a body") {
  served s([](test_connection& client) {
    client.read();
    client.answer("200 OK", "Content-Type: application/json\r\n", "data: a\n\n");
  });
  const auto got = s.run(s.call());
  CHECK(got.how == http_end::complete);
  CHECK(got.body == "data: a\n\n");
  CHECK(got.events.empty());
}

TEST_CASE("an empty answer is an answer") {
  served s([](test_connection& client) {
    client.read();
    client.answer("503 Service Unavailable", "", "");
  });
  const auto got = s.run(s.call());
  CHECK(got.how == http_end::complete);
  CHECK(got.status == 503);
  CHECK(got.body == "");
}

TEST_CASE("single bytes and all kinds of line ends make the same events") {
  served s([](test_connection& client) {
    client.read();
    client.begin_chunked();
    for (const char c :
      std::string("event: x\r\ndata: gr\xC3\xBC\xC3\x9F\r\n\r\ndata: b\r\rdata: c\n\n"))
      client.chunk({&c, 1});
    client.last_chunk();
  });
  const auto got = s.run(s.call());
  CHECK(got.how == http_end::complete);
  CHECK(got.data() == "gr\xC3\xBC\xC3\x9F|b|c");
}

TEST_CASE("many events that come together make few reports") {
  served s([](test_connection& client) {
    client.read();
    std::string all =
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    for (int i = 0; i < 1000; ++i)
      all += "data: 1\n\n";
    client.write(all);
  });
  const auto got = s.run(s.call());
  CHECK(got.events.size() == 1000);
  CHECK(got.reports < 100);
  CHECK(got.ends == 1);
}

TEST_CASE("the key is read from the environment, sent, and told to nobody") {
  const std::string key = "hunter2-hunter2-hunter2";
  ::setenv("GRISTMILL_TEST_KEY", key.c_str(), 1);
  std::string said;
  curl_port_options options;
  options.debug = [&](std::string_view line) { said += std::string(line) + "\n"; };
  test_request seen;
  collected got;
  {
    served s(
      [&](test_connection& client) {
        seen = client.read().value_or(test_request{});
        // A server that says the key back, in a header and then with nonsense that libcurl refuses.
        client.write("HTTP/1.1 200 OK\r\nX-Echo: " + key
          + "\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" + key
          + "\r\n");
      },
      options);
    auto call = s.call();
    call.url = s.server.url("/v1/chat?key=" + key);
    call.key_header = "Authorization";
    call.key_prefix = "Bearer ";
    call.key_environment = "GRISTMILL_TEST_KEY";
    got = s.run(call);
  }
  ::unsetenv("GRISTMILL_TEST_KEY");
  CHECK(has_line(seen.head, "Authorization: Bearer " + key));
  CHECK(got.how == http_end::cut_off);
  CHECK(got.why.find(key) == std::string::npos);
  CHECK(said.find("Authorization: ") != std::string::npos);
  CHECK(said.find("[redacted]") != std::string::npos);
  CHECK(said.find(key) == std::string::npos);
}

TEST_CASE("without its variable a call is not sent, and the variable is named") {
  ::unsetenv("GRISTMILL_TEST_NO_KEY");
  served s([](test_connection& client) { client.read(); });
  auto call = s.call();
  call.key_header = "x-api-key";
  call.key_environment = "GRISTMILL_TEST_NO_KEY";
  const auto got = s.run(call);
  CHECK(got.how == http_end::not_sent);
  CHECK(got.status == 0);
  CHECK(got.why.find("GRISTMILL_TEST_NO_KEY") != std::string::npos);
  CHECK(s.server.connections() == 0);
}

TEST_CASE("a header cannot smuggle another one in") {
  served s([](test_connection& client) { client.read(); });
  for (const auto& [name, value] :
    http_headers{{"X-A", "1\r\nX-B: 2"}, {"X-A\r\nX-B", "1"}, {"X-A: 1", "2"}, {"", "1"}}) {
    auto call = s.call();
    call.headers = {{name, value}};
    static uint64_t id = 100;
    call.id = ++id;
    CHECK(s.run(call).how == http_end::not_sent);
  }
  CHECK(s.server.connections() == 0);
}

TEST_CASE("an answer that begins before the request has been read loses nothing of the request") {
  std::string body;
  while (body.size() < 8'000'000)
    body += fmt::format("{},", body.size());
  std::string seen;
  served s([&](test_connection& client) {
    client.begin_chunked();
    client.chunk("data: early\n\n");
    seen = client.read().value_or(test_request{}).body;
    client.chunk("data: [DONE]\n\n");
    client.last_chunk();
  });
  auto call = s.call();
  call.body = body;
  const auto got = s.run(call);
  CHECK(got.data() == "early|[DONE]");
  CHECK((seen == body));
}

TEST_CASE("a connection that the server has closed meanwhile costs no call") {
  std::atomic<int> answered{0};
  served s([&](test_connection& client) {
    const auto request = client.read();
    if (request && request->body == R"({"stream":true})") {
      ++answered;
      client.answer("200 OK", "", "once");
    }
  });
  for (uint64_t id = 1; id <= 5; ++id)
    CHECK(s.run(s.call(id)).body == "once");
  CHECK(answered == 5);
}

TEST_CASE("no connection stays open in a child that is started meanwhile") {
  served s([](test_connection& client) {
    client.read();
    client.begin_chunked();
    client.chunk("data: a\n\n");
    client.gone_within(1h);
  });
  s.port->start(s.call());
  s.reports.with_events(1, 1);
  int connected = 0;
  for (int file = 0; file < 1024; ++file) {
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    if (::getpeername(file, reinterpret_cast<sockaddr*>(&peer), &size) != 0
      || peer.sin_family != AF_INET || ntohs(peer.sin_port) != s.server.port())
      continue;
    ++connected;
    CHECK((::fcntl(file, F_GETFD) & FD_CLOEXEC) != 0);
  }
  CHECK(connected == 1);
}

TEST_CASE("connections are used again") {
  served s([](test_connection& client) {
    while (client.read()) {
      client.begin_chunked();
      client.chunk("data: a\n\n");
      client.last_chunk();
    }
  });
  for (uint64_t id = 1; id <= 20; ++id)
    CHECK(s.run(s.call(id)).data() == "a");
  CHECK(s.server.connections() == 1);
}

TEST_CASE("http without encryption has a connection for each of many calls at once") {
  std::atomic<int> together{0};
  served s([&](test_connection& client) {
    client.read();
    ++together;
    for (int i = 0; i < 500 && together < 40; ++i)
      client.gone_within(10ms);
    client.answer("200 OK", "", std::to_string(together));
  });
  for (uint64_t id = 1; id <= 40; ++id)
    s.port->start(s.call(id));
  for (uint64_t id = 1; id <= 40; ++id)
    CHECK(s.reports.ended(id).body == "40");
}

TEST_CASE(
  "liboai#16: a call that waits for a connection is not timed, and then gets all its time") {
  curl_port_options options;
  options.connections_per_host_http1 = 1;
  served s(
    [](test_connection& client) {
      while (client.read()) {
        client.gone_within(150ms);
        client.answer("200 OK", "", "late");
      }
    },
    options);
  // Eight answers of 150 ms one after the other: the last waits longer than its 900 ms.
  for (uint64_t id = 1; id <= 8; ++id) {
    auto call = s.call(id);
    call.deadlines = {.connect = 900ms, .first_event = 900ms, .idle = 900ms, .wall = 900ms};
    s.port->start(std::move(call));
  }
  for (uint64_t id = 1; id <= 8; ++id)
    CHECK(s.reports.ended(id).how == http_end::complete);
}

TEST_CASE("waiting for a connection has an end as well") {
  curl_port_options options;
  options.connections_per_host_http1 = 1;
  options.waiting_max = 50ms;
  served s(
    [](test_connection& client) {
      client.read();
      client.gone_within(1h);
    },
    options);
  s.port->start(s.call(1));
  s.port->start(s.call(2));
  const auto got = s.reports.ended(2);
  CHECK(got.how == http_end::not_sent);
  CHECK(got.why == "no connection was free for it within 0.05 s");
  CHECK(s.reports.so_far(1).ends == 0);
}

TEST_CASE("beyond the limit calls are refused, and an end makes room") {
  curl_port_options options;
  options.calls_max = 2;
  served s(
    [](test_connection& client) {
      client.read();
      client.gone_within(1h);
    },
    options);
  for (uint64_t id = 1; id <= 3; ++id)
    s.port->start(s.call(id));
  const auto refused = s.reports.ended(3);
  CHECK(refused.how == http_end::not_sent);
  CHECK(refused.why == "2 calls are under way, more are not taken");
  s.port->cancel(1);
  CHECK(s.reports.ended(1).how == http_end::cancelled);
  s.port->start(s.call(4));
  s.port->cancel(4);
  CHECK(s.reports.ended(4).how == http_end::cancelled);
}
