#include "llm/transport/answer_head.hpp"
#include "llm/transport/call_url.hpp"

#include <doctest/doctest.h>
#include <string>

using namespace gristmill;

namespace {

answer_head read(std::initializer_list<std::string_view> lines) {
  answer_head out;
  for (const auto line : lines)
    CHECK(out.take_line(line));
  return out;
}

bool accepts(const std::string& url, bool plain = false) {
  return read_call_url(url, plain).has_value();
}

std::string refusal(const std::string& url) {
  const auto read_url = read_call_url(url, false);
  REQUIRE_FALSE(read_url);
  CHECK(read_url.error().code == errc::invalid_input);
  return read_url.error().what;
}

} // namespace

TEST_CASE("only the headers of the list are kept, in lower case") {
  const auto head = read({"HTTP/2 200 \r\n", "Content-Type: text/event-stream\r\n",
    "Set-Cookie: session=secret\r\n", "server: x\r\n", "X-RateLimit-Remaining-Tokens:  17 \r\n",
    "anthropic-ratelimit-requests-reset: 2026-12-01T00:00:00Z\r\n", "Request-Id: r1\r\n",
    "X-Request-ID: r2\r\n", "Retry-After: 3\r\n", "retry-after-ms: 2500\r\n",
    "x-should-retry: false\r\n", "Location: https://elsewhere/?key=secret\r\n", "\r\n"});
  CHECK(head.complete());
  CHECK(head.status() == 200);
  CHECK(head.headers()
    == http_headers{{"content-type", "text/event-stream"}, {"x-ratelimit-remaining-tokens", "17"},
      {"anthropic-ratelimit-requests-reset", "2026-12-01T00:00:00Z"}, {"request-id", "r1"},
      {"x-request-id", "r2"}, {"retry-after", "3"}, {"retry-after-ms", "2500"},
      {"x-should-retry", "false"}});
}

TEST_CASE("an interim answer is not the answer") {
  auto head = read({"HTTP/1.1 103 Early Hints\r\n", "Retry-After: 1\r\n", "\r\n"});
  CHECK_FALSE(head.complete());
  CHECK(head.take_line("HTTP/1.1 429 Too Many Requests\r\n"));
  CHECK(head.take_line("\r\n"));
  CHECK(head.complete());
  CHECK(head.status() == 429);
  CHECK(head.headers().empty());
}

TEST_CASE("an event stream is a success of that type, whatever follows the type") {
  CHECK(
    read({"HTTP/2 200", "content-type: Text/Event-Stream ; charset=utf-8", ""}).is_event_stream());
  CHECK_FALSE(read({"HTTP/2 200", "content-type: text/html", ""}).is_event_stream());
  CHECK_FALSE(read({"HTTP/2 200", "content-type: text/event-streams", ""}).is_event_stream());
  CHECK_FALSE(read({"HTTP/2 429", "content-type: text/event-stream", ""}).is_event_stream());
  CHECK_FALSE(read({"HTTP/2 200", ""}).is_event_stream());
}

TEST_CASE("headers that are kept have a limit") {
  answer_head head;
  CHECK(head.take_line("HTTP/2 200"));
  bool within = true;
  for (int i = 0; i < 1000 && within; ++i)
    within = head.take_line("x-ratelimit-" + std::to_string(i) + ": " + std::string(100, 'x'));
  CHECK_FALSE(within);
}

TEST_CASE("what comes after the head is no part of it") {
  auto head = read({"HTTP/2 200", "", "retry-after: 5", "HTTP/2 500", ""});
  CHECK(head.status() == 200);
  CHECK(head.headers().empty());
}

TEST_CASE("https goes anywhere, http only to this machine") {
  CHECK(accepts("https://api.example.com/v1"));
  CHECK(accepts("http://127.0.0.1:8080/v1"));
  CHECK(accepts("http://127.1/v1"));
  CHECK(accepts("http://[::1]:8080/v1"));
  CHECK(accepts("http://localhost/v1"));
  CHECK_FALSE(accepts("http://10.0.0.1/v1"));
  CHECK_FALSE(accepts("http://127.0.0.1.example.com/v1"));
  CHECK_FALSE(accepts("http://localhost.example.com/v1"));
  CHECK(accepts("http://10.0.0.1/v1", true));
}

TEST_CASE("other schemes and nonsense are no addresses of models") {
  CHECK_FALSE(accepts("file:///etc/passwd", true));
  CHECK_FALSE(accepts("ftp://127.0.0.1/", true));
  CHECK_FALSE(accepts("gopher://127.0.0.1/", true));
  CHECK_FALSE(accepts("", true));
  CHECK_FALSE(accepts("127.0.0.1:80", true));
  CHECK_FALSE(accepts("http://127.0.0.1/a\r\nb", true));
}

TEST_CASE("a refused address is named without what may be secret in it") {
  const auto text = refusal("http://10.0.0.1/v1?key=hunter2hunter2");
  CHECK(text.find("http://10.0.0.1/v1") != std::string::npos);
  CHECK(text.find("hunter2") == std::string::npos);
  CHECK(refusal("https://me:hunter2hunter2@host/v1").find("hunter2") == std::string::npos);
}

TEST_CASE("equal servers have one name, with the port that the scheme implies") {
  CHECK(read_call_url("https://Api.Example.com/v1", false)->server
    == read_call_url("https://api.example.com:443/v2", false)->server);
  CHECK(read_call_url("https://api.example.com:444/v1", false)->server
    != read_call_url("https://api.example.com/v1", false)->server);
}
