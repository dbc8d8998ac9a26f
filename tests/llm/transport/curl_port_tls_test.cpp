#include "llm/transport/curl_port.hpp"
#include "tests/llm/transport/collector.hpp"
#include "tests/llm/transport/nginx.hpp"
#include "tests/llm/transport/test_server.hpp"

#include <atomic>
#include <doctest/doctest.h>
#include <string>

using namespace gristmill;
using namespace std::chrono_literals;

namespace {

bool skipped() {
  const auto missing = nginx::missing();
  if (missing)
    MESSAGE("SKIPPED, the transport over TLS is not tested: there is no " << *missing
                                                                          << " on this machine");
  return missing.has_value();
}

http_call call_to(const nginx& front, uint64_t id) {
  http_call out;
  out.id = id;
  out.url = front.url();
  out.body = "{}";
  out.deadlines = {15s, 15s, 15s, 15s};
  return out;
}

curl_port_options trusting(const nginx& front) {
  curl_port_options out;
  out.ca_file = front.ca_file();
  return out;
}

/// Answers when so many are there at once, or after five seconds, and says how many there were.
struct crowd {
  explicit crowd(int size) : wanted(size) {}

  void serve(test_connection& client) {
    client.read();
    ++here;
    client.begin_chunked();
    client.chunk("data: here\n\n");
    for (int i = 0; i < 500 && here < wanted; ++i)
      client.gone_within(10ms);
    client.chunk("data: " + std::to_string(here) + "\n\n");
    client.last_chunk();
  }

  std::atomic<int> here{0};
  int wanted;
};

} // namespace

TEST_CASE("curl#17473, curl#22479, curl#4779, curl#11426: over HTTP/2 many calls at once share few "
          "connections") {
  if (skipped())
    return;
  constexpr int count = 450;
  crowd all(count);
  test_server server([&](test_connection& client) { all.serve(client); });
  nginx front(server.port(), nginx::speaks::http2);
  collector reports;
  auto port = make_curl_port(trusting(front), reports.sink());
  for (uint64_t id = 1; id <= count; ++id)
    port->start(call_to(front, id));
  for (uint64_t id = 1; id <= count; ++id) {
    const auto got = reports.ended(id);
    CAPTURE(got.why);
    CHECK(got.how == http_end::complete);
    CHECK(got.data() == "here|" + std::to_string(count));
  }
  port.reset();
  CAPTURE(front.complaints());
  CHECK(all.here == count);
  // 100 calls a connection, so two at least.
  CHECK(front.client_connections() >= 2);
  CHECK(front.client_connections() <= 6);
}

TEST_CASE("a server with TLS but without HTTP/2 gets more connections as soon as that is known") {
  if (skipped())
    return;
  constexpr int count = 30;
  crowd all(count);
  test_server server([&](test_connection& client) { all.serve(client); });
  nginx front(server.port(), nginx::speaks::http1);
  collector reports;
  auto port = make_curl_port(trusting(front), reports.sink());
  for (uint64_t id = 1; id <= count; ++id)
    port->start(call_to(front, id));
  for (uint64_t id = 1; id <= count; ++id) {
    const auto got = reports.ended(id);
    CAPTURE(got.why);
    CHECK(got.how == http_end::complete);
    CHECK(got.data() == "here|" + std::to_string(count));
  }
  CHECK(all.here == count);
}

TEST_CASE("a certificate that nobody vouches for is refused before anything is sent") {
  if (skipped())
    return;
  test_server server([](test_connection& client) { client.read(); });
  nginx front(server.port(), nginx::speaks::http2);
  collector reports;
  auto port = make_curl_port({}, reports.sink());
  port->start(call_to(front, 1));
  const auto got = reports.ended(1);
  CHECK(got.how == http_end::not_sent);
  CHECK(got.why.find("certificate") != std::string::npos);
  CHECK(server.connections() == 0);
}

TEST_CASE("a certificate for another name is refused") {
  if (skipped())
    return;
  test_server server([](test_connection& client) { client.read(); });
  nginx front(server.port(), nginx::speaks::http2);
  collector reports;
  auto port = make_curl_port(trusting(front), reports.sink());
  auto call = call_to(front, 1);
  call.url.replace(call.url.find("127.0.0.1"), 9, "localhost");
  port->start(call);
  CHECK(reports.ended(1).how == http_end::not_sent);
  CHECK(server.connections() == 0);
}

TEST_CASE("a server may have authorities of its own, which vouch for no other server") {
  if (skipped())
    return;
  test_server server([](test_connection& client) {
    client.read();
    client.answer("200 OK", "", "trusted");
  });
  nginx front(server.port(), nginx::speaks::http2);
  nginx other(server.port(), nginx::speaks::http2);
  collector reports;
  curl_port_options options;
  options.servers = {{front.url("/any/path"), front.ca_file(), false}};
  auto port = make_curl_port(options, reports.sink());
  port->start(call_to(front, 1));
  port->start(call_to(other, 2));
  CHECK(reports.ended(1).body == "trusted");
  CHECK(reports.ended(2).how == http_end::not_sent);
}

TEST_CASE("a missing file of authorities is said, not ignored") {
  if (skipped())
    return;
  test_server server([](test_connection& client) { client.read(); });
  nginx front(server.port(), nginx::speaks::http2);
  collector reports;
  curl_port_options options;
  options.ca_file = "/nonexistent/authorities.pem";
  auto port = make_curl_port(options, reports.sink());
  port->start(call_to(front, 1));
  const auto got = reports.ended(1);
  CHECK(got.how == http_end::not_sent);
  CHECK(got.why.find("/nonexistent/authorities.pem") != std::string::npos);
}

TEST_CASE("a call over HTTP/2 is cancelled alone; the others on its connection go on") {
  if (skipped())
    return;
  std::atomic<bool> release{false};
  test_server server([&](test_connection& client) {
    client.read();
    client.begin_chunked();
    client.chunk("data: a\n\n");
    for (int i = 0; i < 500 && !release; ++i)
      client.gone_within(10ms);
    client.chunk("data: b\n\n");
    client.last_chunk();
  });
  nginx front(server.port(), nginx::speaks::http2);
  collector reports;
  auto port = make_curl_port(trusting(front), reports.sink());
  for (uint64_t id = 1; id <= 5; ++id)
    port->start(call_to(front, id));
  for (uint64_t id = 1; id <= 5; ++id)
    reports.with_events(id, 1);
  port->cancel(3);
  CHECK(reports.ended(3).how == http_end::cancelled);
  release = true;
  for (const uint64_t id : {1U, 2U, 4U, 5U}) {
    const auto got = reports.ended(id);
    CHECK(got.how == http_end::complete);
    CHECK(got.data() == "a|b");
  }
}
